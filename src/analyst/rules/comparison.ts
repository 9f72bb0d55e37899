/**
 * One trajectory held against its reference: what was done, seen and said, and what was needed. Invariant: only messages, tool
 * schemas and the reference are looked at; a write that the environment answered with an error was attempted, not done.
 */
import type { Action, Reference } from '../../domain/environment';
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

export interface Comparison {
  passed: boolean;
  /** False if the environment or a limit cut the trajectory off. */
  endedRegularly: boolean;
  firstRequest: string;
  userText: string;
  agentText: string;
  calls: Call[];
  records: ObservedRecord[];
  needed: Action[];
  /** Needed writes that were not done as needed. */
  missing: Action[];
  /** Writes that were done and not needed in this form. */
  surplus: Call[];
  /** Writes that only failed: no write of the same tool was done. */
  attempted: number;
  /** What is to be told: denials, and facts, which are all the rest. */
  facts: string[];
  statements: string[];
}

const sameAction = (a: Action, b: Action) => {
  const names = new Set([...Object.keys(a.arguments), ...Object.keys(b.arguments)]);
  return a.name === b.name && [...names].every((name) => spell(a.arguments[name]) === spell(b.arguments[name]));
};

const isError = (observation: string) => /^\W*error\b/i.test(observation);

/** Throws if the rollout has no reference: the target says that it tells one. */
export function compare({
  rollout,
  knowledge,
  denials,
}: {
  rollout: ScoredRollout;
  knowledge: ToolKnowledge;
  denials: readonly string[];
}): Comparison {
  const { reference } = rollout;
  if (!reference) {
    throw new OutsideFailure(
      'BadEnvironment',
      `rollout ${rollout.key}: no reference; a target with hasReference must tell it in every evaluate()`,
    );
  }
  const { calls, records, userTexts, agentTexts } = readMessages({ rollout, knowledge });
  const writes = calls.filter((call) => knowledge.isWrite(call.name));
  const done = writes.filter((call) => !call.failed);
  const { missing, surplus } = match({ needed: reference.actions, done });
  const agentText = agentTexts.join('\n');
  const unparsed = agentTexts.flatMap(namesBeforeParenthesis).filter((name) => knowledge.isWrite(name));
  return {
    passed: isSuccess(rollout),
    endedRegularly: rollout.stopReason === 'user_stop' || rollout.stopReason === 'agent_stop',
    firstRequest: userTexts[0] ?? '',
    userText: userTexts.join('\n'),
    agentText,
    calls,
    records,
    needed: reference.actions,
    missing,
    surplus,
    attempted:
      unparsed.length + writes.filter((call) => call.failed && !done.some((other) => other.name === call.name)).length,
    ...tellings(reference, denials),
  };
}

/** Names in front of a parenthesis: a call that did not parse is text. */
const namesBeforeParenthesis = (text: string) => [...text.matchAll(/(\w+)\(/g)].map(([, name]) => name ?? '');

const tellings = ({ tell }: Reference, denials: readonly string[]) => ({
  facts: tell.filter((text) => !denials.includes(text)),
  statements: tell.filter((text) => denials.includes(text)),
});

function readMessages({ rollout, knowledge }: { rollout: ScoredRollout; knowledge: ToolKnowledge }) {
  // What the user did with its own tools is nothing that the agent has seen.
  const messages = agentView(rollout.messages);
  const observations = new Map(
    messages.flatMap((message) => (message.role === 'tool' ? [[message.toolCallId, message.content]] : [])),
  );
  const calls: Call[] = [];
  const records: ObservedRecord[] = [];
  const userTexts: string[] = [];
  const agentTexts: string[] = [];
  const heard: string[] = [];
  for (const message of messages) {
    if (message.role !== 'assistant') {
      heard.push(message.content);
      if (message.role === 'user') userTexts.push(message.content);
      continue;
    }
    agentTexts.push(message.content);
    for (const { id, name, arguments: args } of message.toolCalls ?? []) {
      const observation = observations.get(id) ?? '';
      const failed = isError(observation);
      calls.push({ name, arguments: args, failed, before: heard.join('\n'), userBefore: userTexts.join('\n') });
      if (!failed) records.push(...knowledge.records(name, observation));
    }
  }
  return { calls, records, userTexts, agentTexts };
}

/** Pairs equal actions one to one; the order in which they were done does not matter. */
function match({ needed, done }: { needed: Action[]; done: Call[] }): { missing: Action[]; surplus: Call[] } {
  const surplus = [...done];
  const missing = needed.filter((action) => {
    const index = surplus.findIndex((call) => sameAction(call, action));
    if (index >= 0) surplus.splice(index, 1);
    return index < 0;
  });
  return { missing, surplus };
}

/** The observed records that an action's identifiers name. */
export function recordsOf({
  action,
  comparison,
  knowledge,
}: {
  action: Action;
  comparison: Comparison;
  knowledge: ToolKnowledge;
}): ObservedRecord[] {
  const identifiers = knowledge
    .identifierArguments(action.name)
    .map(({ argument }) => spell(action.arguments[argument]));
  return comparison.records.filter((record) =>
    record.identifiers.some((identifier) => identifiers.includes(identifier)),
  );
}

/** True if the user named this record, by its description or an identifier. */
export const isRequested = (record: ObservedRecord, comparison: Comparison): boolean =>
  [record.description, ...record.identifiers].some((name) => mentions(comparison.userText, name));
