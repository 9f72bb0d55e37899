/** Programs that ask an OpenAI-compatible endpoint as agents, with the real embedded policy server: their rows are those of our own loop, token for token. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { openFolderStore } from '../../src/store/open-store';
import type { FixedPolicy, TrainingRow } from '../../src/domain/rollout';
import { checkAgent } from '../../src/environments/agent/check';
import { openAgent } from '../../src/environments/agent/kind';
import { createShop } from '../../examples/shop/target/shop';
import type { PolicyClient } from '../../src/policy/client';
import type { Environment } from '../../src/domain/environment';
import { type EmbeddedServer, policyClient, startEmbeddedServer } from '../support/embedded-server';
import { failing } from '../support/failing';
import { playedAlone } from '../support/played';
import { startLoopback } from '../support/loopback';
import { closedAfterwards } from '../support/opened';
import { agentLimits, processesWith } from '../support/programs';
import { temporaryFolder } from '../support/temporary-folder';

const repository = resolve(__dirname, '..', '..');
const root = temporaryFolder();
const tasks = join(root, 'tasks.jsonl');
let server: EmbeddedServer;
let client: PolicyClient;
let policy: FixedPolicy;

beforeAll(async () => {
  const shop = await Promise.all((['train', 'test'] as const).map((split) => createShop().tasks(split)));
  writeFileSync(tasks, shop.flatMap((split) => split.slice(0, 20).map((task) => JSON.stringify(task))).join('\n'));
  server = await startEmbeddedServer({ model: process.env['BASE_MODEL'] ?? join(repository, 'models', 'base') });
  policy = { base: server.base, adapters: [] };
  client = policyClient({ url: server.url, store: openFolderStore(join(root, 'store')) });
}, 600_000);
afterAll(async () => {
  client.close();
  await server.stop();
});

const played = (environment: Environment, task = 'train-0', more: { signal?: AbortSignal } = {}) =>
  playedAlone(task, { environment, client, policy, seed: 3, ...more });

const agent = (command: string[], changes: Partial<Parameters<typeof openAgent>[0]> = {}) =>
  closedAfterwards(openAgent({ ...agentLimits, command, tasks, folder: repository, ...changes }));

const ids = ({ promptIds, completionIds, turns }: TrainingRow) => ({ promptIds, completionIds, turns });

test('an agent on the openai package has the rows, the messages and the rewards of our own loop', async () => {
  const environments = [
    createShop(),
    agent(['node', 'examples/agents/shop.mjs'], { readOnlyTools: ['get_account', 'list_stock'] }),
  ];
  const names = Array.from({ length: 6 }, (_, n) => `train-${n}`);
  const [own, programs] = await Promise.all(
    environments.map((environment) =>
      Promise.all(
        names.map(async (task) => {
          const { messages, rows, reward, steps, usage } = await played(environment, task);
          // The user's last message ends the program's conversation: the program sends no further request.
          const last = messages.findLastIndex(({ role }) => role === 'assistant');
          return { messages: messages.slice(0, last + 1), rows, reward, steps, usage };
        }),
      ),
    ),
  );
  for (const [n, { rows, ...rest }] of own!.entries()) {
    const program = programs![n]!;
    expect({ ...program, rows: program.rows.map(ids) }).toEqual({ ...rest, rows: rows.map(ids) });
    // Sampled in other batches, their sums are rounded otherwise.
    for (const [at, logprob] of rows[0]!.logprobs.entries())
      expect(program.rows[0]!.logprobs[at]).toBeCloseTo(logprob, 4);
  }
  expect(own!.some(({ steps }) => steps > 2)).toBe(true);
  expect(own!.every(({ rows }) => rows.length === 1)).toBe(true);
}, 600_000);

/** A program of a few lines; `ask` is a request of it. */
const program = (text: string, changes: Parameters<typeof agent>[1] = {}) => {
  const file = join(root, `${Math.random()}.mjs`);
  writeFileSync(
    file,
    `const tools = [{ type: 'function', function: { name: 'get_account', parameters: { type: 'object', properties: {} } } }];
     const ask = async (messages, more = {}) => {
       const answer = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
         method: 'POST',
         headers: { authorization: 'Bearer ' + process.env.OPENAI_API_KEY, 'content-type': 'application/json' },
         body: JSON.stringify({ model: 'x', messages, ...more }),
       });
       return more.stream ? answer.text() : (await answer.json()).choices?.[0].message ?? { status: answer.status };
     };
     const user = { role: 'user', content: 'cancel the red lamp i42 please' };
     const system = { role: 'system', content: 'you are a help desk .' };
     const reward = (reward) => console.log(JSON.stringify({ reward }));
     ${text}`,
  );
  return agent(['node', file], changes);
};

