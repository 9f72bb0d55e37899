/** Rollouts in formats of others, as `campaign export --conversations` writes them: they are read again as what they were. `make test-logs` has the real readers. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { textsInZip } from '../../../src/conversations/inspect-log';
import { readConversations } from '../../../src/conversations/read';
import type { Message } from '../../../src/domain/messages';
import { campaignCommand } from '../../support/campaign-command';
import { HALF, written, writtenCampaign } from '../../support/written-campaign';
import { newFolder } from '../../support/temporary-folder';

let home: string;
let adapter: string;
let folder: string;
beforeAll(async () => void ({ home, adapter } = await writtenCampaign()));
beforeEach(() => void (folder = join(newFolder(), 'logs')));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const exported = (...options: string[]) => campaignCommand(home, 'export', 'demo', folder, ...options);
const filesIn = () =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && !one.name.startsWith('.'))
    .map((one) => join(one.parentPath, one.name))
    .sort();

/** As any reader has it: with whole characters, arguments of bounded depth, and without what the agent did not see of its user's calls. */
const readable = (messages: readonly Message[]): unknown =>
  JSON.parse(
    JSON.stringify(
      messages.map((message) =>
        message.role === 'user' || message.role === 'tool'
          ? { ...message, toolCalls: undefined, requestor: undefined }
          : message,
      ),
    )
      .replaceAll('\\ud83d', '\ufffd')
      .replace(/\{"deep":\[.*?\]+\}/, '{"not written":"it is nested too deep"}'),
  );

describe('a log of Inspect', () => {
  it('is there for each batch, with what Inspect needs, and is read again as it was', async () => {
    const { text } = await exported('--conversations', 'inspect');
    expect(text).toContain('rollouts: 6, batches: 2');
    expect(filesIn().map((file) => file.slice(folder.length + 1))).toEqual(['base-rollouts.eval', 'test-trace.eval']);
    const { conversations, notes } = await readConversations({ files: filesIn() });
    expect(conversations.map(({ reward, messages }) => ({ reward, messages }))).toEqual(
      [written.base[4], written.base[3], written.base[0], written.base[1], ...written.trace].flatMap((one) =>
        one?.status === 'scored' ? [{ reward: one.reward, messages: readable(one.messages) }] : [],
      ),
    );
    expect(conversations.map(({ id }) => id).filter((id) => /t1/.test(id))).toEqual([
      'base-rollouts.eval:t1-1',
      'base-rollouts.eval:t1-2',
      'test-trace.eval:t1-1',
    ]);
    // A broken rollout is no failure.
    expect(notes).toEqual([expect.stringMatching(/left out 1 of 5 samples: it ended with an error$/)]);
  });

  it('tells of each sample where it comes from, and counts what was scored alone', async () => {
    await exported('--conversations', 'inspect');
    const entries = new Map<string, Record<string, unknown>>();
    for await (const { name, text } of textsInZip(join(folder, 'test-trace.eval'), /./))
      entries.set(name, JSON.parse(text) as Record<string, unknown>);
    expect([...entries.keys()]).toEqual(['header.json', 'samples/t1_epoch_1.json', 'summaries.json']);
    const used = { input_tokens: 100, output_tokens: 20, total_tokens: 120 };
    expect(entries.get('samples/t1_epoch_1.json')).toMatchObject({
      metadata: {
        ...{ campaign: 'demo', stage: 'test', arm: 'trace', rollout: 'f'.repeat(64), task: 't1', attempt: 0 },
        // The router chose the base.
        ...{
          seed: expect.any(Number) as number,
          adapters: [],
          routed: 'base',
          branch: 'special',
          stop_reason: 'agent_stop',
        },
      },
      model_usage: { 'campaign/trace': used },
      scores: { reward: { value: 1, metadata: { right: 1 } } },
      input: [{ role: 'system' }, { role: 'user' }],
    });
    expect(entries.get('header.json')).toMatchObject({ eval: { task: 'test', model: 'campaign/trace' } });
    for await (const { text } of textsInZip(join(folder, 'base-rollouts.eval'), /header/))
      expect(JSON.parse(text)).toMatchObject({
        results: {
          ...{ total_samples: 5, completed_samples: 4 },
          scores: [
            {
              scored_samples: 4,
              unscored_samples: 1,
              metrics: { mean: { value: 2.25 / 4 }, success_rate: { value: 0.5 } },
            },
          ],
        },
      });
  });
});

