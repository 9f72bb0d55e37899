/**
 * Conversations as scored rollouts, and the environment that they are taken to come from. Invariant: a rollout's key depends on what the
 * conversation holds and on nothing else, so that a file that is renamed, or grows, leaves the keys of the others as they are.
 */
import { digest } from '../artifacts/hash';
import type { EnvironmentDescription } from '../domain/environment';
import type { ScoredRollout } from '../domain/rollout';
import type { Conversation } from './conversation';
import { policyOf } from './policy';
import { toolsOf } from './tools';

export interface Read {
  rollouts: ScoredRollout[];
  /** By rollout key, as the file calls it. */
  ids: ReadonlyMap<string, string>;
  description: EnvironmentDescription;
  notes: string[];
}

export function toRollouts({ conversations, name }: { conversations: readonly Conversation[]; name: string }): Read {
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
