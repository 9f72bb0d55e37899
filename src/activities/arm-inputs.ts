/** Files that an arm trains on, put into the store: environment modules of a folder, conversations of a file. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../artifacts/hash';
import { takeConversations } from '../conversations/read';
import { messageSchema, toolSchema } from '../domain/messages';
import { moduleFiles } from '../sandbox/source';
import type { Dependencies } from './context';
import type { ControlActivities } from './types';

export function createTakeModules({ store }: Dependencies): Pick<ControlActivities, 'takeModules'> {
  return {
    async takeModules({ folder }) {
      const taken = [];
      for (const file of await moduleFiles(folder)) {
        const body = await readFile(join(folder, file));
        const about = { producer: 'takeModules', inputs: [], mediaType: 'text/javascript' };
        taken.push({ file, module: await store.put({ key: `module/${sha256(body)}`, ...about, body }) });
      }
      return taken;
    },
  };
}

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
