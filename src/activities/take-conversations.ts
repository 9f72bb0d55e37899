/** Conversations that somebody brings in a file, put into the store. Invariant: every line of the file could be used, or none is. */
import { z } from 'zod';
import { sha256 } from '../artifacts/hash';
import { takeConversations } from '../conversations/read';
import { messageSchema, toolSchema } from '../domain/messages';
import type { Dependencies } from './context';
import type { ControlActivities } from './types';

/** The artifact. */
export const conversationsSchema = z.array(
  z.object({ id: z.string(), messages: z.array(messageSchema), tools: z.array(toolSchema).optional() }),
);

export function createTakeConversations({ store }: Dependencies): Pick<ControlActivities, 'takeConversations'> {
  return {
    async takeConversations(input) {
      const taken = await takeConversations(input);
      // Not canonical: a call's arguments stay in the order in which they were written.
      const body = JSON.stringify(taken.map(({ id, messages, tools }) => ({ id, messages, ...(tools && { tools }) })));
      const about = { producer: 'takeConversations', inputs: [], mediaType: 'application/json' };
      const conversations = await store.put({ key: `conversations/${sha256(body)}`, ...about, body });
      return { conversations, count: taken.length };
    },
  };
}
