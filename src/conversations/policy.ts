/** The written policy: the system message that most conversations begin with. */
import type { Conversation } from './conversation';

export function policyOf(conversations: readonly Pick<Conversation, 'messages'>[]): {
  policy: string;
  notes: string[];
} {
  const counts = new Map<string, number>();
  for (const { messages } of conversations) {
    const policy = messages.find(({ role }) => role === 'system')?.content;
    if (policy) counts.set(policy, (counts.get(policy) ?? 0) + 1);
  }
  const all = conversations.length;
  const told = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const [[policy, count] = ['', 0]] = [...counts].sort((a, b) => b[1] - a[1]);
  return {
    policy,
    notes: [
      ...(told < all
        ? [`${all - told} of ${all} conversations have no system message: what the agent was told is not known of them`]
        : []),
      ...(counts.size > 1
        ? [`${counts.size} different system messages; the commonest (${count} of ${all}) stands for the agent's policy`]
        : []),
    ],
  };
}
