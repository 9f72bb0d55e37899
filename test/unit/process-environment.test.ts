import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Environment } from '../../src/domain/environment';
import { checkEnvironment } from '../../src/environments/conformance';
import { openProcessEnvironment } from '../../src/environments/process';
import { serveEnvironment } from '../../src/environments/serve';
import { countingEnvironment, type CountingOptions } from '../support/counting-environment';

let folder: string;
const opened: Environment[] = [];
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'process-'))));
afterEach(async () => {
  await Promise.all(opened.splice(0).map((environment) => environment.close()));
  rmSync(folder, { recursive: true, force: true });
});

/** A bridge in plain JavaScript, as somebody else would write it; `answer` is its switch over methods. */
function bridge(answer: string, options: { silenceMs?: number } = {}): Environment {
  const file = join(folder, `bridge-${opened.length}.js`);
  writeFileSync(
    file,
    `const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
     const fail = (id, code, message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }) + '\\n');
     const start = { episode: 'e' + process.pid, messages: [{ role: 'user', content: 'hi ü' }], tools: [], maxSteps: 3 };
     require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
       const { id, method, params } = JSON.parse(line);
       if (method === 'reset' && params.task.id !== 'bad') return send(id, start);
       if (method === 'close') return send(id, {});
       ${answer}
     });`,
  );
  const environment = openProcessEnvironment({ command: [process.execPath, file], ...options });
  opened.push(environment);
  return environment;
}
const task = { id: 't', seed: 1 };
const message = { role: 'assistant', content: 'x' } as const;

test('a process that dies fails all open requests with its last words; the next reset starts it again', async () => {
  const environment = bridge(`process.stderr.write('first\\nboom: no data\\n', () => process.exit(3));`);
  const episodes = await Promise.all([environment.reset(task), environment.reset(task)]);
  const failures = await Promise.allSettled(episodes.map((episode) => episode.step(message)));
  for (const failure of failures) {
    expect(failure).toMatchObject({ status: 'rejected', reason: { type: 'EnvironmentDied', retryable: true } });
    expect(String((failure as PromiseRejectedResult).reason)).toMatch(/exit code 3.*first \| boom: no data/);
  }
  await expect(episodes[0]!.evaluate('max_steps')).rejects.toMatchObject({ type: 'EnvironmentDied' });
  const again = await environment.reset(task);
  expect(again.start.messages).toEqual([{ role: 'user', content: 'hi ü' }]);
});

test('a process that hangs is killed and counts as dead', async () => {
  const environment = bridge('', { silenceMs: 2500 });
  const episode = await environment.reset(task);
  await expect(episode.step(message)).rejects.toMatchObject({
    type: 'EnvironmentDied',
    message: expect.stringContaining('not answered step for 2.5 s'),
  });
  await environment.reset(task);
});

