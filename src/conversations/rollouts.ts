/**
 * Converts conversations into scored rollouts of an assumed environment. Invariant: a rollout's key depends on the content of its conversation alone, so
 * that keys stay the same when a file is renamed or grows.
 */
import { digest } from '../store/hash';
import type { EnvironmentDescription } from '../domain/environment';
import { countsOf } from '../domain/statistics';
import type { ToolSchema } from '../domain/messages';
import type { ScoredRollout } from '../domain/rollout';
import type { Conversation } from './line';

/** Returns rollouts with a description of their environment, which can't be played. */
export function toRollouts({ conversations, name }: { conversations: readonly Conversation[]; name: string }): {
  rollouts: ScoredRollout[];
  /** Ids of conversations in the file, by rollout key. */
  ids: ReadonlyMap<string, string>;
  description: EnvironmentDescription;
  notes: string[];
} {
  const attempts = counter();
  const copies = counter();
  const rollouts = conversations.map((conversation): ScoredRollout => {
    const { task, messages, reward, reference } = conversation;
    const content = digest({ task, messages, reward, reference });
    const copy = copies(content);
    return {
      status: 'scored',
      key: copy === 0 ? content : digest({ content, copy }),
      task,
      attempt: attempts(task),
      messages,
      stopReason: messages.at(-1)?.role === 'user' ? 'user_stop' : 'agent_stop',
      reward,
      breakdown: {},
      ...(reference && { reference }),
      rows: [],
      steps: messages.filter(({ role }) => role === 'assistant').length,
      usage: { promptTokens: 0, completionTokens: 0 },
      seconds: 0,
    };
  });
  const notes: string[] = [];
  const policy = policyOf(conversations, notes);
  const tools = toolsOf(conversations, notes);
  return {
    rollouts,
    ids: new Map(rollouts.map(({ key }, n) => [key, conversations[n]?.id ?? key])),
    description: {
      name,
      version: digest({ policy, tools }),
      policy,
      tools,
      maxSteps: Math.max(1, ...rollouts.map(({ steps }) => steps)),
      hasReference: conversations.length > 0 && conversations.every(({ reference }) => reference !== undefined),
    },
    notes,
  };
}

/** Counts how often a text was there before. */
function counter(): (text: string) => number {
  const counts = new Map<string, number>();
  return (text) => {
    const before = counts.get(text) ?? 0;
    counts.set(text, before + 1);
    return before;
  };
}

/** The written policy: the system message that most conversations begin with. */
function policyOf(conversations: readonly Conversation[], notes: string[]): string {
  const all = conversations.length;
  const policies = conversations.flatMap(
    ({ messages }) => messages.find(({ role }) => role === 'system')?.content || [],
  );
  const counts = [...countsOf(policies)].sort((a, b) => b[1] - a[1]);
  const [[policy, count] = ['', 0]] = counts;
  if (policies.length < all)
    notes.push(
      `${all - policies.length} of ${all} conversations have no system message: their instructions to the agent are unknown`,
    );
  if (counts.length > 1)
    notes.push(
      `${counts.length} different system messages; the commonest (${count} of ${all}) stands for the agent's policy`,
    );
  return policy;
}

/** The tools that the files define, of several definitions the first, else the names of those that were called. */
function toolsOf(conversations: readonly Conversation[], notes: string[]): ToolSchema[] {
  const tools = new Map<string, ToolSchema>();
  for (const tool of conversations.flatMap(({ tools = [] }) => tools))
    if (!tools.has(tool.name)) tools.set(tool.name, tool);
  if (tools.size === 0) {
    const calls = conversations.flatMap(({ messages }) =>
      messages.flatMap((message) => (message.role === 'assistant' && message.toolCalls) || []),
    );
    if (calls.length > 0) notes.push('no tool definitions ("tools"): the tools are those that were called');
    const parameters = { type: 'object', properties: {} };
    for (const { name } of calls) tools.set(name, { name, description: '', parameters });
  }
  return [...tools.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
