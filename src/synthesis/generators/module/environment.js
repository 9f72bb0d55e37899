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
    solve: (/** @type {number} */ seed) => solutionOf(params, make(seed)),
    shortcuts: (/** @type {number} */ seed) => shortcutsOf(params, make(seed)),
    hint: (/** @type {Instance} */ state) => hintOf(params, state),
  };
}