describe('trajectories (ATIF)', () => {
  it('are a file each, and are read again as they were', async () => {
    const { text } = await exported('--conversations', 'atif');
    expect(text).toContain('rollouts: 5, batches: 2; left out, as they have no conversation: 1 broken');
    const { conversations } = await readConversations({ files: filesIn() });
    const scored = [...written.base, ...written.trace].flatMap((one) => (one.status === 'scored' ? [one] : []));
    const byId = new Map(conversations.map((one) => [one.id, one]));
    for (const { key, task, reward, messages } of scored) {
      const one = byId.get(key);
      expect([one?.task, one?.reward]).toEqual([task, reward]);
      // A result that answers no call of its step has lost whose it is.
      const results = (some: readonly Message[]) => some.map((message) => ({ ...message, toolCallId: undefined }));
      expect(results(one?.messages ?? [])).toEqual(results(readable(messages) as Message[]));
    }
    const [file] = filesIn().filter((name) => name.includes('test-trace'));
    expect(JSON.parse(readFileSync(file!, 'utf8'))).toMatchObject({
      schema_version: 'ATIF-v1.7',
      agent: { version: 'base', model_name: 'campaign/trace' },
      final_metrics: { total_prompt_tokens: 100, total_completion_tokens: 20, total_steps: 5 },
      extra: { reward: 1, stage: 'test', adapters: [] },
    });
  });
});

it('has names that lead nowhere else, whatever a task is called, and no half characters', async () => {
  await exported('--conversations', 'atif');
  for (const file of filesIn()) {
    expect(file.slice(folder.length)).toMatch(/^\/(base-rollouts|test-trace)\/[\w=+][\w.=+-]{0,120}\.json$/);
    expect(readFileSync(file, 'utf8')).not.toContain(JSON.stringify(HALF).slice(1, -1));
  }
  await exported('--conversations', 'inspect');
  for await (const { name } of textsInZip(join(folder, 'base-rollouts.eval'), /^samples/))
    expect(name).toMatch(/^samples\/(t\d|etc-passwd-\w{8}|a-b-c-long-[\w-]+)_epoch_\d\.json$/);
});

it('takes the filters of the view, and says which there are', async () => {
  const { text } = await exported('--conversations', 'inspect', '--filter', 'stage=test', 'arm=trace');
  expect(text).toContain('rollouts: 1, batches: 1; `inspect view');
  expect(filesIn()).toHaveLength(1);
  await exported('--conversations', 'atif', '--filter', 'outcome=failed');
  expect(filesIn()).toHaveLength(2);
  await expect(exported('--conversations', 'atif', '--filter', 'model=x')).rejects.toThrow(
    /--filter is model=x; give NAME=VALUE, where NAME is one of stage, arm, task, .*figure/,
  );
  await expect(exported('--conversations', 'atif', '--filter', 'task=t9')).rejects.toThrow(/no rollouts with task=t9/);
  await expect(exported('--filter', 'task=t1')).rejects.toThrow(/--filter is of conversations/);
});

it('replaces what it wrote, and nothing else', async () => {
  await exported('--conversations', 'atif');
  await exported('--conversations', 'inspect');
  expect(filesIn()).toHaveLength(2);
  rmSync(join(folder, '.campaign-export.json'));
  writeFileSync(join(folder, 'mine'), '');
  await expect(exported('--conversations', 'inspect')).rejects.toThrow(/holds other things/);
});

it('leads to the adapters of its policy', async () => {
  const trained = written.trace.map((one) => {
    const copy = { ...one };
    delete copy.routed;
    return copy;
  });
  const other = await writtenCampaign({ 'test: trace': trained });
  try {
    await campaignCommand(other.home, 'export', 'demo', folder, '--conversations', 'atif');
    const { agent, extra } = JSON.parse(readFileSync(filesIn()[0]!, 'utf8')) as Record<string, Record<string, unknown>>;
    expect([agent?.['version'], extra?.['adapters']]).toEqual([adapter.slice(0, 12), [adapter]]);
  } finally {
    rmSync(other.home, { recursive: true, force: true });
  }
});