test('a conversation that an agent leaves and resumes is one row; forks and compactions begin others', async () => {
  const { rows, steps, messages, reward, output } = await played(
    program(`
      const main = [system, user, await ask([system, user])];
      const helper = await ask([{ ...system, content: 'you help .' }, user]);
      main.push({ role: 'user', content: 'the lamp' });
      main.push(await ask(main));
      await ask([...main.slice(0, 3), { role: 'user', content: 'the desk' }]);
      await ask([system, { role: 'user', content: 'so far : nothing' }]);
      reward(0.25);
    `),
  );
  expect({ reward, steps, output }).toEqual({ reward: 0.25, steps: 5, output: '{"reward":0.25}' });
  expect(rows.map(({ turns }) => turns.length)).toEqual([2, 1, 1, 1]);
  const [first, , fork] = rows;
  // The fork has the first answer before it, as it was sampled.
  const answered = [...first!.promptIds, ...first!.completionIds.slice(0, first!.turns[0]!.end)];
  expect(fork!.promptIds.slice(0, answered.length)).toEqual(answered);
  expect(messages.filter(({ role }) => role === 'system')).toHaveLength(3);
});

test('a reply that was being sampled when the program ended is no turn of its rollout', async () => {
  const environment = program(`
    await ask([user]);
    await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
      method: 'POST',
      headers: { authorization: 'Bearer ' + process.env.OPENAI_API_KEY },
      body: JSON.stringify({ model: 'x', messages: [user, { role: 'user', content: 'and then ?' }] }),
      signal: AbortSignal.timeout(200),
    }).catch(() => undefined);
    reward(1);`);
  let asked = 0;
  const slow = {
    ...client,
    sample: async (request: Parameters<typeof client.sample>[0]) => {
      // Longer than the program lives after it has given up.
      if (asked++ === 1) await sleep(3000);
      return client.sample(request);
    },
  };
  const rollout = await playedAlone('train-0', { environment, client: slow, policy, seed: 3 });
  expect([asked, rollout.steps, rollout.rows.length, rollout.reward]).toEqual([2, 1, 1, 1]);
  expect(rollout.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'user']);
});

test('a service is asked over HTTP as docs/agents.md says, for several rollouts at once', async () => {
  const service = closedAfterwards(
    await startLoopback(async (asked, answer) => {
      const { id } = (await json(asked)) as { id: string };
      const { authorization, 'x-base-url': url } = asked.headers;
      const headers = { authorization: String(authorization), 'content-type': 'application/json' };
      const body = JSON.stringify({ model: 'x', messages: [{ role: 'user', content: `cancel the red lamp ${id}` }] });
      const { ok } = await fetch(`${String(url)}/chat/completions`, { method: 'POST', headers, body });
      answer.writeHead(ok && id !== 'train-2' ? 200 : 500).end(`I am done\n${id === 'train-0' ? 1 : 0.5}\n`);
    }),
  );
  const [, told] = /^command: (\[sh, -c, .*\])$/m.exec(readFileSync(join(repository, 'docs/agents.md'), 'utf8'))!;
  const { port } = new URL(service.url);
  const environment = agent((parse(told!) as string[]).map((word) => word.replace(':9000/', `:${port}/`)));
  const [first, second, broken] = await Promise.allSettled(
    ['train-0', 'train-1', 'train-2'].map((task) => played(environment, task)),
  );
  expect(first).toMatchObject({ value: { reward: 1, steps: 1, rows: [{}] } });
  expect(second).toMatchObject({
    value: { reward: 0.5, messages: [{ content: 'cancel the red lamp train-1' }, {}] },
  });
  expect(broken).toMatchObject({ reason: { message: expect.stringMatching(/exit code 22.*error: 500/s) as string } });
});

test('a stream, a reward in a file, a grader, and a limit on requests', async () => {
  const streamed = `const text = await ask([user], { stream: true, tools });`;
  const file = await played(
    program(
      `${streamed} (await import('node:fs')).writeFileSync('r.json', text.endsWith('[DONE]\\n\\n') ? '1' : '0');`,
      { grader: ['cat', 'r.json'] },
    ),
  );
  expect(file).toMatchObject({ reward: 1, steps: 1, stopReason: 'agent_stop' });
  const grader = ['node', '-e', `console.log(require('./task.json').id === 'train-0' ? 1 : 0)`];
  expect(await played(program('await ask([user]);', { grader }))).toMatchObject({ reward: 1 });
  const endless = await played(program(`while (!(await ask([user])).status);`, { maxSteps: 3 }));
  expect(endless).toMatchObject({ reward: 0, steps: 3, stopReason: 'max_steps' });
  // A reward that the program printed before it failed at the refusal is ignored; a grader's reward counts.
  const failing = `reward(1); while (!(await ask([user])).status); process.exit(1);`;
  expect(await played(program(failing, { maxSteps: 1 }))).toMatchObject({ reward: 0, stopReason: 'max_steps' });
  expect(await played(program(failing, { maxSteps: 1, grader }))).toMatchObject({ reward: 1 });
});