test('a slow answer is no hang as long as others come', async () => {
  const environment = bridge(
    `if (method === 'step') return setTimeout(() => send(id, { messages: [], done: true }), 3500);
     send(id, { reward: 1, breakdown: {} });`,
    { silenceMs: 2500 },
  );
  const episode = await environment.reset(task);
  let ended = false;
  const slow = episode.step(message).finally(() => (ended = true));
  while (!ended) {
    await episode.evaluate('max_steps');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(await slow).toEqual({ messages: [], done: true });
});

test.each([
  ['prints on stdout', `console.log('loading data'); send(id, {});`, 'loading data; stdout is for the protocol'],
  ['answers what was not asked', `send(77, {});`, 'unknown request 77'],
  ['answers in another shape', `send(id, { messages: 'none', done: true });`, 'step: messages'],
  ['knows no step', `fail(id, -32601, 'no method step');`, 'no method step'],
])('a process that %s does not keep the contract', async (_, answer, problem) => {
  const episode = await bridge(answer).reset(task);
  await expect(episode.step(message)).rejects.toMatchObject({
    type: 'BadEnvironment',
    retryable: false,
    message: expect.stringContaining(problem),
  });
});

test('an error of the environment fails one request only', async () => {
  const environment = bridge(`fail(id, -32000, 'task bad: no such order');`);
  await expect(environment.reset({ id: 'bad', seed: 1 })).rejects.toMatchObject({
    type: 'EnvironmentFailed',
    message: expect.stringContaining('no such order'),
  });
  expect((await environment.reset(task)).start.maxSteps).toBe(3);
});

test('a command that is not there', async () => {
  const environment = openProcessEnvironment({ command: ['no-such-command-at-all'] });
  await expect(environment.describe()).rejects.toMatchObject({
    type: 'BadEnvironment',
    message: expect.stringMatching(/no-such-command-at-all.*can't be started/),
  });
  await environment.close();
});

test('closing ends the process, even one that ignores the end of its input', async () => {
  const environment = bridge(
    `process.stdin.on('end', () => setInterval(() => {}, 1000)); send(id, { messages: [{ role: 'user', content: String(process.pid) }], done: false });`,
  );
  const { messages } = await (await environment.reset(task)).step(message);
  await environment.close();
  expect(() => process.kill(Number(messages[0]!.content), 0)).toThrow('ESRCH');
});

describe('serveEnvironment', () => {
  async function exchange(lines: string[]): Promise<Record<string, unknown>[]> {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const served = serveEnvironment({ environment: countingEnvironment(), input, output });
    const chunks: string[] = [];
    output.on('data', (chunk: Buffer) => chunks.push(chunk.toString()));
    input.end(lines.map((line) => `${line}\n`).join(''));
    await served;
    return chunks
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }
  const call = (id: number, method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id, method, params });

  test.each([
    ['{"jsonrpc":', null, -32700, ''],
    ['{"jsonrpc":"2.0","id":1}', null, -32600, 'method'],
    [call(1, 'dance', {}), 1, -32601, 'no method dance; there are describe, tasks'],
    [call(2, 'tasks', { split: 'dev' }), 2, -32602, 'params.split'],
    [call(3, 'step', { episode: 'e9', message }), 3, -32602, 'no open episode e9'],
    [call(4, 'step', { episode: 'e9', message: { role: 'user', content: '' } }), 4, -32602, 'role must be assistant'],
  ])('%s is answered by an error', async (line, id, code, words) => {
    const [response] = await exchange([line]);
    expect(response).toMatchObject({ id, error: { code, message: expect.stringContaining(words) } });
  });

  test('plays an episode', async () => {
    const responses = await exchange([call(1, 'reset', { task: { id: 'n-0', seed: 1 } })]);
    expect(responses).toMatchObject([{ id: 1, result: { episode: 'e1', maxSteps: 8 } }]);
  });
});

describe('checkEnvironment', () => {
  const checks = async (options: CountingOptions, changes: Partial<Environment> = {}) =>
    (await checkEnvironment({ ...countingEnvironment(options), ...changes })).map(({ check }) => check);

  /** The small environment has no system message and begins unknown tasks: two faults that are always found. */
  const always = ['reset', 'reset'];

  test('finds what a sloppy environment does', async () => {
    const findings = await checkEnvironment(countingEnvironment());
    expect(findings.map(({ problem }) => problem)).toEqual([
      'the first message is not the system message',
      'an unknown task is begun as if it were one',
    ]);
    for (const { fix } of findings) expect(fix).not.toBe('');
  });

  test('finds rewards that are none, errors in place of observations, and shared state', async () => {
    expect(await checks({ reward: () => 2 })).toEqual([...always, 'evaluate']);
    const failing = await checks({ beforeStep: () => Promise.reject(new Error('KeyError')) });
    expect(failing).toContain('step: a call of an unknown tool');
    let shared = 0;
    expect(await checks({ reward: () => (shared++ % 7) / 7 })).toEqual([...always, 'parallel episodes']);
  });

  test('finds a policy rule of a known kind that is no such rule; any other kind may be anything', async () => {
    const environment = countingEnvironment();
    const problems = async (rules: { kind: string }[]) => {
      const describe = async () => ({ ...(await environment.describe()), rules });
      const findings = await checkEnvironment({ ...environment, describe });
      return findings.filter(({ check }) => check === 'describe').map(({ problem }) => problem);
    };
    expect(await problems([{ kind: 'tell' }])).toEqual([expect.stringMatching(/^rules\.0 of .*question: /)]);
    expect(await problems([{ kind: 'house rule' }])).toEqual([]);
  });

  test('finds overlapping, empty and mixed splits', async () => {
    const problems = async (tasks: Environment['tasks']) =>
      (await checkEnvironment({ ...countingEnvironment(), tasks }))
        .filter(({ check }) => check === 'tasks')
        .map(({ problem }) => problem);
    expect(await problems(async (split) => [{ id: 'n-1', split }])).toEqual(['task n-1 is in train and again in test']);
    expect(await problems(async (split) => (split === 'train' ? [{ id: 'n-1', split }] : []))).toEqual([
      'the test split is empty',
    ]);
    expect(await problems(async (split) => [{ id: `n-${split}`, split: 'train' }])).toEqual([
      'tasks(test) lists n-test of split train',
    ]);
  });

  test('finds a start that is not the same twice', async () => {
    let count = 0;
    const environment = countingEnvironment();
    const reset: Environment['reset'] = async (task) => {
      const episode = await environment.reset(task);
      return { ...episode, start: { ...episode.start, messages: [{ role: 'user', content: `hello ${count++}` }] } };
    };
    const findings = await checkEnvironment({ ...environment, reset });
    expect(findings.map(({ problem }) => problem).join()).toContain('begins differently when reset twice');
  });

  test('says that a process can not be described, and stops there', async () => {
    const findings = await checkEnvironment(
      openProcessEnvironment({ command: [process.execPath, '-e', 'process.exit(1)'] }),
    );
    expect(findings).toMatchObject([{ check: 'describe', problem: expect.stringContaining('exit code 1') }]);
  });
});
