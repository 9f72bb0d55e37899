/**
 * What the files hold, read and counted before anything is asked. Conversations that give no contrast are refused here, for nothing; one that no
 * request can hold is left out, and named.
 */
import { stat } from 'node:fs/promises';
import type { Analyst } from '../../analyst/analyst';
import { readConversations } from '../../conversations/read';
import { toRollouts } from '../../conversations/rollouts';
import type { SelectionRule } from '../../domain/campaign';
import { tokensOf } from '../../domain/endpoints';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { UserError } from '../errors';

/** `ids`: by rollout key, as the files call them; also of those that are left out. */
export interface Conversations extends ReturnType<typeof toRollouts> {
  counts: { total: number; failed: number; passed: number; tokens: number };
}

/** Conversations that are left out by name; of more there is the number. */
const MOST_NAMES = 10;

/** @throws UserError, or BadInput that names each bad line. */
export async function loadConversations(o: {
  files: readonly string[];
  scorer: string | undefined;
  name: string;
  analyst: Analyst;
  rule: SelectionRule;
}): Promise<Conversations> {
  const { files, scorer, name, analyst, rule } = o;
  await checkSizes(files);
  const { conversations, notes } = await readConversations({ files, scorer });
  const all = toRollouts({ conversations, name });
  const { rollouts, description, ids } = all;
  requireContrast(rollouts);
  const unsuited = analyst.unsuited?.(description, rule);
  if (unsuited !== undefined) throw new UserError(unsuited);

  const tooLong = new Set(analyst.tooLong?.({ rollouts, description, rule }));
  const fitting = rollouts.filter(({ key }) => !tooLong.has(key));
  const names = [...tooLong].slice(0, MOST_NAMES).map((key) => ids.get(key) ?? key);
  const more = tooLong.size > names.length ? ` and ${tooLong.size - names.length} more` : '';
  const leftOut =
    `left out, too long for a request: ${names.join(', ')}${more}; ` +
    'raise contextTokens with --config, or lower maxTokens, messageChars or argumentChars';
  if (tooLong.size > 0) requireContrast(fitting, leftOut);

  const total = fitting.length;
  const passed = fitting.filter(isSuccess).length;
  const tokens = fitting.reduce((sum, { messages }) => sum + tokensOf(JSON.stringify(messages).length), 0);
  return {
    ...all,
    rollouts: fitting,
    counts: { total, failed: total - passed, passed, tokens },
    notes: [...notes, ...all.notes, ...(tooLong.size > 0 ? [leftOut] : [])],
  };
}

/** @throws UserError without failures or without successes. */
function requireContrast(rollouts: readonly ScoredRollout[], ...notes: string[]): void {
  const missing = rollouts.some(isSuccess) ? 'failed' : 'passed';
  if (rollouts.some(isSuccess) && !rollouts.every(isSuccess)) return;
  throw new UserError(
    `none of ${rollouts.length} conversations ${missing}: lacking capabilities show by contrast; add some that ${missing} ` +
      '(success is a reward of 1, or passed: true)',
    notes,
  );
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
