/**
 * What the files hold, read and counted before anything is asked. Invariants: conversations that give no contrast are refused here, for nothing;
 * one that no request can hold is left out, and named.
 */
import { stat } from 'node:fs/promises';
import type { Analyst } from '../../analyst/analyst';
import { readConversations } from '../../conversations/read';
import { toRollouts } from '../../conversations/rollouts';
import type { SelectionRule } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { tokensOf } from '../../domain/endpoints';
import { UserError } from '../errors';

export interface Conversations {
  rollouts: ScoredRollout[];
  /** By rollout key, as the file calls it. */
  ids: ReadonlyMap<string, string>;
  description: EnvironmentDescription;
  counts: { total: number; failed: number; passed: number; tokens: number };
  notes: string[];
}

/** @throws UserError that names each bad line. */
export async function loadConversations(o: {
  files: readonly string[];
  scorer?: string | undefined;
  name: string;
}): Promise<Conversations> {
  const { files, scorer, name } = o;
  await checkSizes(files);
  const { conversations, notes } = await readConversations({ files, scorer }).catch((error: unknown) => {
    if (!isFailure(error, 'BadInput')) throw error;
    const [first = '', ...others] = error.message.split('\n');
    throw new UserError(first, others);
  });
  const read = toRollouts({ conversations, name });
  return { ...read, counts: countsOf(read.rollouts), notes: [...notes, ...read.notes] };
}

/** `note`: what was left out. @throws UserError without failures or without successes. */
function countsOf(rollouts: readonly ScoredRollout[], note?: string): Conversations['counts'] {
  const passed = rollouts.filter(isSuccess).length;
  const failed = rollouts.length - passed;
  const missing = failed === 0 ? 'failed' : passed === 0 ? 'passed' : undefined;
  if (missing !== undefined)
    throw new UserError(
      `none of ${rollouts.length} conversations ${missing}: lacking capabilities show by contrast; add some that ${missing} ` +
        '(success is a reward of 1, or passed: true)',
      note === undefined ? [] : [note],
    );
  const tokens = rollouts.reduce((sum, { messages }) => sum + tokensOf(JSON.stringify(messages).length), 0);
  return { total: rollouts.length, failed, passed, tokens };
}

/** A text of Node can't be longer, and all files are read into memory. */
const MOST_MIB = 512;

async function checkSizes(files: readonly string[]): Promise<void> {
  // A file that is not there is told where it is read.
  const stats = await Promise.all(files.map((file) => stat(file).catch(() => undefined)));
  const mib = Math.ceil(stats.reduce((sum, file) => sum + (file?.size ?? 0), 0) / 2 ** 20);
  if (mib > MOST_MIB)
    throw new UserError(
      `${files.join(', ')} ${files.length > 1 ? 'have' : 'has'} ${mib} MiB, and at most ${MOST_MIB} MiB are read at once; analyse a part of the conversations`,
    );
}

const MOST_NAMES = 10;

/** Without those that the analyst can't show in one request. @throws UserError where the others give no contrast. */
export function withoutTooLong(o: {
  conversations: Conversations;
  analyst: Analyst;
  rule: SelectionRule;
}): Conversations {
  const { conversations, analyst, rule } = o;
  const { rollouts, description, ids } = conversations;
  const keys = new Set(analyst.tooLong?.({ rollouts, description, rule }));
  if (keys.size === 0) return conversations;
  const names = [...keys].slice(0, MOST_NAMES).map((key) => ids.get(key) ?? key);
  const more = keys.size > MOST_NAMES ? ` and ${keys.size - MOST_NAMES} more` : '';
  const note =
    `left out, too long for a request: ${names.join(', ')}${more}; ` +
    'raise contextTokens with --config, or lower maxTokens, messageChars or argumentChars';
  const fitting = rollouts.filter(({ key }) => !keys.has(key));
  return {
    ...conversations,
    rollouts: fitting,
    counts: countsOf(fitting, note),
    notes: [...conversations.notes, note],
  };
}
