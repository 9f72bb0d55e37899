/**
 * Conversations as scored rollouts, and the environment that they are taken to come from. Invariant: a rollout's key depends on what the
 * conversation holds and on nothing else, so that a file that is renamed, or grows, leaves the keys of the others as they are.
 */
import { digest } from '../artifacts/hash';
import type { EnvironmentDescription } from '../domain/environment';
import type { JsonSchema, ToolCall, ToolSchema } from '../domain/messages';
import type { ScoredRollout } from '../domain/rollout';
import type { Conversation } from './messages';

interface ConversationRollouts {
  rollouts: ScoredRollout[];
  /** By rollout key, as the file calls it. */
  ids: ReadonlyMap<string, string>;
  description: EnvironmentDescription;
  notes: string[];
}

export function toRollouts({
  conversations,
  name,
}: {
  conversations: readonly Conversation[];
  name: string;
}): ConversationRollouts {
  const attempts = counter();
  const copies = counter();
  const rollouts = conversations.map((conversation) => {
    const content = contentOf(conversation);
    const copy = copies(content);
    return toRollout({
      conversation,
      key: copy === 0 ? content : digest({ content, copy }),
      attempt: attempts(conversation.task),
    });
  });
  const { policy, notes: policyNotes } = policyOf(conversations);
  const { tools, notes: toolNotes } = toolsOf(conversations);
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
    notes: [...policyNotes, ...toolNotes],
  };
}

const contentOf = ({ task, messages, reward, reference }: Conversation): string =>
  digest({ task, messages, reward, reference });

/** How often something was there before. */
function counter(): (what: string) => number {
  const counts = new Map<string, number>();
  return (what) => {
    const before = counts.get(what) ?? 0;
    counts.set(what, before + 1);
    return before;
  };
}

function toRollout(o: { conversation: Conversation; key: string; attempt: number }): ScoredRollout {
  const { conversation, key, attempt } = o;
  const { task, messages, reward, reference } = conversation;
  return {
    status: 'scored',
    key,
    task,
    attempt,
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
}

/** The written policy: the system message that most conversations begin with. */
function policyOf(conversations: readonly Pick<Conversation, 'messages'>[]): {
  policy: string;
  notes: string[];
} {
  const counts = new Map<string, number>();
  for (const { messages } of conversations) {
    const policy = messages.find(({ role }) => role === 'system')?.content;
    if (policy) counts.set(policy, (counts.get(policy) ?? 0) + 1);
  }
  const all = conversations.length;
  const withPolicy = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const [[policy, count] = ['', 0]] = [...counts].sort((a, b) => b[1] - a[1]);
  return {
    policy,
    notes: [
      ...(withPolicy < all
        ? [
            `${all - withPolicy} of ${all} conversations have no system message: what the agent was told is not known of them`,
          ]
        : []),
      ...(counts.size > 1
        ? [`${counts.size} different system messages; the commonest (${count} of ${all}) stands for the agent's policy`]
        : []),
    ],
  };
}

/** Those that the files define, else those that were called, with the arguments that were given. */
function toolsOf(conversations: readonly Conversation[]): { tools: ToolSchema[]; notes: string[] } {
  const calls = conversations.flatMap(({ messages }) =>
    messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : [])),
  );
  const defined = definedTools(conversations);
  if (defined.tools.length > 0) return defined;
  const names = [...new Set(calls.map(({ name }) => name))].sort();
  const tools = names.map((name) => inferred({ name, calls: calls.filter((call) => call.name === name) }));
  const notes = ['no tool definitions ("tools"): tools and their arguments are those that were called'];
  return { tools, notes: tools.length > 0 ? notes : [] };
}

/** By name, in the order of their names; the first definition of several counts. */
function definedTools(conversations: readonly Conversation[]): { tools: ToolSchema[]; notes: string[] } {
  const byName = new Map<string, ToolSchema>();
  const several = new Set<string>();
  for (const { tools = [] } of conversations)
    for (const tool of tools) {
      const known = byName.get(tool.name);
      if (!known) byName.set(tool.name, tool);
      else if (JSON.stringify(known) !== JSON.stringify(tool)) several.add(tool.name);
    }
  const names = [...byName.keys()].sort();
  return {
    tools: names.flatMap((name) => byName.get(name) ?? []),
    notes:
      several.size > 0
        ? [`tools that are defined in several ways, of which the first counts: ${[...several].join(', ')}`]
        : [],
  };
}

function inferred({ name, calls }: { name: string; calls: readonly ToolCall[] }): ToolSchema {
  const given = [...new Set(calls.flatMap((call) => Object.keys(call.arguments)))].sort();
  const properties = Object.fromEntries(
    given.map((argument): [string, JsonSchema] => {
      const types = new Set(
        calls.flatMap((call) => (argument in call.arguments ? [typeOf(call.arguments[argument])] : [])),
      );
      const [type] = types;
      return [argument, types.size === 1 && type !== undefined ? { type } : {}];
    }),
  );
  const required = given.filter((argument) => calls.every((call) => argument in call.arguments));
  return {
    name,
    description: '',
    parameters: { type: 'object', properties, ...(required.length > 0 && { required }) },
  };
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'null';
  return typeof value;
}
