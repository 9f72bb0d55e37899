/**
 * The solution of an instance, and the shortcuts that must not pay. Invariant: a shortcut is the solution of an agent that takes every
 * instance for a special one ("always") or for a twin ("never"), or acts on whatever is listed first ("first").
 */
import { draw, randomOf } from './random.js';
import { amountOf, argumentsOf, denialOf, planOf, writeOf } from './records.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../../../domain/messages').AssistantMessage} AssistantMessage */

/**
 * The messages of an agent that believes that the instance is special, or a twin.
 * @param {Params} params
 * @param {Instance} state
 * @param {{special: boolean, first?: boolean}} belief `first`: it acts on the record that is listed first
 */
function messagesOf(params, state, { special, first = false }) {
  const { world } = params;
  const { requests, records, key } = state;
  const plan = planOf(params, special);
  /** @type {AssistantMessage[]} */
  const messages = [];
  const say = (/** @type {string} */ content) => messages.push({ role: 'assistant', content });
  const use = (/** @type {string} */ name, /** @type {Record<string, unknown>} */ given) =>
    messages.push({
      role: 'assistant',
      content: '',
      toolCalls: [{ id: `call_${messages.length}`, name, arguments: given }],
    });
  if (plan.keyMissing && world.ask) say(world.ask.question);
  const guess = draw(randomOf(`guess ${state.seed}`), world.lookup.keyVocabulary);
  use(world.lookup.tool, { [world.lookup.key]: state.known || plan.keyMissing ? key : guess });
  const parts = [];
  if (plan.forbidden) parts.push(`${denialOf(params, state)} .`);
  else {
    const attended = requests.slice(0, plan.requests);
    for (const { write, said, record, lookalike } of attended) {
      const meant = lookalike && !plan.similar ? lookalike : record;
      const taken = (record && first ? records[0] : meant) ?? {};
      use(write, argumentsOf(writeOf(params, write), { record: taken, said, marked: plan.marker, key }));
    }
    const tool = world.writes.find((write) => write.onRecord);
    const other = records.find((record) => !requests.some((request) => request.record === record));
    if (plan.requests > attended.length && tool && other)
      use(tool.tool, argumentsOf(tool, { record: other, said: requests[0].said, marked: false, key }));
    parts.push('done .');
  }
  if (plan.question) parts.push(`${amountOf(params, requests[0], plan.marker)} .`);
  say(parts.join(' '));
  return messages;
}

/** @type {(params: Params, state: Instance) => AssistantMessage[]} */
export const solutionOf = (params, state) => messagesOf(params, state, { special: state.special });

/** @type {(params: Params, state: Instance) => Record<string, AssistantMessage[]>} */
export function shortcutsOf(params, state) {
  const never = messagesOf(params, state, { special: false });
  // To look out for similar records always is what is trained: the shortcut there is to take the first.
  if (params.special.similar)
    return { never, first: messagesOf(params, state, { special: state.special, first: true }) };
  return { always: messagesOf(params, state, { special: true }), never };
}
