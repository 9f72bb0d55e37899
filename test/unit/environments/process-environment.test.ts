import { spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Environment } from '../../../src/domain/environment';
import { type AssistantMessage, callText, readArguments } from '../../../src/domain/messages';
import { readLines } from '../../../src/environments/child-process';
import { openProcessEnvironment, type ProcessEnvironmentOptions } from '../../../src/environments/process';
import { serveEnvironment } from '../../../src/environments/serve';
import { countingEnvironment } from '../../support/counting-environment';

let folder: string;
const opened: Environment[] = [];
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'process-'))));
afterEach(async () => {
  await Promise.all(opened.splice(0).map((environment) => environment.close()));
  rmSync(folder, { recursive: true, force: true });
});

/** A bridge in plain JavaScript, as somebody else would write it; `answer` is its switch over methods. */
function bridge(answer: string, options: Partial<ProcessEnvironmentOptions> = {}): Environment {
  const file = join(folder, `bridge-${opened.length}.js`);
  writeFileSync(
    file,
    `const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
     const fail = (id, code, message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }) + '\\n');
     let count = 0;
     const start = { messages: [{ role: 'user', content: 'hi ü' }], tools: [], maxSteps: 3 };
     require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
       const { id, method, params } = JSON.parse(line);
       if (method === 'reset' && params.task.id !== 'bad') return send(id, { episode: 'e' + count++, ...start });
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
    // It may have read both steps before it exits.
    expect(String((failure as PromiseRejectedResult).reason)).toMatch(
      /exit code 3; .*stderr:\n(first\nboom: no data\s*)+$/s,
    );
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
  [
    'nests too deep',
    `process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":' + '['.repeat(5e5) + ']'.repeat(5e5) + '}\\n');`,
    'nested deeper than 100',
  ],
  ['fails in megabytes', `fail(id, -32601, 'x'.repeat(3e6));`, '... (3000000 characters)'],
  ['asks for a user that nobody plays', `send(id, { messages: [], done: false, user: [] });`, 'target.user names none'],
  ['answers what was not asked', `send(77, {});`, 'unknown request 77'],
  ['answers in another shape', `send(id, { messages: 'none', done: true });`, 'step: messages'],
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
});

