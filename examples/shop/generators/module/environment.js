/** The functions of an environment module (docs/synthesis.md) over its parameters, which are all that is kept. */
import { firstMessages, referenceOf, rewardOf, stepOf } from './episodes.js';
import { instanceOf, preparedOf } from './instances.js';
import { shortcutsOf, solutionOf } from './solutions.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../params').Instance} Instance */
/** @typedef {import('trace-campaign/plugin').AssistantMessage} AssistantMessage */

/** @param {Params} params */
export function environmentOf(params) {
  const { policy, tools, maxSteps } = params;
  const prepared = preparedOf(params);
  const make = (/** @type {number} */ seed) => instanceOf(params, prepared, seed);
  return {
    describe: () => ({ policy, tools, maxSteps }),
    make,
    start: (/** @type {Instance} */ state) => firstMessages(params, state),
    step: (/** @type {Instance} */ state, /** @type {AssistantMessage} */ message) => stepOf(params, state, message),
    reward: (/** @type {Instance} */ state) => rewardOf(params, state),
    reference: (/** @type {Instance} */ state) => referenceOf(params, state),
    solve: (/** @type {number} */ seed, state = make(seed)) => solutionOf(params, state),
    shortcuts: (/** @type {number} */ seed, state = make(seed)) => shortcutsOf(params, state),
  };
}
