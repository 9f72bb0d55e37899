/**
 * Episodes: a step is a function of state and message, a bad call is an observation. Reward is 1 exactly if the
 * conversation ended, the account was looked up, the writes are the wanted ones and no other, and what had to be said,
 * and nothing that must not be, was said; partial credit never exceeds 0.25 and is not earned by doing nothing.
 */
import { branchOf, denialOf, nameOf, planOf, toolOf, writeOf } from './records.js';
import { fits, says, wordsOf } from './text.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../params').Instance} Instance */
/** @typedef {import('trace-campaign/plugin').Action} Action */
/** @typedef {import('trace-campaign/plugin').Reference} Reference */
/** @typedef {import('trace-campaign/plugin').AssistantMessage} AssistantMessage */
/** @typedef {import('trace-campaign/plugin').Message} Message */
/** @typedef {import('trace-campaign/plugin').ToolCall} ToolCall */

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

/** @type {(a: Action, b: Action) => boolean} */
const same = (a, b) => a.name === b.name && Object.keys(b.arguments).every((n) => a.arguments[n] === b.arguments[n]);

/**
 * 1 for the wanted action; less for the right record with a wrong value, and for the right tool on another record.
 * @type {(params: Params, action: Action, wanted: Action) => number}
 */
function likeness(params, action, wanted) {
  if (action.name !== wanted.name) return 0;
  if (same(action, wanted)) return 1;
  const identity = writeOf(params, wanted.name).arguments.filter((argument) => argument.from === 'record');
  const onIt = identity.length > 0 && identity.every(({ name }) => action.arguments[name] === wanted.arguments[name]);
  return onIt ? 0.6 : 0.3;
}

/** @type {(values: readonly number[]) => number} */
const meanOf = (values) => (values.length === 0 ? 0 : values.reduce((a, b) => a + b, 0) / values.length);

/** @type {(params: Params, state: Instance) => {reward: number, breakdown: Record<string, number>, branch: string}} */
export function rewardOf(params, state) {
  const { wanted, made, texts, amount, looked, requests } = state;
  const plan = planOf(params, state.seed);
  const exact = made.length === wanted.length && wanted.every((w) => made.some((m) => same(m, w)));
  const phrase = denialOf(params, requests[0]);
  const denial = phrase === undefined || says(texts, phrase) === plan.forbidden;
  const amounts = texts.join(' ').match(/\b\d+\b/g) ?? [];
  const asksAmounts = params.plans.special.question || params.plans.twin.question;
  const told =
    amount === null
      ? !asksAmounts || amounts.length === 0
      : amounts.length > 0 && amounts.every((each) => each === String(amount));
  const asked = state.asked === plan.keyMissing && !state.invented;
  const right = state.done && looked && exact && denial && told && asked;
  const actions = meanOf(wanted.map((w) => Math.max(0, ...made.map((m) => likeness(params, m, w)))));
  const needed = plan.keyMissing && state.asked && !state.invented;
  const flags = Object.entries({ lookup: looked, exact, denial, told, asked });
  return {
    reward: right ? 1 : (looked ? 0.05 : 0) + (needed ? 0.05 : 0) + 0.15 * actions,
    breakdown: { ...Object.fromEntries(flags.map(([name, flag]) => [name, flag ? 1 : 0])), actions },
    branch: branchOf(state.seed),
  };
}

/** @type {(params: Params, state: Instance) => Reference} */
export function referenceOf(params, { seed, requests, wanted, amount }) {
  const denial = planOf(params, seed).forbidden ? denialOf(params, requests[0]) : undefined;
  return {
    actions: wanted,
    tell: [...(denial === undefined ? [] : [denial]), ...(amount === null ? [] : [String(amount)])],
  };
}
