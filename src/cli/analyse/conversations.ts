/** What the files hold, read and counted before anything is asked. Invariant: conversations that give no contrast are refused here, for nothing. */
import { stat } from 'node:fs/promises';
import type { EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { readConversations } from '../../conversations/read';
import { toRollouts } from '../../conversations/rollouts';
import { UserError } from '../errors';

export interface Loaded {
  rollouts: ScoredRollout[];
  /** By rollout key, as the file calls it. */
  ids: ReadonlyMap<string, string>;
  description: EnvironmentDescription;
  counts: { total: number; failed: number; passed: number; tokens: number };
  notes: string[];
}

/** Characters of a token, roughly: English and JSON. */
export const CHARACTERS_PER_TOKEN = 4;
export const tokensIn = (text: string): number => Math.ceil(text.length / CHARACTERS_PER_TOKEN);

/** @throws UserError that names each bad line. */
export async function loadConversations(o: {
  files: readonly string[];
  scorer?: string | undefined;
  name: string;
}): Promise<Loaded> {
  const { files, scorer, name } = o;
  await checkSizes(files);
  const { conversations, notes } = await readConversations({ files, scorer }).catch((error: unknown) => {
    if (!isFailure(error, 'BadInput')) throw error;
    const [first = '', ...others] = error.message.split('\n');
    throw new UserError(first, others);
  });
  const read = toRollouts({ conversations, name });
  return {
    rollouts: read.rollouts,
    ids: read.ids,
    description: read.description,
    counts: counted(read.rollouts),
    notes: [...notes, ...read.notes],
  };
}

/** `note`: what was left out. @throws UserError without failures or without successes. */
export function counted(rollouts: readonly ScoredRollout[], note?: string): Loaded['counts'] {
  const passed = rollouts.filter(isSuccess).length;
  const failed = rollouts.length - passed;
  const lacks = failed === 0 ? 'failed' : passed === 0 ? 'passed' : undefined;
  if (lacks !== undefined)
    throw new UserError(
      `none of ${rollouts.length} conversations ${lacks}: lacking capabilities show by contrast; add some that ${lacks} ` +
        '(success is a reward of 1, or passed: true)',
      note === undefined ? [] : [note],
    );
  const tokens = rollouts.reduce((sum, { messages }) => sum + tokensIn(JSON.stringify(messages)), 0);
  return { total: rollouts.length, failed, passed, tokens };
}

/** A text of Node can't be longer, and all files are read into memory. */
const MOST_MIB = 512;

async function checkSizes(files: readonly string[]): Promise<void> {
  // A file that is not there is told where it is read.
  const sizes = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  const mib = Math.ceil(sizes.reduce((sum, size) => sum + size, 0) / 2 ** 20);
  if (mib > MOST_MIB)
    throw new UserError(
      `${files.join(', ')} ${files.length > 1 ? 'have' : 'has'} ${mib} MiB, and at most ${MOST_MIB} MiB are read at once; analyse a part of the conversations`,
    );
}
