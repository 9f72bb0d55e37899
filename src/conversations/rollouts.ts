/**
 * Conversations as scored rollouts, and the environment that they are taken to come from. Invariant: a rollout's key depends on what the
 * conversation holds and on nothing else, so that a file that is renamed, or grows, leaves the keys of the others as they are.
 */
import { digest } from '../store/hash';
import type { EnvironmentDescription } from '../domain/environment';
import { countsOf } from '../domain/statistics';
import type { JsonSchema, ToolCall, ToolSchema } from '../domain/messages';
import type { ScoredRollout } from '../domain/rollout';
import type { Conversation } from './line';

/** The environment that the conversations are taken to come from can't be played: it is only described. */
export function toRollouts({ conversations, name }: { conversations: readonly Conversation[]; name: string }): {
  rollouts: ScoredRollout[];
  /** By rollout key, as the file calls it. */
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
      `${all - policies.length} of ${all} conversations have no system message: what the agent was told is not known of them`,
    );
  if (counts.length > 1)
    notes.push(
      `${counts.length} different system messages; the commonest (${count} of ${all}) stands for the agent's policy`,
    );
  return policy;
}

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

/** The tools that the files define, else those that were called, with the arguments that were given. */
function toolsOf(conversations: readonly Conversation[], notes: string[]): ToolSchema[] {
  const defined = new Map<string, ToolSchema>();
  const ambiguous = new Set<string>();
  for (const tool of conversations.flatMap(({ tools = [] }) => tools)) {
    const first = defined.get(tool.name);
    if (!first) defined.set(tool.name, tool);
    else if (JSON.stringify(first) !== JSON.stringify(tool)) ambiguous.add(tool.name);
  }
  if (ambiguous.size > 0)
    notes.push(`tools that are defined in several ways, of which the first counts: ${[...ambiguous].join(', ')}`);
  if (defined.size > 0) return [...defined.values()].sort(byName);
  const calls = new Map<string, ToolCall[]>();
  for (const { messages } of conversations)
    for (const message of messages)
      for (const call of (message.role === 'assistant' && message.toolCalls) || [])
        if (!calls.get(call.name)?.push(call)) calls.set(call.name, [call]);
  if (calls.size > 0) notes.push('no tool definitions ("tools"): tools and their arguments are those that were called');
  return [...calls].map(([name, own]) => inferredTool(name, own)).sort(byName);
}

function inferredTool(name: string, calls: readonly ToolCall[]): ToolSchema {
  const given = [...new Set(calls.flatMap((call) => Object.keys(call.arguments)))].sort();
  const typeOfArgument = (argument: string): JsonSchema => {
    const having = calls.filter((call) => argument in call.arguments);
    const [type, ...others] = new Set(having.map((call) => typeOf(call.arguments[argument])));
    return type !== undefined && others.length === 0 ? { type } : {};
  };
  const required = given.filter((argument) => calls.every((call) => argument in call.arguments));
  return {
    name,
    description: '',
    parameters: {
      type: 'object',
      properties: Object.fromEntries(given.map((argument) => [argument, typeOfArgument(argument)])),
      ...(required.length > 0 && { required }),
    },
  };
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return value === null ? 'null' : typeof value;
}
