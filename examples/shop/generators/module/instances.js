/** Instances: a function of the parameters and the seed. The two of one account differ in what the capability is about alone. */
import { drawAccount } from './accounts.js';
import { hashOf, pick, randomOf } from './random.js';
import { amountOf, argumentsOf, branchOf, planOf, toolOf, writeOf } from './records.js';
import { fill, fits, forbiddenIn } from './text.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../params').Instance} Instance */
/** @typedef {import('../params').Request} Request */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('./accounts.js').Account} Account */
/** @typedef {import('./accounts.js').Condition} Condition */
/** @typedef {import('./accounts.js').Slot} Slot */
/** @typedef {import('./random.js').Random} Random */

/**
 * What is read off the parameters once: a module is loaded once and makes thousands of instances.
 * @typedef {{isForbidden: (text: string) => boolean, skeletons: ReadonlyMap<string, string[]>}} Prepared
 */

/** @type {(params: Params) => Prepared} */
export const preparedOf = ({ forbidden, wording }) => ({
  isForbidden: forbiddenIn(forbidden),
  skeletons: bySlots(wording.skeletons),
});

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
 * @param {{plan: Plan, requests: readonly [Request, ...Request[]], key: string | number, skeletons: ReadonlyMap<string, string[]>}} about
 */
export function firstMessage(params, random, { plan, requests, key, skeletons }) {
  const { world } = params;
  const { question, keyMissing } = plan;
  const marked = plan.marker ? 1 : 0;
  const [main] = requests;
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

/** @type {Condition} */
const PLAIN = { forbidden: false, similar: false };

/**
 * Undefined if the account does not do for it: a computed value outside its schema.
 * @type {(params: Params, prepared: Prepared, seed: number, from: {account: Account, random: Random}) => Instance | undefined}
 */
function drawInstance(params, { skeletons }, seed, { account: { key, wishes, slots }, random }) {
  const plan = planOf(params, seed);
  // What is special is so of the first request.
  const conditionOf = (/** @type {number} */ of) => (of === 0 ? plan : PLAIN);
  const record = (/** @type {Slot} */ { of, as }) => as(conditionOf(of));
  const asked = wishes.map((wish, n) => {
    const lookalike = conditionOf(n).similar ? wish.lookalikes[wish.lookalikes.length - 1] : undefined;
    return {
      write: wish.write,
      said: wish.said,
      record: wish.record && record(wish.record),
      lookalike: lookalike ? record(lookalike) : null,
    };
  });
  const requests = /** @type {[Request, ...Request[]]} */ (asked.slice(0, plan.requests));
  const [main] = requests;
  const wanted = requests
    .filter((request) => !(plan.forbidden && request === main))
    .map((request) => {
      const marked = plan.marker && request === main;
      const on = { record: request.record ?? {}, said: request.said, marked, key };
      return { name: request.write, arguments: argumentsOf(writeOf(params, request.write), on) };
    });
  const allowed = wanted.every((action) => {
    const tool = toolOf(params, action.name);
    return tool && fits(tool, action.arguments);
  });
  if (!allowed) return undefined;
  return {
    seed,
    special: branchOf(seed) === 'special',
    key,
    known: !plan.keyMissing,
    requests,
    records: slots.map(record),
    wanted,
    amount: plan.question ? amountOf(params, main, plan.marker) : null,
    first: firstMessage(params, random, { plan, requests, key, skeletons }),
    made: [],
    settled: [],
    texts: [],
    looked: false,
    invented: false,
    asked: false,
    done: false,
  };
}

const DRAWS = 200;

/**
 * @param {Params} params
 * @param {Prepared} prepared
 * @param {number} seed
 */
export function instanceOf(params, prepared, seed) {
  const number = Math.floor(seed / 2);
  for (let attempt = 0; attempt < DRAWS; attempt += 1) {
    const before = hashOf(`${params.capability} ${number} ${attempt} `);
    const draws = (/** @type {string} */ what) => randomOf(what, before);
    const account = drawAccount(params, draws);
    const both = [2 * number, 2 * number + 1].map((n) =>
      drawInstance(params, prepared, n, { account, random: draws('first message') }),
    );
    // Both are drawn again: a special case and a twin of different draws would not belong together.
    if (both.every((one) => one && !prepared.isForbidden(one.first)))
      return /** @type {Instance} */ (both[seed - 2 * number]);
  }
  throw new Error(`seed ${seed}: no instance that is allowed in ${DRAWS} draws`);
}
