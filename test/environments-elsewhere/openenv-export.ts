/**
 * An exported environment is one of OpenEnv's: its package installs, passes OpenEnv's own validation, and is played by its client as by our own
 * engine (`make test-elsewhere`).
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { freePort } from '../../src/cli/ports';
import type { Environment } from '../../src/domain/environment';
import type { AssistantMessage } from '../../src/domain/messages';
import { putPackages } from '../../src/gateway/export';
import { openModule, sandboxEnvironment, withModule } from '../../src/sandbox/module';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(10 * 60_000);
const repository = resolve(__dirname, '..', '..');
const bin = (name: string) => join(repository, '.venv-openenv', 'bin', name);
const source = readFileSync(join(repository, 'test/fixtures/synthesis/retail-by-hand.js'), 'utf8');
const work = temporaryFolder();
const site = join(work, 'site');
const env = { ...process.env, PYTHONPATH: site, CAMPAIGN: `${process.execPath} ${join(repository, 'bin/campaign')}` };
const folder = join(work, 'openenv', 'return_everything');

let url: string;
let server: ReturnType<typeof spawn>;
let engine: Environment;
beforeAll(async () => {
  await putPackages({ name: 'return_everything', module: source }, async (name, text) => {
    mkdirSync(dirname(join(work, name)), { recursive: true });
    writeFileSync(join(work, name), text);
  });
  const options = ['--no-deps', '--no-build-isolation', '--no-index', '--target', site];
  execFileSync(bin('python'), ['-m', 'pip', 'install', '--quiet', ...options, folder], { stdio: 'pipe' });
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  server = spawn(bin('python'), ['-m', 'return_everything.server.app', '--port', String(port)], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  for (const end = Date.now() + 300_000; !(await isUp());) {
    if (Date.now() > end || server.exitCode !== null) throw new Error('the server does not come up');
    await new Promise((wait) => setTimeout(wait, 300));
  }
  engine = await sandboxEnvironment({ module: openModule({ source }), version: 'test' });
});
afterAll(async () => {
  server?.kill();
  await engine?.close();
});

const isUp = () =>
  fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );

type Action = [tool: string, values: Record<string, unknown>];
interface Heard {
  prompt?: unknown[];
  tools?: string[];
  steps: { said: string; reward: number; done: boolean }[];
  error?: string;
}
const SAY = 'say_to_user';
const say = (text: string): Action => [SAY, { text }];

const play = (episodes: { reset?: object; actions: Action[] }[]): Promise<Heard[]> =>
  new Promise((done, fail) => {
    const script = join(__dirname, 'play_openenv.py');
    const child = execFile(bin('python'), [script], { env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      error ? fail(new Error(stderr)) : done(JSON.parse(stdout) as Heard[]),
    );
    child.stdin!.end(JSON.stringify({ url, package: 'return_everything', episodes }));
  });

/** What the engine says of the same actions, a message each. */
async function played(task: string, actions: Action[]): Promise<Heard> {
  const episode = await engine.reset({ id: task, seed: 0 });
  const steps: Heard['steps'] = [];
  for (const [name, values] of actions) {
    const call = { id: `c${steps.length}`, name, arguments: values };
    const message: AssistantMessage =
      name === SAY
        ? { role: 'assistant', content: String(values['text']) }
        : { role: 'assistant', content: '', toolCalls: [call] };
    const { messages, done, stopReason } = await episode.step(message);
    const reward = done ? (await episode.evaluate(stopReason ?? 'user_stop')).reward : 0;
    steps.push({ said: messages.map(({ content }) => content).join('\n'), reward, done });
    if (done) break;
  }
  const tools = [...(await engine.describe()).tools.map(({ name }) => name), SAY];
  return { prompt: episode.start.messages, tools, steps };
}

/** The reference solution, a call a message. */
const solution = async (seed: number): Promise<Action[]> =>
  (await withModule(source, (module) => module.solve(seed))).flatMap(({ content, toolCalls = [] }) =>
    toolCalls.length > 0 ? toolCalls.map((call): Action => [call.name, call.arguments]) : [say(content)],
  );

