/** The first commands of the README, as a newcomer runs them. The hub is on this machine, and serves a random model. */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { pythonPath } from '../../src/cli/project';
import type { Report } from '../../src/report/model';
import { repository } from '../support/campaign-run';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(20 * 60_000);
const folder = temporaryFolder();
const venv = join(folder, 'venv');
const model = join(folder, 'model');
/** It reads and writes bytes, and is spoken to like Qwen. */
const MAKE_MODEL =
  'import sys; from pathlib import Path; from trainer.tests.conftest import save_hermes_model; save_hermes_model(Path(sys.argv[1]), 8192)';
let hub: ChildProcess;
let url: string;

beforeAll(async () => {
  execFileSync(pythonPath(), ['-m', 'venv', venv]);
  execFileSync(join(venv, 'bin/python'), ['-m', 'pip', 'install', '--quiet', 'openai'], { stdio: 'pipe' });
  execFileSync(pythonPath(), ['-c', MAKE_MODEL, model], { cwd: repository, stdio: 'pipe' });
  hub = spawn(pythonPath(), ['-m', 'trainer.tests.hub_server', model], {
    cwd: repository,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(hub.stdout!, 'data')) as [Buffer];
  url = line.toString().trim();
});
afterAll(() => void hub.kill());

const environment = () => ({
  ...process.env,
  PATH: [join(venv, 'bin'), process.env['PATH']].join(delimiter),
  HF_ENDPOINT: url,
  HF_HOME: join(folder, 'cache'),
  HF_HUB_OFFLINE: '0',
});
const campaign = (...words: string[]) =>
  promisify(execFile)(join(repository, 'bin/campaign'), words, { cwd: folder, env: environment() });

test('they play an agent, and measure a base model', async () => {
  const [, block = ''] = /## Your own agent\n+```\n([^`]*)```/.exec(
    readFileSync(join(repository, 'README.md'), 'utf8'),
  )!;
  const commands = block.split('\n').flatMap((line) => line.split('#')[0]!.trim() || []);
  expect(commands).toHaveLength(3);
  const outputs: string[] = [];
  for (const command of commands) {
    // A random model calls no tool, which ends a run unless it is forced.
    const words = `${command}${command.includes(' run ') ? ' --force' : ''}`.split(' ').slice(1);
    outputs.push((await campaign(...words)).stdout);
  }
  expect(outputs[1]).toContain('keeps the contract');
  const report: unknown = JSON.parse(readFileSync(join(folder, '.campaigns/desk/report.json'), 'utf8'));
  expect(report).toMatchObject({
    campaign: { baseModel: expect.stringMatching(/^Qwen\/Qwen2\.5-0\.5B-Instruct@/) as string },
    rollouts: { scored: { value: 240 } },
  });
});

test('campaigns/triage-qwen.yaml, made small, goes through all stages', async () => {
  const small = {
    'rollouts:.*': 'rollouts: { tasks: 8, perTask: 1, sampling: { maxTokens: 16 } }',
    // A random model solves nothing.
    'calibration:\\n(  .*\\n)*':
      'calibration: { seeds: 2, rolloutsPerSeed: 2, meanReward: [0, 1], successRate: [0, 1], minBranchSuccess: 0, maxAllZero: 1, minInformative: 0, minRewardStd: 0 }\n',
    'training:\\n(  .*\\n)*': 'training: { steps: 1, groupsPerStep: 2, groupSize: 2, lora: { r: 2 } }\n',
    'validation:.*': 'validation: { seeds: 2, targetTasks: 4 }',
    'router:.*': 'router: { kind: learned, tasks: 8 }',
    'evaluation:.*': 'evaluation: { tasks: 4, sampling: { maxTokens: 16 } }',
    '\\.\\./examples': join(repository, 'examples'),
  };
  let text = readFileSync(join(repository, 'campaigns/triage-qwen.yaml'), 'utf8');
  for (const [pattern, replacement] of Object.entries(small))
    text = text.replaceAll(new RegExp(pattern, 'g'), replacement);
  const file = join(folder, 'triage.yaml');
  writeFileSync(file, text);
  await campaign('run', file, '--force');
  const report = JSON.parse(readFileSync(join(folder, '.campaigns/triage-qwen/report.json'), 'utf8')) as Report;
  const ends = report.capabilities?.map(({ status, reason }) => [status, reason]);
  expect(ends).toEqual(Array(3).fill(['completed', undefined]));
  expect(report.arms?.map(({ name, status }) => [name, status])).toEqual(
    expect.arrayContaining([
      ['base', 'completed'],
      ['grpo_target', 'completed'],
      ['environments', 'completed'],
    ]),
  );
});
