/** What takes longer than a test of every change may: an agent on a public framework, and a whole campaign on an agent's program (`make test-agents`). */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { openFolderStore } from '../../src/artifacts/open-store';
import { openAgent } from '../../src/environments/agent/kind';
import { createPolicyClient } from '../../src/policy/client';
import { createMerger } from '../../src/policy/merge';
import { reportSchema } from '../../src/report/model';
import { play } from '../../src/rollout/play';
import { python, startEmbeddedServer } from '../support/embedded-server';

jest.setTimeout(20 * 60_000);
const repository = resolve(__dirname, '..', '..');
const folder = join(repository, 'examples', 'agents');
const home = mkdtempSync(join(tmpdir(), 'agents-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('an agent on @openai/agents is played, a row for each conversation', async () => {
  const server = await startEmbeddedServer({ model: join(repository, 'models', 'base') });
  const store = openFolderStore(join(home, 'store'));
  const client = createPolicyClient({ url: server.url, concurrency: 8, store, merge: createMerger({ store, python }) });
  const environment = openAgent({
    command: ['node', 'openai-agents/agent.mjs'],
    folder,
    tasks: join(folder, 'tasks.jsonl'),
    version: '1',
    readOnlyTools: [],
    maxSteps: 20,
    maxProcesses: 500,
    silenceSeconds: 300,
  });
  try {
    const tasks = Array.from({ length: 8 }, (_, n) => `train-${n}`);
    const policy = { base: server.base, adapters: [] };
    const sampling = { temperature: 1, topP: 1, maxTokens: 32 };
    const { signal } = new AbortController();
    const rollouts = await Promise.all(
      tasks.map((task) =>
        play(
          { key: task, task, attempt: 0, hinted: false },
          { environment, client, policy, sampling, seed: 1, signal },
        ),
      ),
    );
    expect(rollouts.map(({ rows }) => rows.length)).toEqual(tasks.map(() => 1));
    for (const { steps, rows } of rollouts) expect(rows[0]?.turns).toHaveLength(steps);
    expect(rollouts.some(({ steps }) => steps > 2)).toBe(true);
    expect(rollouts.some(({ reward }) => reward === 1)).toBe(true);
  } finally {
    await environment.close();
    client.close();
    await server.stop();
  }
});

test('a campaign on an agent’s program goes from its base rollouts to its report', async () => {
  const args = [
    '--home',
    home,
    'run',
    join(folder, 'campaign.yaml'),
    '--exit',
    '--json',
    '--temporal-port',
    '0',
    '--ui-port',
    '0',
  ];
  await promisify(execFile)(join(repository, 'bin', 'campaign'), args, { maxBuffer: 2 ** 26 });
  const report = reportSchema.parse(JSON.parse(readFileSync(join(home, 'agent', 'report.json'), 'utf8')));
  expect(report.campaign).toMatchObject({ status: 'completed', target: { name: 'agent' } });
  expect(report.capabilities).toMatchObject([{ name: 'refuse_forbidden_actions', status: 'trained' }]);
  expect(report.arms?.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['base', 'refuse_forbidden_actions', 'trace', 'grpo_target']),
  );
  expect(report.rollouts?.brokenByError).toEqual([]);
});
