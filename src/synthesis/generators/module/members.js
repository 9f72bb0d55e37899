/** Which instance a seed is. Invariant: the account, its family and the plan are functions of the parameters and the seed. */
import { randomOf } from './random.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('../families').Family} Family */
/** @typedef {import('../families').Member} Member */
/** @typedef {import('../instance').Request} Request */

/** Instances of one account. @param {Params} params */
export const sizeOf = ({ cycle }) => /** @type {Member[]} */ (cycle[0]).length;

/** @type {(params: Params, account: number) => Family} */
export function familyOf({ capability, families }, account) {
  const all = families.reduce((sum, { share }) => sum + share, 0);
  let left = families.length > 1 ? all * randomOf(`${capability} family ${account}`)() : 0;
  return /** @type {Family} */ (
    families.find(({ share }) => {
      left -= share;
      return left < 0;
    }) ?? families[0]
  );
}

/** @type {(params: Params, seed: number) => Member & {family: Family, plan: Plan}} */
export function memberOf(params, seed) {
  const size = sizeOf(params);
  const account = Math.floor(seed / size);
  const members = /** @type {Member[]} */ (params.cycle[account % params.cycle.length]);
  const member = /** @type {Member} */ (members[seed % size]);
  const family = familyOf(params, account);
  return { ...member, family, plan: planOf(family, member.branch) };
}

/** @type {(family: Family, branch: string) => Plan} */
export const planOf = ({ plans }, branch) => /** @type {Plan} */ (plans[branch]);

/**
 * The request that the special part of the plan is about.
 * @type {(requests: readonly [Request, ...Request[]], turned: boolean) => Request}
 */
export const mainOf = (requests, turned) => (turned && requests[1]) || requests[0];
