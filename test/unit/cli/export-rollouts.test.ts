/** `campaign export --rollouts` writes JSON lines that `campaign analyse` reads back. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeStatus } from '../../../src/cli/watch/snapshot';
import { readConversations } from '../../../src/conversations/read';
import type { Message, ToolSchema } from '../../../src/domain/messages';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { storeTools } from '../../../src/rollout/batch';
import { openFolderStore } from '../../../src/store/open-store';
import { campaignCommand } from '../../support/campaign-command';
import { brokenRollout, putRollouts, scoredRollout } from '../../support/scored-rollout';
import { inSteps } from '../../support/stored-keys';
import { newFolder, temporaryFolder } from '../../support/temporary-folder';

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
const HALF = '\ud83d';
const hostile: Message[] = [
  { role: 'assistant', content: '' },
  { role: 'user', content: `\u0000\u001b[31m\u202e</script>${HALF}`, toolCalls: [call('u', { phone: true })] },
  { role: 'tool', toolCallId: 'u', content: 'rings', requestor: 'user' },
  { role: 'assistant', content: 'x', toolCalls: [call('c', {})] },
  { role: 'tool', toolCallId: 'c', content: 'a'.repeat(100_000) },
];

const TOOLS: ToolSchema[] = [{ name: 'find_item', description: 'finds', parameters: { type: 'object' } }];

const rollout = (task: string, more: Partial<ScoredRollout> = {}): ScoredRollout =>
  scoredRollout({
    ...{ name: `${task}/${more.attempt ?? 0}`, task, reward: 1, messages: ordinary },
    ...more,
  });

const written = {
  base: [
    rollout('t1'),
    rollout('t1', { attempt: 1, reward: 0.25 }),
    brokenRollout('t2'),
    rollout('../../etc/passwd', { messages: hostile, reward: 0 }),
  ],
  trace: [
    rollout('t1', {
      key: 'f'.repeat(64),
      reference: { actions: [{ name: 'find_item', arguments: { name: 'lamp' } }], tell: ['L-1'] },
    }),
  ],
};

const home = temporaryFolder();
let folder: string;
beforeAll(async () => {
  const store = inSteps(openFolderStore(join(home, 'artifacts')), 'demo');
  const inputs = await storeTools(store, TOOLS);
  await putRollouts(store, 'base rollouts', written.base, { inputs });
  await putRollouts(store, 'test: trace', written.trace, { inputs });
  const snapshot = { name: 'demo', runId: '1', status: 'COMPLETED', startedAt: 1 };
  await writeStatus({ home, snapshot: { ...snapshot, activities: [], children: [] } });
});
beforeEach(() => void (folder = join(newFolder(), 'lines')));

const exported = () => campaignCommand(home, 'export', 'demo', folder, '--rollouts');
const files = () => readdirSync(folder).filter((name) => name.endsWith('.jsonl'));

it('writes messages, tools, rewards and ids that are read back, and a failed rollout with its error', async () => {
  const { text } = await exported();
  expect(text).toContain('5 rollouts, 1 of them failed (infrastructure)');
  expect(files()).toEqual(['base-rollouts.jsonl', 'test-trace.jsonl']);
  const { conversations, notes } = await readConversations({ files: files().map((name) => join(folder, name)) });
  const scored = [...written.base, ...written.trace].flatMap((one) => (one.status === 'scored' ? [one] : []));
  const readable = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value).replaceAll(JSON.stringify(HALF).slice(1, -1), '\uFFFD'));
  const byId = new Map(conversations.map((one) => [one.id, one]));
  for (const { key, task, reward, messages, reference } of scored)
    expect(byId.get(key)).toEqual(
      readable({ id: key, task, reward, messages, tools: TOOLS, ...(reference && { reference }) }),
    );
  expect(notes).toContainEqual(
    expect.stringMatching(/base-rollouts\.jsonl: a conversation with an error .*left out \(1\)/),
  );

  const lines = readFileSync(join(folder, 'base-rollouts.jsonl'), 'utf8');
  expect(lines).not.toContain(JSON.stringify(HALF).slice(1, -1));
  const failed = lines.split('\n').find((line) => line.includes('"error"'));
  expect(JSON.parse(failed!)).toEqual({
    ...{ id: written.base[2]?.key, task: 't2', error: { type: 'BadEnvironment', message: 'it ended' } },
    metadata: expect.objectContaining({ campaign: 'demo', stage: 'base rollouts', attempt: 0 }),
  });
});

it('replaces what it wrote, and nothing else', async () => {
  await exported();
  writeFileSync(join(folder, 'older.jsonl'), '');
  await exported();
  expect(files()).toHaveLength(2);
  rmSync(join(folder, '.campaign-export.json'));
  writeFileSync(join(folder, 'mine'), '');
  await expect(exported()).rejects.toThrow(/holds other things/);
});
