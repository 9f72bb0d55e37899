/** Files that an arm trains on, put into the store: environment modules of a folder, conversations of a file. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../artifacts/hash';
import { takeConversations as readConversations } from '../conversations/read';
import { messageSchema, toolSchema } from '../domain/messages';
import { moduleFiles } from '../sandbox/source';
import type { Dependencies } from './context';
import type { ArtifactRef } from '../domain/artifacts';

/** The modules of a folder, by the names of their files. */
export async function takeModules(
  { store }: Pick<Dependencies, 'store'>,
  { folder }: { folder: string },
): Promise<{ file: string; module: ArtifactRef }[]> {
  const taken = [];
  for (const file of await moduleFiles(folder)) {
    const body = await readFile(join(folder, file));
    const about = { producer: 'takeModules', inputs: [], mediaType: 'text/javascript' };
    taken.push({ file, module: await store.put({ key: `module/${sha256(body)}`, ...about, body }) });
  }
  return taken;
}

/** The artifact. */
export const conversationsSchema = z.array(
  z.object({ id: z.string(), messages: z.array(messageSchema), tools: z.array(toolSchema).optional() }),
);

/** The conversations of a file (docs/conversations.md) with at least this reward, and how many they are. */
export async function takeConversations(
  { store }: Pick<Dependencies, 'store'>,
  input: { file: string; minReward: number },
): Promise<{ conversations: ArtifactRef; count: number }> {
  const taken = await readConversations(input);
  // Not canonical: a call's arguments stay in the order in which they were written.
  const body = JSON.stringify(taken.map(({ id, messages, tools }) => ({ id, messages, ...(tools && { tools }) })));
  const about = { producer: 'takeConversations', inputs: [], mediaType: 'application/json' };
  const conversations = await store.put({ key: `conversations/${sha256(body)}`, ...about, body });
  return { conversations, count: taken.length };
}
