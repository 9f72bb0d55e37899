/** The real readers (`make test-logs`): Inspect and Harbor's models of trajectories read what is written here, and what they write again is read here. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readConversations } from '../../src/conversations/read';
import { campaignCommand } from '../support/campaign-command';
import { scoredRollout } from '../support/scored-rollout';
import { written, writtenCampaign } from '../support/written-campaign';

jest.setTimeout(30 * 60_000);

/** A zip without 64-bit sizes holds 65,535. */
const COUNT = 70_000;
const venv = resolve(__dirname, '../../.venv-logs/bin');
let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'test-logs-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

function read(what: 'inspect' | 'atif' | 'many', path: string, other: string): unknown {
  const output = execFileSync(join(venv, 'python'), [join(__dirname, 'readers.py'), what, path, other], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  return JSON.parse(output.trim().split('\n').at(-1) ?? '');
}

async function exported(format: 'inspect' | 'atif', batches?: Parameters<typeof writtenCampaign>[0]) {
  const [folder, copy] = [join(root, 'logs'), join(root, 'copy')];
  mkdirSync(copy);
  const { home } = await writtenCampaign(batches);
  try {
    await campaignCommand(home, 'export', 'demo', folder, '--conversations', format);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  return { folder, copy };
}

const conversationsIn = async (folder: string) => {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((one) => one.isFile() && !one.name.startsWith('.'));
  const { conversations } = await readConversations({ files: files.map((one) => join(one.parentPath, one.name)) });
  return conversations.sort((a, b) => (a.id < b.id ? -1 : 1));
};

test('Inspect reads its logs without a warning, and writes them again as the same conversations', async () => {
  const { folder, copy } = await exported('inspect');
  const [base, trace] = read('inspect', folder, copy) as [Record<string, unknown>, Record<string, unknown>];
  const facts = (rollouts: typeof written.base) =>
    rollouts.map((one) => ({
      epoch: one.attempt + 1,
      task: one.task,
      seed: expect.any(Number) as number,
      ...(one.status === 'scored'
        ? {
            messages: one.messages.length,
            calls: one.messages.flatMap((said) => (said.role === 'assistant' ? (said.toolCalls ?? []) : [])).length,
            score: one.reward,
            error: null,
          }
        : { messages: 0, calls: 0, score: null, error: 'BadEnvironment: it ended' }),
    }));
  expect(base).toMatchObject({ task: 'base rollouts', model: 'campaign/base', status: 'success', usage: 480 });
  expect(base).toMatchObject({ metrics: { mean: 2.25 / 4, success_rate: 0.5 } });
  expect(base['samples']).toHaveLength(written.base.length);
  expect(base['samples']).toEqual(expect.arrayContaining(facts(written.base)));
  expect(trace).toMatchObject({ task: 'test', model: 'campaign/trace', samples: facts(written.trace) });
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.eval'))) {
    const dumped = execFileSync(join(venv, 'inspect'), ['log', 'dump', join(folder, file)], { encoding: 'utf8' });
    expect(JSON.parse(dumped)).toMatchObject({ version: 2, status: 'success' });
  }
  // Zstandard this time.
  expect(await conversationsIn(copy)).toEqual(await conversationsIn(folder));
});

test("Harbor's validator finds nothing, and what its models write again is the same conversations", async () => {
  const { folder, copy } = await exported('atif');
  expect(read('atif', folder, copy)).toEqual({ files: 5, errors: [] });
  expect(await conversationsIn(copy)).toEqual(await conversationsIn(folder));
});

test('a log of 70,000 rollouts, more than a zip of 32 bits has room for, is written a rollout at a time', async () => {
  const messages = [
    { role: 'user' as const, content: 'hello '.repeat(100) },
    { role: 'assistant' as const, content: 'gladly '.repeat(100) },
  ];
  const rollouts = Array.from({ length: COUNT }, (_, n) => {
    const task = `t${n}`;
    return { ...scoredRollout({ name: task, task, reward: n % 2 }), messages };
  });
  const begun = Date.now();
  const { folder } = await exported('inspect', { 'base rollouts': rollouts });
  const file = join(folder, 'base-rollouts.eval');
  process.stderr.write(
    `70,000 rollouts: ${((Date.now() - begun) / 1000).toFixed(0)} s, ${statSync(file).size} bytes\n`,
  );
  expect(read('many', file, 't69999')).toEqual({ summaries: COUNT, total: COUNT, messages: 2 });
  expect(await conversationsIn(folder)).toHaveLength(COUNT);
});
