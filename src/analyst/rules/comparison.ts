/**
 * One trajectory held against its reference: what was done, seen and said, and what was needed. Only messages, tool schemas and the reference are
 * looked at; a write that the environment answered with an error was attempted, not done.
 */
import type { Action } from '../../domain/environment';
import { OutsideFailure } from '../../domain/failures';
import { agentView } from '../../domain/messages';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { mentions, type ObservedRecord, spell, type ToolKnowledge } from './tools';

export interface Call extends Action {
  failed: boolean;
  /** Everything that the user, the tools and the system said before the call, and the user's part of it. */
  before: string;
  userBefore: string;
}

export type Trajectory = ReturnType<typeof readTrajectory>;

/** @throws BadEnvironment if the rollout has no reference: the target says that it tells one. */
export function readTrajectory(o: {
  rollout: ScoredRollout;
  knowledge: ToolKnowledge;
  /** Statements known to refuse a request: from the policy's rules. */
  denials: readonly string[];
}) {
  const { rollout, knowledge, denials } = o;
  const { reference, key, stopReason } = rollout;
  if (!reference)
    throw new OutsideFailure(
      'BadEnvironment',
      `rollout ${key}: no reference; a target with hasReference must tell it in every evaluate()`,
    );
  const read = readMessages(rollout, knowledge);
  const writes = read.calls.filter(({ name }) => knowledge.isWrite(name));
  const done = writes.filter(({ failed }) => !failed);
  const onlyFailed = writes.filter((call) => call.failed && !done.some(({ name }) => name === call.name));
  // A call that did not parse is text: its name stands in front of a parenthesis.
  const unparsed = [...read.agentText.matchAll(/(\w+)\(/g)].filter(([, name = '']) => knowledge.isWrite(name));
  // Equal actions are paired one to one; the order in which they were done does not matter.
  const surplus = [...done];
  const missing = reference.actions.filter((action) => {
    const index = surplus.findIndex((call) => call.name === action.name && sameArguments(call, action));
    if (index >= 0) surplus.splice(index, 1);
    return index < 0;
  });
  return {
    ...read,
    knowledge,
    denials,
    passed: isSuccess(rollout),
    /** False if the environment or a limit cut it off. */
    endedRegularly: stopReason === 'user_stop' || stopReason === 'agent_stop',
    needed: reference.actions,
    /** Needed writes that were not done as needed, and writes that were done and not needed in this form. */
    missing,
    surplus,
    /** Writes that only failed: no write of the same tool was done. */
    attempted: unparsed.length + onlyFailed.length,
    /** What is to be told: denials, and facts, which are all the rest. */
    statements: reference.tell.filter((text) => denials.includes(text)),
    facts: reference.tell.filter((text) => !denials.includes(text)),
  };
}

/** Those that are not `ignored`. */
export const sameArguments = (a: Action, b: Action, ignored: readonly string[] = []): boolean =>
  Object.keys({ ...a.arguments, ...b.arguments })
    .filter((name) => !ignored.includes(name))
    .every((name) => spell(a.arguments[name]) === spell(b.arguments[name]));

function readMessages(rollout: ScoredRollout, knowledge: ToolKnowledge) {
  // What the user did with its own tools is nothing that the agent has seen.
  const messages = agentView(rollout.messages);
  const observations = new Map(
    messages.flatMap((message) => (message.role === 'tool' ? [[message.toolCallId, message.content]] : [])),
  );
  const calls: Call[] = [];
  const records: ObservedRecord[] = [];
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
      if (!failed) records.push(...knowledge.records(name, observation));
    }
  }
  return {
    calls,
    records,
    firstRequest: said.user[0] ?? '',
    userText: said.user.join('\n'),
    agentText: said.agent.join('\n'),
  };
}

/** The observed records that an action's identifiers name. */
export function recordsOf(action: Action, { records, knowledge }: Trajectory): ObservedRecord[] {
  const named = knowledge.identifiersIn(action).map(({ value }) => value);
  return records.filter(({ identifiers }) => identifiers.some((identifier) => named.includes(identifier)));
}

/** The records that the needed writes act on, and with them those that the user named by their description or an identifier. */
export const neededRecords = (trajectory: Trajectory): ObservedRecord[] =>
  trajectory.needed.flatMap((action) => recordsOf(action, trajectory));
export const wantedRecords = (trajectory: Trajectory): ObservedRecord[] => [
  ...neededRecords(trajectory),
  ...trajectory.records.filter(({ description, identifiers }) =>
    [description, ...identifiers].some((name) => mentions(trajectory.userText, name)),
  ),
];
