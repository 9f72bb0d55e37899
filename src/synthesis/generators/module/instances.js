/**
 * Instances. Invariant: an instance is a function of the parameters and the seed; those of one account are the same in records, their order
 * and requests, and differ in what the capabilities are about alone.
 */
import { drawAccount } from './accounts.js';
import { firstMessage } from './first-message.js';
import { familyOf, mainOf, memberOf, planOf, sizeOf } from './members.js';
import { hashOf, randomOf } from './random.js';
import { amountOf, argumentsOf, toolOf, writeOf } from './records.js';
import { fits } from './validation.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../families').Family} Family */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../instance').Request} Request */
/** @typedef {import('./accounts.js').Account} Account */
/** @typedef {import('./accounts.js').Condition} Condition */
/** @typedef {import('./accounts.js').Prepared} Prepared */
/** @typedef {import('./accounts.js').Slot} Slot */
/** @typedef {import('./random.js').Random} Random */

/** @type {Condition} */
const PLAIN = { forbidden: false, similar: false };

/**
 * The second request of an account only makes two of one.
 * @type {(family: Family, of: number) => boolean}
 */
const isBeside = ({ plans }, of) => of > 0 && Object.values(plans).some(({ requests }) => requests > 1);

/**
 * What holds of an account's requests: the plan, of the one that it is about; of another what holds in the instances that are about that, so
 * that the account is the same in all.
 * @type {(member: ReturnType<typeof memberOf>) => Condition[]}
 */
function conditionsOf({ family, plan, turned }) {
  const main = turned && plan.requests === 1 ? 1 : 0;
  return family.requested.map((_, n) => (n === main ? plan : isBeside(family, n) ? PLAIN : planOf(family, 'both')));
}

/**
 * Undefined if the account does not do for it: a computed value outside its schema.
 * @type {(params: Params, prepared: Prepared, seed: number, from: {account: Account, random: Random}) => Instance | undefined}
 */
function drawInstance(params, { skeletons }, seed, { account: { key, wishes, slots }, random }) {
  const member = memberOf(params, seed);
  const { branch, plan, turned } = member;
  const conditions = conditionsOf(member);
  const record = (/** @type {Slot} */ { of, as }) => as(conditions[of] ?? PLAIN);
  const asked = wishes.map((wish, n) => {
    const lookalike = conditions[n]?.similar ? wish.lookalikes[wish.lookalikes.length - 1] : undefined;
    return {
      write: wish.write,
      said: wish.said,
      record: wish.record && record(wish.record),
      lookalike: lookalike ? record(lookalike) : null,
    };
  });
  if (turned) asked.reverse();
  const requests = /** @type {[Request, ...Request[]]} */ (asked.slice(0, plan.requests));
  const main = mainOf(requests, turned);
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
    special: branch === 'special' || branch === 'both',
    key,
    known: !plan.keyMissing,
    requests,
    records: slots.map(record),
    wanted,
    amount: plan.question ? amountOf(params, main, plan.marker) : null,
    first: firstMessage(params, random, { plan, requests, main, key, skeletons }),
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
  const size = sizeOf(params);
  const number = Math.floor(seed / size);
  const family = familyOf(params, number);
  const similar = Object.values(family.plans).some((plan) => plan.similar);
  const of = { ...family, hasLookalikes: (/** @type {number} */ n) => similar && !isBeside(family, n) };
  for (let attempt = 0; attempt < DRAWS; attempt += 1) {
    const before = hashOf(`${params.capability} ${number} ${attempt} `);
    const draws = (/** @type {string} */ what) => randomOf(what, before);
    const account = drawAccount(params, prepared, draws, of);
    const all = Array.from({ length: size }, (_, n) =>
      drawInstance(params, prepared, size * number + n, { account, random: draws('first message') }),
    );
    // All are drawn again: a special case and a twin of different draws would not belong together.
    if (all.every((one) => one && !prepared.isForbidden(one.first)))
      return /** @type {Instance} */ (all[seed - size * number]);
  }
  throw new Error(`seed ${seed}: no instance that is allowed in ${DRAWS} draws`);
}
