/** A home with a campaign whose rollouts are ordinary, broken and hostile, to be written in formats of others. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../src/artifacts/open-store';
import { notingUsage } from '../../src/artifacts/usage';
import { writeStatus } from '../../src/cli/watch/snapshot';
import type { Message } from '../../src/domain/messages';
import type { Rollout, ScoredRollout } from '../../src/domain/rollout';
import { ROLLOUTS_MEDIA_TYPE } from '../../src/rollout/read';
import { scoredRollout } from './scored-rollout';

const CAMPAIGN = 'demo';

const call = (id: string, values: Record<string, unknown>) => ({ id, name: 'find_item', arguments: values });
const ordinary: Message[] = [
  { role: 'system', content: 'the written policy' },
  { role: 'user', content: 'where are my lamp and my clock?' },
  {
    role: 'assistant',
    content: 'I look.',
    toolCalls: [call('call_0', { name: 'lamp' }), call('call_1', { name: 'clock', many: [1, { deep: null }] })],
  },
  { role: 'tool', toolCallId: 'call_1', content: 'item C-1' },
  { role: 'tool', toolCallId: 'call_0', content: 'item L-1' },
  { role: 'assistant', content: 'Both are here.' },
  { role: 'user', content: 'thanks' },
];

/** In JSON of JavaScript a half of a surrogate pair is allowed, and so is any nesting. */
export const HALF = '\ud83d';
const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
const hostile: Message[] = [
  { role: 'assistant', content: '' },
  { role: 'user', content: `\u0000\u001b[31m\u202e</script>${HALF}`, toolCalls: [call('u', { phone: true })] },
  { role: 'tool', toolCallId: 'u', content: 'rings', requestor: 'user' },
  { role: 'tool', toolCallId: 'of no call', content: '\\ud800 "\\' },
  { role: 'assistant', content: 'x', toolCalls: [call('same', { [HALF]: HALF }), call('deep', { deep: deep(1500) })] },
  { role: 'tool', toolCallId: 'same', content: 'a'.repeat(100_000) },
  { role: 'user', content: 'again' },
  { role: 'tool', toolCallId: 'deep', content: 'late' },
];

const rollout = (task: string, more: Partial<ScoredRollout> = {}): ScoredRollout =>
  scoredRollout({
    ...{ name: `${task}/${more.attempt ?? 0}`, task, reward: 1, messages: ordinary },
    ...{ usage: { promptTokens: 100, completionTokens: 20 }, seconds: 2.5, breakdown: { right: 1 } },
    ...more,
  });
const broken = (task: string): Rollout => {
  const { key } = scoredRollout({ name: `broken/${task}`, task, reward: 0 });
  return { status: 'broken', key, task, attempt: 0, error: { type: 'BadEnvironment', message: 'it ended' } };
};

export const written = {
  base: [
    rollout('t1'),
    rollout('t1', { attempt: 1, reward: 0.25, stopReason: 'max_steps' }),
    broken('t2'),
    rollout('../../etc/passwd', { messages: hostile, reward: 0, output: `last ${HALF}` }),
    rollout(`a/b\\c\u0000${'long '.repeat(60)}`, { messages: hostile }),
  ],
  trace: [
    rollout('t1', {
      key: 'f'.repeat(64),
      routed: { chosen: 'base', policy: { base: 'b', adapters: [] }, probabilities: { base: 0.9 } },
      reference: { actions: [{ name: 'find_item', arguments: { name: 'lamp' } }], tell: ['L-1'] },
      branch: 'special',
    }),
  ],
};

/** @returns the home, and the sha256 of the adapter that `test: trace` is made with. */
export async function writtenCampaign(
  batches: Record<string, Rollout[]> = named,
): Promise<{ home: string; adapter: string }> {
  const home = mkdtempSync(join(tmpdir(), 'written-'));
  const store = notingUsage(openFolderStore(join(home, 'artifacts')), () => CAMPAIGN);
  const mediaType = 'application/json';
  const adapter = await store.put({ key: 'adapter', producer: 'train', inputs: [], mediaType, body: '{}' });
  for (const [title, rollouts] of Object.entries(batches))
    await store.put({
      key: `rollouts/${title}`,
      producer: `rollouts: ${title}`,
      inputs: title === 'test: trace' ? [adapter] : [],
      mediaType: ROLLOUTS_MEDIA_TYPE,
      body: rollouts.map((one) => `${JSON.stringify(one)}\n`).join(''),
    });
  await store.noted();
  await store.close();
  const snapshot = { name: CAMPAIGN, runId: '1', status: 'COMPLETED', paused: false, startedAt: 1 };
  await writeStatus({ home, snapshot: { ...snapshot, activities: [], children: [] } });
  return { home, adapter: adapter.sha256 };
}
const named: Record<string, Rollout[]> = { 'base rollouts': written.base, 'test: trace': written.trace };
