/**
 * Reward and reference. Invariants: reward is 1 exactly if the conversation ended, the account was looked up, the writes are the wanted
 * ones and no other, and what had to be said (and nothing that must not be) was said; partial credit never exceeds 0.25, is not earned
 * by doing nothing, and is not lost by trying the missing part.
 */
import { denialOf, mustDeny, planOf, writeOf } from './records.js';
import { says } from './text.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../instance').Instance} Instance */
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

/** @type {(params: Params, state: Instance) => {reward: number, breakdown: Record<string, number>, branch: string}} */
export function rewardOf(params, state) {
  const { wanted, made, texts, amount, looked, special } = state;
  const { keyMissing } = planOf(params, special);
  const exact = made.length === wanted.length && wanted.every((w) => made.some((m) => same(m, w)));
  const phrase = denialOf(params, state);
  const denied = phrase !== undefined && says(texts, phrase);
  const denial = denied === mustDeny(params, state);
  const amounts = texts.join(' ').match(/\b\d+\b/g) ?? [];
  const told =
    amount === null
      ? !params.special.question || amounts.length === 0
      : amounts.length > 0 && amounts.every((each) => each === String(amount));
  const asked = state.asked === keyMissing && !state.invented;
  const right = state.done && looked && exact && denial && told && asked;
  const likest = wanted.map((w) => Math.max(0, ...made.map((m) => likeness(params, m, w))));
  const actions = wanted.length === 0 ? 0 : likest.reduce((a, b) => a + b, 0) / wanted.length;
  const needed = keyMissing && state.asked && !state.invented;
  const flags = Object.entries({ lookup: looked, exact, denial, told, asked });
  return {
    reward: right ? 1 : (looked ? 0.05 : 0) + (needed ? 0.05 : 0) + 0.15 * actions,
    breakdown: { ...Object.fromEntries(flags.map(([name, flag]) => [name, flag ? 1 : 0])), actions },
    branch: special ? 'special' : 'twin',
  };
}

/** @type {(params: Params, state: Instance) => Reference} */
export function referenceOf(params, state) {
  const { wanted, amount } = state;
  const denial = mustDeny(params, state) ? denialOf(params, state) : undefined;
  if (denial !== undefined) return { actions: wanted, tell: [denial] };
  return { actions: wanted, tell: amount === null ? [] : [String(amount)] };
}