describe('hostile processes', () => {
  /** The rollout whose answer is wrong, and one beside it that waits meanwhile. */
  const beside = async (answer: string) => {
    const environment = bridge(
      `if (params.message.content === 'good') return setTimeout(() => send(id, { messages: [], done: true }), 300); ${answer}`,
    );
    const [bad, good] = [await environment.reset(task), await environment.reset(task)];
    return Promise.allSettled([bad.step(message), good.step({ ...message, content: 'good' })]);
  };
  const lineOf = (length: string) => `process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"x":"' + ${length});`;

  test('an answer that can be attributed breaks one rollout; the process and the others go on', async () => {
    const [bad, good] = await beside(`process.stdout.write('{"jsonrpc": "2.0", "id": ' + id + ', "result": NaN}\\n');`);
    const message = expect.stringContaining('send finite numbers');
    expect(bad).toMatchObject({ reason: { type: 'BadEnvironment', message } });
    expect(good).toMatchObject({ status: 'fulfilled' });
  });

  test('an endless line ends the process at once; who waits beside it may try again', async () => {
    const [bad, good] = await beside(
      `${lineOf(`'x'.repeat(1000)`)} setInterval(() => process.stdout.write('y'.repeat(1 << 20)), 0);`,
    );
    expect(bad).toMatchObject({
      reason: { type: 'BadEnvironment', message: expect.stringContaining('more than 16 Mi') },
    });
    expect(good).toMatchObject({ status: expect.stringMatching(/fulfilled|rejected/) });
    if (good?.status === 'rejected') expect(good.reason).toMatchObject({ type: 'EnvironmentDied', retryable: true });
    expect(String((bad as PromiseRejectedResult).reason).length).toBeLessThan(2000);
  }, 20_000);

  test('print of one among several: all of them may be tried again', async () => {
    const failures = await beside(`console.log('debug');`);
    for (const failure of failures) expect(failure).toMatchObject({ reason: { type: 'EnvironmentDied' } });
  });

  test('lines of megabytes in small pieces are read, and one that is too long is left out', async () => {
    const stream = new PassThrough();
    const lines: number[] = [];
    readLines(stream, { onLine: (line) => lines.push(line.length), onTooLong: () => lines.push(-1), max: 12e6 });
    for (let n = 0; n < 10_000; n++) stream.write('x'.repeat(1000));
    stream.write('\n');
    for (let n = 0; n < 14_000; n++) stream.write('y'.repeat(1000));
    stream.write('\nlast\n');
    stream.end();
    await new Promise((resolve) => stream.once('end', resolve));
    expect(lines).toEqual([10_000_000, -1, 4]);
  });

  test('the last words are kept to 4 KiB', async () => {
    const environment = bridge(
      `process.stderr.write('a'.repeat(1e6) + '\\n' + 'trace '.repeat(500) + 'KeyError', () => process.exit(1));`,
    );
    const { message: said } = (await (await environment.reset(task)).step(message).catch((error) => error)) as Error;
    expect(said).toMatch(/^environment process .*exit code 1.*\.\.\. a+\n(trace ){500}KeyError$/s);
    expect(said.length).toBeLessThan(5000);
  });

  test.each([
    ['in its group', 'false'],
    ['in a session of its own', 'true'],
  ])('a grandchild that holds the pipes, %s, does not hold up the end', async (_, detached) => {
    const environment = bridge(
      `const child = require('node:child_process').spawn('sleep', ['600'], { stdio: 'inherit', detached: ${detached} });
       if (method === 'step') return send(id, { messages: [{ role: 'user', content: String(child.pid) }], done: false });
       process.exit(4);`,
    );
    const episode = await environment.reset(task);
    const { messages } = await episode.step(message);
    await expect(episode.evaluate('max_steps')).rejects.toMatchObject({
      message: expect.stringContaining('exit code 4'),
    });
    const grandchild = Number(messages[0]!.content);
    if (detached === 'true') process.kill(grandchild);
    else await gone(grandchild);
  });

  test('when this process is killed, an environment that ignores the end of its input is killed too', async () => {
    const file = join(folder, 'deaf.js');
    writeFileSync(
      file,
      `process.stdout.write(JSON.stringify({ pid: process.pid }) + '\\n'); setInterval(() => {}, 1000);`,
    );
    const script = `const { startChild } = require('./src/environments/child-process');
      startChild({ command: [process.execPath, ${JSON.stringify(file)}], onLine: console.log, onTooLong() {}, onEnd() {}, onStartFailure() {} });`;
    const owner = spawn(process.execPath, ['-r', './test/support/register.cjs', '-e', script], {
      cwd: join(__dirname, '../../..'),
    });
    const [line] = (await once(owner.stdout, 'data')) as [Buffer];
    const { pid } = JSON.parse(line.toString()) as { pid: number };
    expect(() => process.kill(pid, 0)).not.toThrow();
    owner.kill('SIGKILL');
    await gone(pid);
  }, 20_000);

  test('an id given to two open episodes: neither is scored, and the next reset is', async () => {
    const environment = bridge(
      `if (method === 'reset') return send(id, { episode: 'same', ...start });
       send(id, { reward: 1, breakdown: {} });`,
    );
    const first = await environment.reset({ id: 'bad', seed: 1 });
    await expect(environment.reset({ id: 'bad', seed: 1 })).rejects.toMatchObject({ type: 'BadEnvironment' });
    await expect(first.evaluate('max_steps')).rejects.toMatchObject({
      type: 'BadEnvironment',
      message: expect.stringContaining('reset: episode: "same" is the id of an episode that is still open'),
    });
    await first.close();
    expect(await (await environment.reset({ id: 'bad', seed: 1 })).evaluate('max_steps')).toMatchObject({ reward: 1 });
  });

  test("an answer to the agent's call that names the user as the one who asked", async () => {
    const environment = bridge(
      `send(id, { messages: [{ role: 'tool', toolCallId: 'c1', content: '', requestor: 'user' }], done: false });`,
    );
    const toolCalls = [{ id: 'c1', name: 'f', arguments: {} }];
    const step = (await environment.reset(task)).step({ role: 'assistant', content: '', toolCalls });
    const problem = { type: 'BadEnvironment', message: expect.stringContaining('must have no requestor') };
    await expect(step).rejects.toMatchObject(problem);
  });

  test('a user that is asked without end', async () => {
    let asked = 0;
    const user = { id: 'u', speak: async () => ({ role: 'user', content: `${asked++}` }) as const };
    const environment = bridge(`send(id, { messages: [], done: false, user: [{ role: 'user', content: '?' }] });`, {
      user,
    });
    await expect((await environment.reset(task)).step(message)).rejects.toMatchObject({
      type: 'BadEnvironment',
      message: expect.stringContaining('step: user: the simulated user is asked more than 100 times'),
    });
    expect(asked).toBe(100);
  });

  test('a user that ends the conversation before the agent has a turn', async () => {
    const user = { id: 'u', speak: async () => ({ role: 'user', content: 'BYE' }) as const };
    const environment = bridge(
      `if (method === 'reset') return send(id, { episode: 'e', ...start, user: [] }); send(id, { messages: [], done: true });`,
      { user },
    );
    await expect(environment.reset({ id: 'bad', seed: 1 })).rejects.toMatchObject({
      type: 'UserSimulatorFailed',
      message: expect.stringContaining('before the agent had a turn'),
    });
  });

  test.each([
    ['no answer', `[]`, 'call c2 has no answer'],
    ['another order', `[answer('c2'), answer('c1')]`, '"c2" comes where c1 should'],
    ['one answer twice', `[answer('c1'), answer('c1')]`, '"c1" comes where c2 should'],
    ['the user as the one who asked', `[{ ...answer('c1'), requestor: 'user' }]`, 'must have no requestor'],
  ])('calls with %s', async (what, messages, problem) => {
    const first = what === 'no answer' ? `[answer('c1')]` : messages;
    const environment = bridge(
      `const answer = (toolCallId) => ({ role: 'tool', toolCallId, content: '' }); send(id, { messages: ${first}, done: false });`,
    );
    const toolCalls = ['c1', 'c2'].map((id) => ({ id, name: 'f', arguments: {} }));
    const step = (await environment.reset(task)).step({ role: 'assistant', content: '', toolCalls });
    await expect(step).rejects.toMatchObject({ type: 'BadEnvironment', message: expect.stringContaining(problem) });
  });

  test('a schema that is none is refused where it is described', async () => {
    const environment = bridge(
      `send(id, { name: 'n', version: '1', policy: 'p', maxSteps: 1, hasReference: false,
         tools: [{ name: 'pay', description: 'pays', parameters: { type: 'object', properties: {}, required: 'amount' } }] });`,
    );
    await expect(environment.describe()).rejects.toMatchObject({
      type: 'BadEnvironment',
      message: expect.stringContaining('describe: tools.0.parameters.required: must be a list of names'),
    });
  });
});

