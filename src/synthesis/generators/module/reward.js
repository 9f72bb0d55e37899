/**
 * Reward and reference. Invariants: reward is 1 exactly if the conversation ended, the account was looked up, the writes are the wanted
 * ones and no other, and what had to be said (and nothing that must not be) was said; partial credit never exceeds 0.25, is not earned
 * by doing nothing, and is not lost by trying the missing part; where two capabilities are needed, each part that is right earns.
 */
import { mainOf, memberOf } from './members.js';
import { denialOf, nameOf, writeOf } from './records.js';
import { says } from './text.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../instance').Request} Request */
/** @typedef {import('../../../domain/environment').Action} Action */
/** @typedef {import('../../../domain/environment').Reference} Reference */

/** @type {(a: Action, b: Action) => boolean} */
const same = (a, b) => a.name === b.name && Object.keys(b.arguments).every((n) => a.arguments[n] === b.arguments[n]);

/**
 * 1 for the wanted action; less for the right record with a wrong value, and for the right tool on another record.
 * @type {(params: Params, action: Action, wanted: Action) => number}
 */
export function likeness(params, action, wanted) {
  if (action.name !== wanted.name) return 0;
  if (same(action, wanted)) return 1;
  const identity = writeOf(params, wanted.name).arguments.filter((argument) => argument.from === 'record');
  const onIt = identity.length > 0 && identity.every(({ name }) => action.arguments[name] === wanted.arguments[name]);
  return onIt ? 0.6 : 0.3;
}

/** @type {(values: readonly number[]) => number} */
const meanOf = (values) => (values.length === 0 ? 0 : values.reduce((a, b) => a + b, 0) / values.length);

/**
 * Some write was made on the request's record.
 * @type {(params: Params, state: Instance, request: Request) => boolean}
 */
const acted = (params, { settled }, { record }) => record !== null && settled.includes(nameOf(params, record));

/** @type {(params: Params) => boolean} */
const asksAmounts = ({ families }) =>
  families.some(({ plans }) => Object.values(plans).some(({ question }) => question));

/** @type {(params: Params, state: Instance) => {reward: number, breakdown: Record<string, number>, branch: string}} */
export function rewardOf(params, state) {
  const { wanted, made, texts, amount, looked, requests } = state;
  const { family, branch, plan, turned } = memberOf(params, state.seed);
  const combined = 'both' in family.plans;
  const main = mainOf(requests, turned);
  const exact = made.length === wanted.length && wanted.every((w) => made.some((m) => same(m, w)));
  const due = plan.forbidden ? denialOf(params, main) : undefined;
  const denial = (combined ? requests : [main]).every((request) => {
    const phrase = denialOf(params, request);
    return phrase === undefined || says(texts, phrase) === (phrase === due);
  });
  const amounts = texts.join(' ').match(/\b\d+\b/g) ?? [];
  const told =
    amount === null
      ? !asksAmounts(params) || amounts.length === 0
      : amounts.length > 0 && amounts.every((each) => each === String(amount));
  const asked = state.asked === plan.keyMissing && !state.invented;
  const right = state.done && looked && exact && denial && told && asked;
  const parts = wanted.map((w) => Math.max(0, ...made.map((m) => likeness(params, m, w))));
  const actions = meanOf(parts);
  if (combined && plan.forbidden) parts.push(looked && denial && !acted(params, state, main) ? 1 : 0);
  if (combined && amount !== null) parts.push(looked && told ? 1 : 0);
  const needed = plan.keyMissing && state.asked && !state.invented;
  const flags = Object.entries({ lookup: looked, exact, denial, told, asked });
  return {
    reward: right ? 1 : (looked ? 0.05 : 0) + (needed ? 0.05 : 0) + 0.15 * meanOf(parts),
    breakdown: { ...Object.fromEntries(flags.map(([name, flag]) => [name, flag ? 1 : 0])), actions },
    branch: branch === 'both' ? String(family.both) : branch,
  };
}

/** @type {(params: Params, state: Instance) => Reference} */
export function referenceOf(params, { seed, requests, wanted, amount }) {
  const { plan, turned } = memberOf(params, seed);
  const denial = plan.forbidden ? denialOf(params, mainOf(requests, turned)) : undefined;
  return {
    actions: wanted,
    tell: [...(denial === undefined ? [] : [denial]), ...(amount === null ? [] : [String(amount)])],
  };
}
