/** Programs that speak the environment protocol: honest ones, broken ones, and environments that are served as one. */
import { on } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../../src/domain/environment';
import { type AssistantMessage, readArguments } from '../../../src/domain/messages';
import { openProcessEnvironment, type ProcessEnvironmentOptions } from '../../../src/environments/process';
import { serveEnvironment } from '../../../src/environments/serve';
import { countingEnvironment } from '../../support/counting-environment';
import { failing } from '../../support/failing';
import { closedAfterwards } from '../../support/opened';
import { processesWith } from '../../support/programs';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let folder: string;
let bridges: number;
eachTemporaryFolder((made) => ([folder, bridges] = [made, 0]));

const open = (options: ProcessEnvironmentOptions): Environment => closedAfterwards(openProcessEnvironment(options));

/** A bridge in plain JavaScript, as somebody else would write it; `answer` is its switch over methods, and what begins the task `own`. */
function bridge(answer: string, options: Partial<ProcessEnvironmentOptions> = {}): Environment {
  const file = join(folder, `bridge-${bridges++}.js`);
  writeFileSync(
    file,
    `const write = (answer) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...answer }) + '\\n');
     const send = (id, result) => write({ id, result });
     const fail = (id, code, message) => write({ id, error: { code, message } });
     const says = (content) => ({ messages: [{ role: 'user', content: String(content) }], done: false });
     const answers = (...messages) => ({ messages: messages.map((m) => ({ role: 'tool', content: '', ...m })), done: false });
     let count = 0;
     const start = { messages: [{ role: 'user', content: 'hi ü' }], tools: [], maxSteps: 3 };
     require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
       const { id, method, params } = JSON.parse(line);
       if (method === 'reset' && params.task.id !== 'own') return send(id, { episode: 'e' + count++, ...start });
       if (method === 'close') return send(id, {});
       ${answer}
     });`,
  );
  return open({ command: [process.execPath, file], ...options });
}
const task = { id: 't', seed: 1 };
const own = { id: 'own', seed: 1 };
const message = { role: 'assistant', content: 'x' } as const;
const twoCalls: AssistantMessage = {
  ...message,
  toolCalls: ['c1', 'c2'].map((id) => ({ id, name: 'f', arguments: {} })),
};
const userWho = (content: (turn: number) => string) => {
  let turns = 0;
  const speak = async () => ({ role: 'user', content: content(turns++) }) as const;
  return { user: { id: 'u', speak }, turns: () => turns };
};