test('a rollout that is given up ends its grader, and its folder goes, however deep it is', async () => {
  const file = join(root, 'grading');
  const grader = ['sh', '-c', `pwd > ${file}; sleep 600.25`];
  const deep = `for (let n = 0; n < 400; n++) { fs.mkdirSync('a name'.repeat(4)); process.chdir('a name'.repeat(4)); }`;
  const text = `await ask([user]); const fs = await import('node:fs'); ${deep}`;
  const environment = program(text, { grader, silenceSeconds: 600 });
  const stopped = new AbortController();
  const rollout = played(environment, 'train-0', { signal: stopped.signal });
  rollout.catch(() => undefined);
  const told = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []);
  while (told().length < 2) await sleep(50);
  stopped.abort(new Error('given up'));
  await expect(rollout).rejects.toThrow('given up');
  const [folder] = told();
  expect(processesWith('600.25')).toEqual([]);
  expect(existsSync(folder!)).toBe(false);
});

const refused = 'while (!(await ask([user])).status);';

test.each<[name: string, text: string, problem: string, changes?: Parameters<typeof agent>[1]]>([
  ['that never asks', 'reward(1);', 'has never asked the model'],
  ['that prints no reward', 'await ask([user]);', 'has printed no reward: there is none'],
  ['that fails', 'await ask([user]); reward(1); process.exit(3);', 'ended with exit code 3'],
  ['that a signal ends', `reward(1); ${refused} process.kill(process.pid, 'SIGSEGV');`, 'SIGSEGV', { maxSteps: 1 }],
  ['that a signal ends in a shell', `reward(1); ${refused} process.exit(139);`, 'exit code 139', { maxSteps: 1 }],
  [
    'that does not end',
    'await ask([user]); setInterval(() => 0, 1000);',
    'for 3 s and was killed',
    { silenceSeconds: 3 },
  ],
])('a program %s is broken', async (_, text, problem, changes = {}) => {
  await expect(played(program(text, changes))).rejects.toMatchObject(failing('EnvironmentFailed', problem));
});

test('an answer that its program did not wait for is that of the same question, asked again', async () => {
  const file = join(root, 'given-up');
  const text = `
    const body = { model: 'x', messages: [user] };
    const headers = { authorization: 'Bearer ' + process.env.OPENAI_API_KEY };
    const post = (signal) => fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', headers, body: JSON.stringify(body), signal });
    await post(AbortSignal.timeout(500)).catch(() => undefined);
    (await import('node:fs')).writeFileSync(${JSON.stringify(file)}, '');
    console.log((await (await post()).json()).choices[0].message.content === 'well' ? 1 : 0);`;
  const environment = program(text);
  const episode = closedAfterwards(await environment.reset({ id: 'train-0', seed: 1 }));
  while (!existsSync(file)) await sleep(50);
  await sleep(50);
  expect(await episode.step({ role: 'assistant', content: 'well' })).toMatchObject({ done: true });
  expect(await episode.evaluate('agent_stop')).toMatchObject({ reward: 1 });
});

test('a check starts it on three tasks and reports its observations, or the error', async () => {
  const said: string[] = [];
  const checked = (text: string, more: Partial<Parameters<typeof checkAgent>[0]> = {}) =>
    checkAgent({
      environment: program(text, { silenceSeconds: more.silenceSeconds ?? 600 }),
      ...{ silenceSeconds: 600, say: (line) => void said.push(line), ...more },
    });
  expect(await checked(`await ask([system, user], { tools, temperature: 0 }); reward(0);`)).toEqual([]);
  for (const task of ['train-0', 'train-19', 'test-19'])
    expect(said.filter((line) => line.startsWith(`task ${task}: asked after`))).toHaveLength(1);
  const sleeps = 'setInterval(() => 0, 1000);';
  for (const [text, more] of [
    ['reward(1);', {}],
    [sleeps, { silenceSeconds: 2 }],
    ['await ask([user]); reward(7);', {}],
  ] as const)
    expect(await checked(text, more)).toMatchObject([{ check: 'task train-0' }]);
  await expect(played(agent(['../nope/node', 'package.json']))).rejects.toMatchObject({
    type: 'EnvironmentMissing',
  });
  // Interrupted, it leaves nothing.
  const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('campaign-agent-'));
  const before = folders();
  const controller = new AbortController();
  const waiting = checked(sleeps, { signal: controller.signal });
  while (folders().length === before.length) await sleep(20);
  controller.abort(new Error('interrupted'));
  await expect(waiting).rejects.toThrow('interrupted');
  expect(folders()).toEqual(before);
});
