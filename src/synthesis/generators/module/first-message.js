/** The user's first message. Invariant: it holds all that the plan says and nothing else, in words that the target's users use. */
import { pick } from './random.js';
import { writeOf } from './records.js';
import { fill } from './text.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('../instance').Request} Request */
/** @typedef {import('./random.js').Random} Random */

/**
 * In the order of parts of one of the target's messages, where one holds just these parts.
 * @param {Params} params
 * @param {Random} random
 * @param {{plan: Plan, requests: readonly [Request, ...Request[]], key: string | number}} about
 */
export function firstMessage(params, random, { plan, requests, key }) {
  const { world, wording } = params;
  const [main] = requests;
  const wanted = Object.entries({
    request: requests.length,
    marker: plan.marker ? 1 : 0,
    question: plan.question ? 1 : 0,
    key: plan.keyMissing ? 0 : 1,
  });
  const fitting = wording.skeletons.filter((skeleton) =>
    wanted.every(([slot, count]) => skeleton.split(`{${slot}}`).length - 1 === count),
  );
  const fallback =
    (plan.keyMissing ? '' : '{key} ') +
    requests.map(() => '{request}').join(' and ') +
    (plan.marker ? ' , {marker}' : '') +
    ' .' +
    (plan.question ? ' {question}' : '');
  const parts = requests.map(({ write, record, said }) => fill(writeOf(params, write).request, { ...record, ...said }));
  const markers = writeOf(params, main.write).arguments.flatMap((argument) =>
    argument.from === 'computed' ? [argument.marker] : [],
  );
  /** @type {Record<string, string | undefined>} */
  const said = {
    marker: markers[0],
    question: plan.question && world.tell ? fill(world.tell.question, main.record ?? {}) : '',
    key: world.ask ? world.ask.answer.replace('%', String(key)) : `${world.lookup.key} ${key} .`,
  };
  return (fitting.length > 0 ? pick(random, fitting) : fallback).replace(/\{(\w+)\}/g, (_, slot) =>
    String(slot === 'request' ? parts.shift() : said[slot]),
  );
}
