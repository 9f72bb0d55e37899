/** `campaign export --rollouts` writes JSON lines that `campaign analyse` reads back. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConversations } from '../../../src/conversations/read';
import { campaignCommand } from '../../support/campaign-command';
import { newFolder } from '../../support/temporary-folder';
import { HALF, TOOLS, written, writtenCampaign } from '../../support/written-campaign';

let home: string;
let folder: string;
beforeAll(async () => void (home = await writtenCampaign()));
beforeEach(() => void (folder = join(newFolder(), 'lines')));
afterAll(() => rmSync(home, { recursive: true, force: true }));

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
    expect.stringMatching(/base-rollouts\.jsonl: a conversation with an error and no reward is left out \(1\)/),
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
