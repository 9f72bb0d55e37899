/** What takes longer than a test of every change may: an agent on a public framework, and a whole campaign on an agent's program (`make test-agents`). */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openFolderStore } from '../../src/store/open-store';
import { openAgent } from '../../src/environments/agent/kind';
import { CampaignRun, command, reportOf, repository } from '../support/campaign-run';
import { policyClient, startEmbeddedServer } from '../support/embedded-server';
import { atEnd, closedAfterwards } from '../support/opened';
import { playedAlone } from '../support/played';
import { agentLimits } from '../support/programs';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(20 * 60_000);
const folder = join(repository, 'examples', 'agents');
const home = temporaryFolder();

test('an agent on @openai/agents is played, a row for each conversation', async () => {
  const server = await startEmbeddedServer({ model: join(repository, 'models', 'base') });
  atEnd(server.stop);
  const client = closedAfterwards(policyClient({ url: server.url, store: openFolderStore(join(home, 'store')) }));
  const command = ['node', 'openai-agents/agent.mjs'];
  const files = { folder, tasks: join(folder, 'tasks.jsonl') };
  const environment = closedAfterwards(openAgent({ ...agentLimits, ...files, command, silenceSeconds: 300 }));
  const tasks = Array.from({ length: 8 }, (_, n) => `train-${n}`);
  const policy = { base: server.base, adapters: [] };
  const rollouts = await Promise.all(tasks.map((task) => playedAlone(task, { environment, client, policy })));
  expect(rollouts.map(({ rows }) => rows.length)).toEqual(tasks.map(() => 1));
  for (const { steps, rows } of rollouts) expect(rows[0]?.turns).toHaveLength(steps);
  expect(rollouts.some(({ steps }) => steps > 2)).toBe(true);
  expect(rollouts.some(({ reward }) => reward === 1)).toBe(true);
});

const reported = () => reportOf({ root: home }, 'agent');

test('a campaign on an agent’s program goes from its base rollouts to its report', async () => {
  await new CampaignRun({ root: home }, join(folder, 'campaign.yaml')).finish();
  const report = reported();
  expect(report.campaign).toMatchObject({ status: 'completed', target: { name: 'shop.mjs' } });
  expect(report.capabilities).toMatchObject([{ name: 'refuse_forbidden_actions', status: 'completed' }]);
  expect(report.arms?.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['base', 'refuse_forbidden_actions', 'trace', 'grpo_target']),
  );
  expect(report.rollouts?.brokenByError).toEqual([]);
});

/** Of a README, those that stand in its blocks. */
const commandsIn = (text: string): string[] =>
  [...text.matchAll(/^```\n([^]*?)^```/gm)].flatMap(([, block]) => block!.replaceAll('\\\n', '').trim().split('\n'));

test('its export is served by the commands in its README, and the program, unchanged, does as well there as the report says of trace', async () => {
  const shared = join(home, 'shared');
  await command({ root: home }, 'export', 'agent', shared, '--base-model', 'models/base');
  const commands = commandsIn(readFileSync(join(shared, 'README.md'), 'utf8'));
  // It stands for what `hf download` brings.
  symlinkSync(join(repository, 'models', 'base'), join(home, 'base'));
  const serving = commands.find((one) => one.startsWith('campaign serve . --model'))!;
  const env = {
    ...process.env,
    PATH: `${join(repository, 'bin')}:${process.env['PATH']}`,
    CAMPAIGN_HOME: `${home}/other`,
  };
  const gateway = spawn('sh', ['-c', serving], {
    cwd: shared,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  try {
    const [told] = (await Promise.race(['data', 'end'].map((event) => once(gateway.stdout, event)))) as [Buffer?];
    const [url] = String(told).split(' ');
    const tasks = readFileSync(join(folder, 'tasks.jsonl'), 'utf8')
      .split('\n')
      .filter((line) => line.includes('"test"'));
    const rewards = await Promise.all(
      tasks.map(async (task) => {
        const playing = promisify(execFile)('node', [join(folder, 'shop.mjs')], {
          env: { ...process.env, OPENAI_BASE_URL: url, OPENAI_API_KEY: 'none' },
        });
        playing.child.stdin!.end(task);
        return (JSON.parse((await playing).stdout) as { reward: number }).reward;
      }),
    );
    const { n, interval } = reported().arms!.find(({ name }) => name === 'trace')!.successRate!;
    expect(n).toBe(tasks.length);
    const rate = rewards.filter((reward) => reward >= 1).length / tasks.length;
    expect(rate).toBeGreaterThanOrEqual(interval!.low);
    expect(rate).toBeLessThanOrEqual(interval!.high);
  } finally {
    if (gateway.exitCode === null) {
      process.kill(-gateway.pid!, 'SIGTERM');
      await once(gateway, 'close');
    }
  }
});

const vllm = join(repository, '.venv-vllm', 'bin', 'python');
const PARSE = `
import sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser
validate_parsed_serve_args(make_arg_parser(FlexibleArgumentParser()).parse_args(sys.argv[1:]))`;

(existsSync(vllm) ? test : test.skip)(
  'vLLM takes the arguments of the commands for it (after `make vllm-cpu`)',
  async () => {
    const commands = commandsIn(readFileSync(join(home, 'shared', 'README.md'), 'utf8'));
    const serving = commands.filter((command) => command.includes('vllm serve '));
    expect(serving).toHaveLength(2);
    for (const command of serving)
      await promisify(execFile)(vllm, ['-c', PARSE, ...command.replace(/^.*vllm serve /, '').split(/ +/)]);
  },
);
