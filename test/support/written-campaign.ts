/** A home with a campaign whose rollouts are ordinary, failed and hostile, to be exported. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../src/store/open-store';
import { writeStatus } from '../../src/cli/watch/snapshot';
import type { Message, ToolSchema } from '../../src/domain/messages';
import type { Rollout, ScoredRollout } from '../../src/domain/rollout';
import { storeTools } from '../../src/rollout/batch';
import { ROLLOUTS_MEDIA_TYPE } from '../../src/rollout/read';
import { scoredRollout } from './scored-rollout';
import { inSteps } from './stored-keys';

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

/** Half of a surrogate pair. */
export const HALF = '\ud83d';
const hostile: Message[] = [
  { role: 'assistant', content: '' },
  { role: 'user', content: `\u0000\u001b[31m\u202e</script>${HALF}`, toolCalls: [call('u', { phone: true })] },
  { role: 'tool', toolCallId: 'u', content: 'rings', requestor: 'user' },
  { role: 'assistant', content: 'x', toolCalls: [call('c', {})] },
  { role: 'tool', toolCallId: 'c', content: 'a'.repeat(100_000) },
];

export const TOOLS: ToolSchema[] = [{ name: 'find_item', description: 'finds', parameters: { type: 'object' } }];

const rollout = (task: string, more: Partial<ScoredRollout> = {}): ScoredRollout =>
  scoredRollout({
    ...{ name: `${task}/${more.attempt ?? 0}`, task, reward: 1, messages: ordinary },
    ...more,
  });
const broken = (task: string): Rollout => {
  const { key } = scoredRollout({ name: `broken/${task}`, task, reward: 0 });
  return { status: 'broken', key, task, attempt: 0, error: { type: 'BadEnvironment', message: 'it ended' } };
};

export const written = {
  base: [
    rollout('t1'),
    rollout('t1', { attempt: 1, reward: 0.25 }),
    broken('t2'),
    rollout('../../etc/passwd', { messages: hostile, reward: 0 }),
  ],
  trace: [
    rollout('t1', {
      key: 'f'.repeat(64),
      reference: { actions: [{ name: 'find_item', arguments: { name: 'lamp' } }], tell: ['L-1'] },
    }),
  ],
};

/** Returns the home. */
export async function writtenCampaign(): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'written-'));
  const store = inSteps(openFolderStore(join(home, 'artifacts')), CAMPAIGN);
  const inputs = await storeTools(store, TOOLS);
  for (const [title, rollouts] of Object.entries({ 'base rollouts': written.base, 'test: trace': written.trace }))
    await store.put({
      key: `rollouts/${title}`,
      producer: `rollouts: ${title}`,
      inputs,
      mediaType: ROLLOUTS_MEDIA_TYPE,
      body: rollouts.map((one) => `${JSON.stringify(one)}\n`).join(''),
    });
  const snapshot = { name: CAMPAIGN, runId: '1', status: 'COMPLETED', startedAt: 1 };
  await writeStatus({ home, snapshot: { ...snapshot, activities: [], children: [] } });
  return home;
}
