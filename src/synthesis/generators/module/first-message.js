/** The user's first message. Invariant: it holds all that the plan says and nothing else, in words that the target's users use. */
import { pick } from './random.js';
import { writeOf } from './records.js';
import { fill } from './text.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('../instance').Request} Request */
/** @typedef {import('./random.js').Random} Random */

/**
 * `marked`: number of the request that the marker stands behind; 0 without one.
 * @type {(slots: {request: number, marked: number, question: boolean, key: boolean}) => string}
 */
const slotsName = ({ request, marked, question, key }) => `${request} ${marked} ${question} ${key}`;

/**
 * The target's ways to put a first message, by what they hold.
 * @type {(skeletons: readonly string[]) => Map<string, string[]>}
 */
export function bySlots(skeletons) {
  /** @type {Map<string, string[]>} */
  const sorted = new Map();
  for (const skeleton of skeletons) {
    const count = (/** @type {string} */ slot) => skeleton.split(`{${slot}}`).length - 1;
    const [marker, question, key] = ['marker', 'question', 'key'].map(count);
    if (Math.max(marker ?? 0, question ?? 0, key ?? 0) > 1) continue;
    const [before = ''] = skeleton.split('{marker}');
    const marked = marker ? Math.max(1, before.split('{request}').length - 1) : 0;
    const name = slotsName({ request: count('request'), marked, question: !!question, key: !!key });
    sorted.set(name, [...(sorted.get(name) ?? []), skeleton]);
  }
  return sorted;
}

/**
 * In the order of parts of one of the target's messages, where one holds just these parts.
 * @param {Params} params
 * @param {Random} random
 * @param {{plan: Plan, requests: readonly [Request, ...Request[]], main: Request, key: string | number, skeletons: ReadonlyMap<string, string[]>}} about
 */
export function firstMessage(params, random, { plan, requests, main, key, skeletons }) {
  const { world } = params;
  const { question, keyMissing } = plan;
  const marked = plan.marker ? requests.indexOf(main) + 1 : 0;
  const fitting = skeletons.get(slotsName({ request: requests.length, marked, question, key: !keyMissing })) ?? [];
  const fallback =
    (keyMissing ? '' : '{key} ') +
    requests.map((_, n) => (n + 1 === marked ? '{request} , {marker}' : '{request}')).join(' and ') +
    ' .' +
    (question ? ' {question}' : '');
  const parts = requests.map(({ write, record, said }) => fill(writeOf(params, write).request, { ...record, ...said }));
  const markers = writeOf(params, main.write).arguments.flatMap((argument) =>
    argument.from === 'computed' ? [argument.marker] : [],
  );
  /** @type {Record<string, string | undefined>} */
  const said = {
    marker: markers[0],
    question: question && world.tell ? fill(world.tell.question, main.record ?? {}) : '',
    key: world.ask ? world.ask.answer.replace('%', String(key)) : `${world.lookup.key} ${key} .`,
  };
  return (fitting.length > 0 ? pick(random, fitting) : fallback).replace(/\{(\w+)\}/g, (_, slot) =>
    String(slot === 'request' ? parts.shift() : said[slot]),
  );
}
