/** Episodes. Invariant: a step is a function of state and message, and a bad call is an observation. */
import { nameOf, toolOf, writeOf } from './records.js';
import { wordsOf } from './text.js';
import { fits } from './validation.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../../../domain/messages').AssistantMessage} AssistantMessage */
/** @typedef {import('../../../domain/messages').Message} Message */
/** @typedef {import('../../../domain/messages').ToolCall} ToolCall */

/** @type {(params: Params, state: Instance) => Message[]} */
export const firstMessages = ({ policy }, { first }) => [
  { role: 'system', content: policy },
  { role: 'user', content: first },
];

/**
 * Runs one call on the state in place and returns the observation.
 * @type {(params: Params, state: Instance, call: ToolCall) => string}
 */
function observe(params, state, { name, arguments: given }) {
  const { world, wording } = params;
  const tool = toolOf(params, name);
  if (!tool) return wording.unknownTool;
  if (!fits(tool, given)) return wording.badArguments;
  const shown = state.records.filter((record) => !state.settled.includes(nameOf(params, record)));
  if (name === world.lookup.tool) {
    if (!state.known) state.invented = true;
    if (given[world.lookup.key] !== state.key) return wording.unknownKey;
    state.looked = true;
    const rendered = shown.map((record) => world.lookup.fields.map((field) => record[field.name]).join(' '));
    return rendered.join(' ; ') || wording.unknownRecord;
  }
  const write = writeOf(params, name);
  if (write.arguments.some((argument) => argument.from === 'key' && given[argument.name] !== state.key))
    return wording.unknownKey;
  if (write.onRecord) {
    const identifiers = write.arguments.filter((argument) => argument.from === 'record');
    const record = shown.find((one) => identifiers.every((argument) => one[argument.name] === given[argument.name]));
    if (!record) return wording.unknownRecord;
    state.settled.push(nameOf(params, record));
  }
  state.made.push({ name, arguments: given });
  return wording.done;
}

/**
 * A question with half of the words of the one that the target's agents ask.
 * @type {(params: Params, text: string) => boolean}
 */
function asksForKey({ world: { ask } }, text) {
  if (!ask || !text.includes('?')) return false;
  const words = new Set(wordsOf(text));
  const needed = wordsOf(ask.question);
  return needed.filter((word) => words.has(word)).length * 2 >= needed.length;
}

/** @type {(params: Params, before: Instance, message: AssistantMessage) => {state: Instance, done: boolean, messages: Message[]}} */
export function stepOf(params, before, { content, toolCalls = [] }) {
  const { world, wording } = params;
  const state = { ...before, made: [...before.made], settled: [...before.settled], texts: [...before.texts] };
  if (content.trim() !== '') state.texts.push(content);
  if (toolCalls.length > 0) {
    const messages = toolCalls.map(
      (call) => /** @type {const} */ ({ role: 'tool', toolCallId: call.id, content: observe(params, state, call) }),
    );
    return { state, done: false, messages };
  }
  if (world.ask && asksForKey(params, content)) {
    state.asked = true;
    state.known = true;
    const answer = world.ask.answer.replace('%', String(state.key));
    return { state, done: false, messages: [{ role: 'user', content: answer }] };
  }
  state.done = true;
  return { state, done: true, messages: [{ role: 'user', content: wording.farewell }] };
}
