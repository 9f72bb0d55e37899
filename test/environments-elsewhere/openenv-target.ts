/** The environment that OpenEnv's own package makes (`openenv init`) as a target: it keeps the contract, is played by the engine, and breaks rollouts when it dies. */
import { execFileSync } from 'node:child_process';
import { existsSync, readlinkSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ArtifactStore } from '../../src/artifacts/store';
import type { Environment } from '../../src/domain/environment';
import type { AssistantMessage } from '../../src/domain/messages';
import { checkEnvironment } from '../../src/environments/conformance';
import { openEnvironment } from '../../src/environments/open';
import { scriptedPolicy, turnOf } from '../support/scripted-policy';
import { scriptedRollouts } from '../support/scripted-rollouts';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(10 * 60_000);
const bin = (name: string) => join(resolve(__dirname, '..', '..'), '.venv-openenv', 'bin', name);
const work = temporaryFolder();
const folder = join(work, 'echo_env');
const say = (content: string): AssistantMessage => ({ role: 'assistant', content });
let environment: Environment;
beforeAll(async () => {
  execFileSync(bin('openenv'), ['init', 'echo_env', '--output-dir', work], { stdio: 'pipe' });
  // One session at once is what the template allows.
  execFileSync('sed', ['-i', 's/max_concurrent_envs=1/max_concurrent_envs=32/', join(folder, 'server/app.py')]);
  const command = [bin('python'), '-m', 'server.app', '--host', '127.0.0.1', '--port', '{port}'];
  const target = {
    kind: 'openenv',
    command,
    cwd: folder,
    maxSteps: 3,
    rewardRange: [0, 2],
    trainTasks: 8,
    testTasks: 4,
  };
  environment = await openEnvironment(target, { store: {} as ArtifactStore });
});
afterAll(() => environment?.close());

const descendants = (pid: number): number[] =>
  execFileSync('ps', ['-eo', 'pid=,ppid='])
    .toString()
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([child, parent]) => (parent === pid ? [child!, ...descendants(child!)] : []));

const rollouts = (tasks: string[], onTurn = () => {}) =>
  scriptedRollouts({
    environment,
    tasks,
    client: scriptedPolicy(({ messages }) => {
      onTurn();
      return [say('hello'), say('hello world'), say('end')][turnOf(messages)] ?? say('more');
    }),
  });

test('keeps the contract', async () => expect(await checkEnvironment(environment)).toEqual([]));

test('the agent’s words are its actions, and the last reward counts', async () => {
  expect(await environment.describe()).toMatchObject({ tools: [], maxSteps: 3 });
  const made = await rollouts(['train-0', 'train-1', 'test-0', 'test-1']);
  // A tenth for each character of the last message, of two at most.
  for (const rollout of made)
    expect(rollout).toMatchObject({ status: 'scored', stopReason: 'max_steps', reward: expect.closeTo(0.15, 6) });
});

test('a server that is killed breaks its rollouts, and is started again', async () => {
  const server = () =>
    descendants(process.pid).find(
      (pid) => existsSync(`/proc/${pid}/cwd`) && readlinkSync(`/proc/${pid}/cwd`) === realpathSync(folder),
    );
  const kill = (pid = server()) => void (pid === undefined || process.kill(pid, 'SIGKILL'));
  let killing = true;
  const killed = rollouts(['train-2', 'train-3'], () => void (killing && kill()));
  await expect(killed).rejects.toMatchObject({ type: expect.stringMatching(/Environment/) });
  // The other rollout may be at play still.
  killing = false;
  expect(await rollouts(['train-4'])).toMatchObject([{ status: 'scored' }]);
});
