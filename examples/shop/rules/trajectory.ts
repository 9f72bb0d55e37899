/**
 * One trajectory in the shop held against its reference: what was done, seen and said, and what was needed. A write that the environment answered
 * with an error was attempted, not done.
 */
import { type Action, agentView, isSuccess, OutsideFailure, type ScoredRollout } from 'trace-campaign/plugin';
import { TEXTS, TOOLS } from '../target/tasks';

/** Lower-case words and numbers; "i42" and "35.5" are one word each. */
export const words = (text: string): string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+(?:[.'_-][\p{L}\p{N}]+)*/gu) ?? [];

/** True if the words of `phrase` occur in `text`, next to each other and in this order. An empty phrase is nowhere. */
export function mentions(text: string, phrase: string): boolean {
  const needle = words(phrase);
  return needle.length > 0 && ` ${words(text).join(' ')} `.includes(` ${needle.join(' ')} `);
}

export const isNumber = (text: string): boolean => Number.isFinite(Number(text));

/** One spelling for an argument, whether it came as a JSON number or as text. */
const spell = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));

const WRITES = new Set(TOOLS.flatMap(({ name, annotations }) => (annotations?.readOnlyHint ? [] : [name])));

/** One listed item. */
export interface Listed {
  tool: string;
  item: string;
  id: string;
  price: string;
}

/** Two items of one list that can be taken for each other: they share a color or a kind. */
export function confusable(a: Listed, b: Listed): boolean {
  if (a.tool !== b.tool || a.id === b.id) return false;
  return words(b.item).some((word) => words(a.item).includes(word));
}

function listedIn(tool: string, observation: string): Listed[] {
  return observation.split(' ; ').flatMap((text) => {
    const [, item = '', id = '', price = ''] = /^(\w+ \w+) (i\d\d) (?:\w+ )?(\d+)$/.exec(text) ?? [];
    return id ? [{ tool, item, id, price }] : [];
  });
}

/** The account that a call names, if any. */
export const accountIn = ({ name, arguments: { user } }: Action): string | undefined =>
  ['get_account', 'change_address'].includes(name) && user != null ? spell(user) : undefined;

export const holdsAccount = (text: string): boolean => /(^|[\s,;:!?"'()])u\d\d\.?($|[\s,;:!?"'()])/.test(text);

export interface Call extends Action {
  failed: boolean;
  /** Everything that the user, the tools and the system said before the call, and the user's part of it. */
  before: string;
  userBefore: string;
}

export type Trajectory = ReturnType<typeof readTrajectory>;

/** @throws BadEnvironment if the rollout has no reference. */
export function readTrajectory(rollout: ScoredRollout) {
  const { reference, key, stopReason } = rollout;
  if (!reference)
    throw new OutsideFailure('BadEnvironment', `rollout ${key}: no reference; take the target shop itself`);
  const read = readMessages(rollout);
  const writes = read.calls.filter(({ name }) => WRITES.has(name));
  const done = writes.filter(({ failed }) => !failed);
  const onlyFailed = writes.filter((call) => call.failed && !done.some(({ name }) => name === call.name));
  // A call that did not parse is text: its name stands in front of a parenthesis.
  const unparsed = [...read.agentText.matchAll(/(\w+)\(/g)].filter(([, name = '']) => WRITES.has(name));
  // Equal actions are paired one to one; the order in which they were done does not matter.
  const surplus = [...done];
  const missing = reference.actions.filter((action) => {
    const index = surplus.findIndex((call) => call.name === action.name && sameArguments(call, action));
    if (index >= 0) surplus.splice(index, 1);
    return index < 0;
  });
  return {
    ...read,
    passed: isSuccess(rollout),
    /** False if the environment or a limit cut it off. */
    endedRegularly: stopReason === 'user_stop' || stopReason === 'agent_stop',
    needed: reference.actions,
    /** Needed writes that were not done as needed, and writes that were done and not needed in this form. */
    missing,
    surplus,
    /** Writes that only failed: no write of the same tool was done. */
    attempted: unparsed.length + onlyFailed.length,
    /** The user must learn that something is not allowed, and these amounts. */
    mustRefuse: reference.tell.includes(TEXTS.denial),
    amounts: reference.tell.filter((text) => text !== TEXTS.denial),
  };
}

/** Returns true if all arguments but the `ignored` one are equal. */
export const sameArguments = (a: Action, b: Action, ignored?: string): boolean =>
  Object.keys({ ...a.arguments, ...b.arguments })
    .filter((name) => name !== ignored)
    .every((name) => spell(a.arguments[name]) === spell(b.arguments[name]));

function readMessages(rollout: ScoredRollout) {
  const messages = agentView(rollout.messages);
  const observations = new Map(
    messages.flatMap((message) => (message.role === 'tool' ? [[message.toolCallId, message.content]] : [])),
  );
  const calls: Call[] = [];
  const listed: Listed[] = [];
  const said = { user: [] as string[], agent: [] as string[], toAgent: [] as string[] };
  for (const message of messages) {
    if (message.role !== 'assistant') {
      said.toAgent.push(message.content);
      if (message.role === 'user') said.user.push(message.content);
      continue;
    }
    said.agent.push(message.content);
    for (const { id, name, arguments: given } of message.toolCalls ?? []) {
      const observation = observations.get(id) ?? '';
      const failed = /^\W*error\b/i.test(observation);
      const [before, userBefore] = [said.toAgent.join('\n'), said.user.join('\n')];
      calls.push({ name, arguments: given, failed, before, userBefore });
      if (!failed) listed.push(...listedIn(name, observation));
    }
  }
  return {
    calls,
    listed,
    firstRequest: said.user[0] ?? '',
    userText: said.user.join('\n'),
    agentText: said.agent.join('\n'),
  };
}

/** The listed items that an action's ids name. */
export function actedOn({ arguments: given }: Action, { listed }: Trajectory): Listed[] {
  const ids = [given['id'], given['new_id']].map(spell);
  return listed.filter(({ id }) => ids.includes(id));
}

/** The items that the needed writes act on, and with them those that the user named. */
export const neededItems = (trajectory: Trajectory): Listed[] =>
  trajectory.needed.flatMap((action) => actedOn(action, trajectory));
export const wantedItems = (trajectory: Trajectory): Listed[] => [
  ...neededItems(trajectory),
  ...trajectory.listed.filter(({ item, id }) => [item, id].some((name) => mentions(trajectory.userText, name))),
];
