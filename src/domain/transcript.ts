/**
 * Trajectories as text for a language model: a line for each text and each call; long lines are cut.
 * Invariants: the text depends on the rollouts alone; only the system message is left out (the policy, which prompts hold once), and every cut states
 * how much is missing; a line's number is the message's index, so that a step can be cited. Line breaks are written \n, and names are plain lines, so
 * that no text of a conversation can imitate a line of the format.
 */
import type { Reference } from './environment';
import { argumentsOf, type Message, type ToolCall } from './messages';
import { escapeLineBreaks, plainLine } from './plain-text';
import { isSuccess, type ScoredRollout } from './rollout';

/** Maximum lengths, in characters; longer texts are cut. */
export interface Lengths {
  message: number;
  arguments: number;
}
export const LENGTHS: Lengths = { message: 300, arguments: 200 };

export type Told = Pick<ScoredRollout, 'key' | 'task' | 'attempt' | 'reward' | 'stopReason' | 'messages' | 'reference'>;
type Placed = Pick<Told, 'key' | 'task' | 'attempt'>;

/** Returns the names of rollouts in prompts, by key: `r1`, `r2`, ... in the order of task and attempt. */
export const shortIds = (rollouts: readonly Placed[]): Map<string, string> =>
  new Map([...rollouts].sort(byTask).map(({ key }, n) => [key, `r${n + 1}`]));

/** Compares by task, `task-9` before `task-10`, then by attempt. */
export const byTask = (a: Placed, b: Placed): number =>
  textOrder(countable(a.task), countable(b.task)) ||
  textOrder(a.task, b.task) ||
  a.attempt - b.attempt ||
  textOrder(a.key, b.key);
const textOrder = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const countable = (text: string) => text.replace(/\d+/g, (digits) => digits.padStart(20, '0'));

/** All of them, in the order given; `ids` by key. Message n of `r12` is the line `r12.n`. */
export const compact = (o: { rollouts: readonly Told[]; ids: ReadonlyMap<string, string> }): string =>
  o.rollouts.map((rollout) => compactOne({ rollout, id: o.ids.get(rollout.key) ?? rollout.key })).join('\n\n');

export function compactOne(o: { rollout: Told; id: string; lengths?: Lengths }): string {
  const { rollout, id, lengths = LENGTHS } = o;
  const { task, attempt, reward, stopReason, messages, reference } = rollout;
  const outcome = isSuccess(rollout) ? 'PASSED' : 'FAILED';
  const tools = toolNames(messages);
  return [
    `[${id}] task ${plainLine(task)}, attempt ${attempt}: ${outcome} (reward ${reward}), ended by ${stopReason}`,
    ...(reference ? [needed(reference, lengths)] : []),
    ...messages.flatMap((message, n) =>
      message.role === 'system' ? [] : lines(message, { step: `${id}.${n}`, tools, lengths }),
    ),
  ].join('\n');
}

function needed({ actions, tell }: Reference, lengths: Lengths): string {
  const calls = actions.map(({ name, arguments: given }) => called({ name, arguments: given }, lengths));
  const facts = tell.map((fact) => escapeLineBreaks(JSON.stringify(cut(fact, lengths.message))));
  return `needed: ${calls.join('; ') || 'no action'}; to be told: ${facts.join('; ') || 'nothing in particular'}`;
}

const toolNames = (messages: readonly Message[]): Map<string, string> =>
  new Map(
    messages.flatMap((message) =>
      message.role === 'assistant' || message.role === 'user'
        ? (message.toolCalls ?? []).map(({ id, name }) => [id, plainLine(name)] as const)
        : [],
    ),
  );

function lines(
  message: Exclude<Message, { role: 'system' }>,
  { step, tools, lengths }: { step: string; tools: Map<string, string>; lengths: Lengths },
): string[] {
  const said = message.content.trim() && escapeLineBreaks(cut(message.content, lengths.message));
  if (message.role === 'tool') {
    const whose = message.requestor === 'user' ? "user's own " : '';
    return [`${step} result of ${whose}${tools.get(message.toolCallId) ?? 'an unknown call'}: ${said || '(empty)'}`];
  }
  const { toolCalls = [], role } = message;
  const speaker = role === 'assistant' ? 'agent' : 'user';
  return [
    ...(said || toolCalls.length === 0 ? [`${step} ${speaker}: ${said || '(says nothing)'}`] : []),
    ...toolCalls.map((call) => `${step} ${speaker} calls ${called(call, lengths)}`),
  ];
}

const called = (call: Omit<ToolCall, 'id'>, lengths: Lengths) =>
  `${plainLine(call.name)}(${escapeLineBreaks(cut(argumentsOf(call), lengths.arguments))})`;

/** The beginning of a text, never half of a character, and how much is missing. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const kept = text.slice(0, /[\uD800-\uDBFF]/.test(text[length - 1] ?? '') ? length - 1 : length);
  return `${kept}... (${text.length - kept.length} more characters)`;
}