/** Resolves once there is no such process; kills it and throws if that takes long. */
async function gone(pid: number): Promise<void> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  process.kill(pid, 'SIGKILL');
  throw new Error(`process ${pid} lives on`);
}

test('numbers in calls reach the process as the policy wrote them', async () => {
  const python = `
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {}
    if asked["method"] == "reset":
        result = {"episode": "e", "messages": [{"role": "user", "content": "hi"}], "tools": [], "maxSteps": 3}
    if asked["method"] == "step":
        calls = asked["params"]["message"]["toolCalls"]
        said = [{"role": "tool", "toolCallId": call["id"], "content": repr(call)} for call in calls]
        result = {"messages": said, "done": False}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
`;
  const environment = openProcessEnvironment({ command: ['python3', '-c', python] });
  opened.push(environment);
  const call = (id: string, text: string) => ({ id, name: 'f', ...readArguments(text)! });
  const toolCalls = [
    call('a', '{"order": 12345678901234567890, "price": 2.0, "n": -0.0, "m": 1e3}'),
    call('b', '{"argumentsText": "}", "n": 2}'),
  ];
  const { step } = await environment.reset(task);
  expect((await step({ role: 'assistant', content: '', toolCalls })).messages.map(({ content }) => content)).toEqual([
    "{'id': 'a', 'name': 'f', 'arguments': {'order': 12345678901234567890, 'price': 2.0, 'n': -0.0, 'm': 1000.0}}",
    "{'id': 'b', 'name': 'f', 'arguments': {'argumentsText': '}', 'n': 2}}",
  ]);
});

test('an environment that is served in TypeScript gets numbers that JavaScript does not have as text', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const episode = {
    start: { messages: [{ role: 'user', content: 'hi' }], tools: [], maxSteps: 3 },
    step: async (said: AssistantMessage) => ({
      messages: [{ role: 'user', content: callText(said.toolCalls![0]!) }],
      done: false,
    }),
    close: async () => {},
  };
  const environment = { ...countingEnvironment(), reset: async () => episode } as unknown as Environment;
  const ended = serveEnvironment({ environment, input, output });
  const answers = on(output.setEncoding('utf8'), 'data');
  async function ask(id: number, method: string, params: string): Promise<unknown> {
    input.write(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}\n`);
    return JSON.parse(String((await answers.next()).value));
  }
  await ask(1, 'reset', '{"task":{"id":"t","seed":1}}');
  const answer = await ask(
    2,
    'step',
    '{"episode":"e1","message":{"role":"assistant","content":"","toolCalls":[{"id":"a","name":"f","arguments":{"order":12345678901234567890,"n":2.0}}]}}',
  );
  input.end();
  await ended;
  expect(answer).toMatchObject({
    result: { messages: [{ content: 'f({"order":"12345678901234567890","n":2})' }] },
  });
});

test('a command that is not there', async () => {
  const environment = openProcessEnvironment({ command: ['no-such-command-at-all'] });
  await expect(environment.describe()).rejects.toMatchObject({
    type: 'BadEnvironment',
    message: expect.stringMatching(/no-such-command-at-all.*can't be started/),
  });
  await environment.close();
});
