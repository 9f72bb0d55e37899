/** Reads and counts the files before a language model is asked. Conversations without a failure are refused. */
import type { Analyst } from '../../analyst/analyst';
import { readConversations } from '../../conversations/read';
import { toRollouts } from '../../conversations/rollouts';
import type { SelectionRule } from '../../domain/campaign';
import { tokensOf } from '../../domain/endpoints';
import { isSuccess } from '../../domain/rollout';
import { UserError } from '../errors';

/** `ids`: by rollout key, as the files call them. */
export interface Conversations extends ReturnType<typeof toRollouts> {
  counts: { total: number; failed: number; passed: number; tokens: number };
}

/** @throws UserError, or BadInput that names each bad line. */
export async function loadConversations(o: {
  files: readonly string[];
  scorer: string | undefined;
  name: string;
  model?: { analyst: Analyst; rule: SelectionRule } | undefined;
}): Promise<Conversations> {
  const { files, scorer, name, model } = o;
  const { conversations, notes } = await readConversations({ files, scorer });
  const all = toRollouts({ conversations, name });
  const { rollouts, description } = all;
  const total = rollouts.length;
  const passed = rollouts.filter(isSuccess).length;
  if (passed === total)
    throw new UserError(
      'invalid_value',
      'conversations',
      `${total === 0 ? 'no conversation is left' : `no conversation failed and ${total} passed`}: there is no failure to explain; add some that failed (a reward below 1, or passed: false)`,
      notes,
    );
  const unsuited = model?.analyst.unsuited?.(description, model.rule);
  if (unsuited !== undefined) throw new UserError('invalid_value', 'conversations', unsuited);
  const tokens = rollouts.reduce((sum, { messages }) => sum + tokensOf(JSON.stringify(messages).length), 0);
  return { ...all, counts: { total, failed: total - passed, passed, tokens }, notes: [...notes, ...all.notes] };
}
