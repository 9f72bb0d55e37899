/** The functions of an environment module (docs/synthesis.md) over its parameters. Invariant: nothing but the parameters is kept. */
import { preparedOf } from './accounts.js';
import { hintOf } from './hint.js';
import { instanceOf } from './instances.js';
import { referenceOf, rewardOf } from './reward.js';
import { shortcutsOf, solutionOf } from './solutions.js';
import { firstMessages, stepOf } from './transitions.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../../../domain/messages').AssistantMessage} AssistantMessage */

/**
 * Of easier instances: accounts are as small as they can be, with a third record where the choice between records is what is trained.
 * @type {(params: Params) => Params}
 */
function fewerRecords(params) {
  const similar = params.families.some(({ plans }) => Object.values(plans).some((plan) => plan.similar));
  const size = Math.min(params.records[1], similar ? 3 : 2);
  return { ...params, records: [size, size], lookalikes: 1 };
}

/** @param {Params} params */
export function environmentOf(params) {
  const { policy, tools, maxSteps } = params;
  const prepared = preparedOf(params);
  const make = (/** @type {number} */ seed) => instanceOf(params, prepared, seed);
  const fewer = fewerRecords(params);
  return {
    describe: () => ({ policy, tools, maxSteps }),
    make,
    easier: (/** @type {number} */ seed) => instanceOf(fewer, prepared, seed),
    start: (/** @type {Instance} */ state) => firstMessages(params, state),
    step: (/** @type {Instance} */ state, /** @type {AssistantMessage} */ message) => stepOf(params, state, message),
    reward: (/** @type {Instance} */ state) => rewardOf(params, state),
    reference: (/** @type {Instance} */ state) => referenceOf(params, state),
    solve: (/** @type {number} */ seed, state = make(seed)) => solutionOf(params, state),
    shortcuts: (/** @type {number} */ seed, state = make(seed)) => shortcutsOf(params, state),
    hint: (/** @type {Instance} */ state) => hintOf(params, state),
  };
}
