/** Conversations to learn from: those of a file with at least this reward. Throws BadInput where the file can't be used, or has none. */
import { OutsideFailure } from '../domain/failures';
import type { Conversation } from './conversation';
import { readConversations } from './read';

export async function takeConversations({
  file,
  minReward,
}: {
  file: string;
  minReward: number;
}): Promise<Conversation[]> {
  const { conversations } = await readConversations({ files: [file] });
  const taken = conversations.filter(({ reward }) => reward >= minReward);
  if (taken.length > 0) return taken;
  const best = Math.max(...conversations.map(({ reward }) => reward));
  throw new OutsideFailure(
    'BadInput',
    `${file}: none of its ${conversations.length} conversations has a reward of ${minReward} or more (the best has ${best}); ` +
      'lower minReward, or name a file of successful ones',
  );
}