test('a process that dies fails all open requests with its last words; the next reset starts it again', async () => {
  const environment = bridge(`process.stderr.write('first\\nboom: no data\\n', () => process.exit(3));`);
  const episodes = await Promise.all([environment.reset(task), environment.reset(task)]);
  for (const failed of await Promise.allSettled(episodes.map((episode) => episode.step(message)))) {
    expect(failed).toMatchObject({ status: 'rejected', reason: { type: 'EnvironmentDied', retryable: true } });
    // It may have read both steps before it exits.
    expect(String((failed as PromiseRejectedResult).reason)).toMatch(
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
  await expect(episode.step(message)).rejects.toMatchObject(failing('EnvironmentDied', 'not answered step for 2.5 s'));
  await environment.reset(task);
});

const NESTED = `'{"jsonrpc":"2.0","id":' + id + ',"result":' + '['.repeat(5e5) + ']'.repeat(5e5) + '}\\n'`;
const MANY = `'{"jsonrpc":"2.0","id":' + id + ',"result":[' + '{},'.repeat(1e6) + '{}]}\\n'`;

test.each([
  ['prints on stdout', `console.log('loading data'); send(id, {});`, 'loading data; stdout is for the protocol'],
  ['nests too deep', `process.stdout.write(${NESTED});`, 'over 100 JSON levels'],
  ['holds too many values', `process.stdout.write(${MANY});`, 'over 1000000 JSON values'],
  ['fails in megabytes', `fail(id, -32601, 'x'.repeat(3e6));`, '... (3000000 characters)'],
  [
    'asks for a user that nobody plays',
    `send(id, { ...answers({ toolCallId: 'c1' }, { toolCallId: 'c2' }), user: [] });`,
    'target.user names none',
  ],
  ['answers what was not asked', `send(77, {});`, 'unknown request 77'],
  ['answers in another shape', `send(id, { messages: 'none', done: true });`, 'step: messages'],
  ['leaves a call out', `send(id, answers({ toolCallId: 'c1' }));`, 'calls c1, c2 have the answers c1'],
  ['answers in another order', `send(id, answers({ toolCallId: 'c2' }));`, 'calls c1, c2 have the answers c2'],
  ['names the user', `send(id, answers({ toolCallId: 'c1', requestor: 'user' }));`, 'requestor must be left out'],
  [
    'cuts a character',
    `send(id, answers({ toolCallId: 'c1', content: '\\ud83d' }, { toolCallId: 'c2' }));`,
    'step: messages.0.content; ',
  ],
])('a process that %s does not keep the contract', async (_, answer, problem) => {
  const episode = await bridge(answer).reset(task);
  const wrong = { ...failing('BadEnvironment', problem), retryable: false };
  await expect(episode.step(twoCalls)).rejects.toMatchObject(wrong);
});

test('an environment must answer the agent before its next turn, and end within 10,000 of them', async () => {
  const silent = await bridge(`send(id, { messages: [], done: params.message.content === 'end' });`).reset(task);
  await expect(silent.step(message)).rejects.toMatchObject(failing('BadEnvironment', 'step: messages is empty'));
  expect(await silent.step({ ...message, content: 'end' })).toMatchObject({ done: true });
  const endless = { name: 'n', version: '1', policy: 'p', tools: [], maxSteps: 9007199254740991, hasReference: false };
  const long = bridge(`send(id, { episode: 'e', ...${JSON.stringify({ ...endless, messages: [] })} });`);
  await expect(long.describe()).rejects.toMatchObject(failing('BadEnvironment', 'describe: maxSteps:'));
  await expect(long.reset(own)).rejects.toMatchObject(failing('BadEnvironment', 'reset: maxSteps:'));
});

test('an error of the environment fails one request only', async () => {
  const environment = bridge(`fail(id, -32000, 'task own: no such order');`);
  await expect(environment.reset(own)).rejects.toMatchObject(failing('EnvironmentFailed', 'no such order'));
  expect((await environment.reset(task)).start.maxSteps).toBe(3);
});

test('a process that nothing needs for a while ends, and is started again', async () => {
  const environment = bridge('send(id, says(count));', { idleMs: 100 });
  const episode = await environment.reset(task);
  await sleep(300);
  expect((await episode.step(message)).messages[0]!.content).toBe('1');
  await episode.close();
  while (processesWith(join(folder, 'bridge-0.js')).length > 0) await sleep(50);
  expect((await (await environment.reset(task)).step(message)).messages[0]!.content).toBe('1');
});

describe('serveEnvironment', () => {
  function served(environment: Environment) {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const ended = serveEnvironment({ environment, input, output });
    const answers = on(output.setEncoding('utf8'), 'data');
    return {
      ask: async (line: string): Promise<unknown> => {
        input.write(`${line}\n`);
        return JSON.parse(String((await answers.next()).value));
      },
      end: async () => {
        input.end();
        await ended;
      },
    };
  }
  const call = (id: number, method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id, method, params });

  test.each([
    ['{"jsonrpc":', null, -32600, ''],
    [call(1, 'dance', {}), 1, -32601, 'no method dance; there are describe, tasks'],
    [call(2, 'tasks', { split: 'dev' }), 2, -32602, 'split'],
    [call(3, 'step', { episode: 'e9', message }), 3, -32602, 'no open episode e9'],
  ])('%s is answered by an error', async (line, id, code, words) => {
    const { ask, end } = served(countingEnvironment());
    expect(await ask(line)).toMatchObject({ id, error: { code, message: expect.stringContaining(words) } });
    await end();
  });
});

describe('hostile processes', () => {
  /** The rollout whose answer is wrong, and one beside it that waits meanwhile. */
  const beside = async (answer: string, waits = 'setTimeout(() => send(id, { messages: [], done: true }), 300)') => {
    const environment = bridge(`if (params.message.content === 'good') return ${waits}; ${answer}`);
    const [bad, good] = [await environment.reset(task), await environment.reset(task)];
    return Promise.allSettled([bad.step(message), good.step({ ...message, content: 'good' })]);
  };
  const begun = (rest: string) => `process.stdout.write('{"jsonrpc": "2.0", "id": ' + id + ', ' + ${rest});`;

  test('an answer that can be attributed breaks one rollout; the process and the others go on', async () => {
    const [bad, good] = await beside(begun(`'"result": NaN}\\n'`));
    expect(bad).toMatchObject({ reason: failing('BadEnvironment', 'send finite numbers') });
    expect(good).toMatchObject({ status: 'fulfilled' });
  });

  test('an endless line ends the process at once; who waits beside it may try again', async () => {
    const endless = `setInterval(() => process.stdout.write('y'.repeat(1 << 20)), 0);`;
    // Nothing else may end that line, however long its 16 Mi take.
    const [bad, good] = await beside(`${begun(`'"x":"' + 'x'.repeat(1000)`)} ${endless}`, 'undefined');
    expect(bad).toMatchObject({ reason: failing('BadEnvironment', 'more than 16 Mi') });
    expect(String((bad as PromiseRejectedResult).reason).length).toBeLessThan(2000);
    expect(good).toMatchObject({ reason: { type: 'EnvironmentDied', retryable: true } });
  });

  test('print of one among several: all of them may be tried again', async () => {
    for (const failed of await beside(`console.log('debug');`))
      expect(failed).toMatchObject({ reason: { type: 'EnvironmentDied' } });
  });

  test('an id given to two open episodes: neither is scored, and the next reset is', async () => {
    const environment = bridge(
      `if (method === 'reset') return send(id, { episode: 'same', ...start });
       send(id, { reward: 1, breakdown: {} });`,
    );
    const shared = failing('BadEnvironment', 'reset: episode: "same" is the id of an episode that is still open');
    const first = await environment.reset(own);
    await expect(environment.reset(own)).rejects.toMatchObject(shared);
    await expect(first.evaluate('max_steps')).rejects.toMatchObject(shared);
    await first.close();
    expect(await (await environment.reset(own)).evaluate('max_steps')).toMatchObject({ reward: 1 });
  });

  test('a user that is asked without end', async () => {
    const { user, turns } = userWho(String);
    const asks = `send(id, { messages: [], done: false, user: [{ role: 'user', content: '?' }] });`;
    const episode = await bridge(asks, { user }).reset(task);
    const problem = 'step: user: the simulated user is asked more than 100 times';
    await expect(episode.step(message)).rejects.toMatchObject(failing('BadEnvironment', problem));
    expect(turns()).toBe(100);
  });

  test('a user that ends the conversation before the agent has a turn', async () => {
    const environment = bridge(
      `if (method === 'reset') return send(id, { episode: 'e', ...start, user: [] }); send(id, { messages: [], done: true });`,
      { user: userWho(() => 'BYE').user },
    );
    const ended = failing('UserSimulatorFailed', 'before the agent had a turn');
    await expect(environment.reset(own)).rejects.toMatchObject(ended);
  });
});

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
  const call = (id: string, text: string) => ({ id, name: 'f', ...readArguments(text)! });
  const toolCalls = [
    call('a', '{"order": 12345678901234567890, "price": 2.0, "n": -0.0, "m": 1e3}'),
    call('b', '{"argumentsText": "}", "n": 2}'),
  ];
  const { step } = await open({ command: ['python3', '-c', python] }).reset(task);
  expect((await step({ role: 'assistant', content: '', toolCalls })).messages.map(({ content }) => content)).toEqual([
    "{'id': 'a', 'name': 'f', 'arguments': {'order': 12345678901234567890, 'price': 2.0, 'n': -0.0, 'm': 1000.0}}",
    "{'id': 'b', 'name': 'f', 'arguments': {'argumentsText': '}', 'n': 2}}",
  ]);
});