test('OpenEnv’s own validation passes: the manifest, and the running server', async () => {
  const validate = (...args: string[]) =>
    JSON.parse(execFileSync(bin('openenv'), ['validate', ...args, '--json'], { stdio: 'pipe' }).toString()) as object;
  expect(validate(folder, '--level', 'static', '--skip-build')).toMatchObject({ verdict: 'pass' });
  expect(validate('--url', url)).toMatchObject({ passed: true });
});

test('sixteen sessions at once: prompt, tools, observations, rewards and ends are the engine’s', async () => {
  const episodes = await Promise.all(
    Array.from({ length: 16 }, async (_, n) => {
      const actions = await solution(n);
      const wrong: Action[] = [
        ['no_such_tool', {}],
        [actions[0]![0], { nonsense: [1] }],
      ];
      // Solved; ended without anything done; solved after mistakes; stopped in the middle.
      const script = [actions, [say('bye'), say('bye'), say('bye')], [...wrong, ...actions], actions.slice(0, 2)][
        n % 4
      ]!;
      return { seed: n, actions: script };
    }),
  );
  const expected = await Promise.all(episodes.map(({ seed, actions }) => played(`seed-${seed}`, actions)));
  const scripts = episodes.map(({ seed, actions }, n) => ({
    reset: { seed },
    actions: actions.slice(0, expected[n]!.steps.length),
  }));
  expect(await play(scripts)).toEqual(expected);
  const ends = expected.map(({ steps }) => steps.at(-1)!);
  expect(ends.some(({ reward, done }) => done && reward === 1)).toBe(true);
  expect(ends.some(({ reward, done }) => done && reward < 1)).toBe(true);
  expect(ends.some(({ done }) => !done)).toBe(true);
});

test('tasks are listed and chosen by split and index', async () => {
  const asked = async (path: string, body?: object): Promise<unknown> =>
    (
      await fetch(
        `${url}/return_everything/${path}`,
        body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
      )
    ).json();
  expect(await asked('splits')).toMatchObject([{ name: 'train' }, { name: 'test' }]);
  expect(await asked('num_tasks', { split: 'test' })).toEqual({ num_tasks: 1000 });
  const [one, other] = await play([
    { reset: { split: 'test', index: 3 }, actions: [] },
    { reset: { seed: 1_000_003 }, actions: [] },
  ]);
  expect(one).toEqual(other);
  expect(one).toEqual(await played('seed-1000003', []));
});

test('wrong use is an error that says so, and no reward', async () => {
  const actions = await solution(0);
  const [before, after, unsaid, badSeed] = await play([
    { actions: [say('hello')] },
    { reset: { seed: 0 }, actions: [...actions, say('more')] },
    { reset: { seed: 0 }, actions: [[SAY, { words: 'hello' }]] },
    { reset: { seed: 2 ** 40 }, actions: [] },
  ]);
  expect(before).toMatchObject({ steps: [], error: expect.stringMatching(/call reset\(\) first/) });
  expect(after).toMatchObject({ error: expect.stringMatching(/call reset\(\) first/) });
  expect(after!.steps.at(-1)).toMatchObject({ done: true, reward: 1 });
  expect(unsaid!.steps).toEqual([{ said: 'text is needed, as a string', reward: 0, done: false }]);
  expect(badSeed).toMatchObject({ error: expect.stringMatching(/seed-<n>/) });
});

test('a program that is killed is an error and no reward; the next reset starts it again', async () => {
  const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(server.pid)])
    .toString()
    .trim()
    .split(/\s+/);
  const slow = play([{ reset: { seed: 0 }, actions: Array.from({ length: 2000 }, () => say('and ?')) }]);
  for (const pid of children) process.kill(Number(pid), 'SIGKILL');
  const [heard] = await slow;
  for (const { reward, done } of heard!.steps) expect(done ? 'ended by itself' : reward).not.toBe(1);
  expect(await play([{ reset: { seed: 0 }, actions: await solution(0) }])).toEqual([
    await played('seed-0', await solution(0)),
  ]);
});
