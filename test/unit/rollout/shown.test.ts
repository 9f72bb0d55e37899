/** What is stored answers for an environment that shows what it showed, and for no other, whatever its version says. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ArtifactStore } from '../../../src/store/store';
import type { Environment } from '../../../src/domain/environment';
import { openAgent } from '../../../src/environments/agent/kind';
import { openProcessEnvironment, type ProcessEnvironmentOptions } from '../../../src/environments/process';
import { closedAfterwards } from '../../support/opened';
import { played } from '../../support/played';
import { agentLimits } from '../../support/programs';
import { scriptedPolicy } from '../../support/scripted-policy';
import { temporaryStore } from '../../support/temporary-store';

let store: ArtifactStore;
let root: string;
temporaryStore((made, folder) => ([store, root] = [made, folder]));
let opened = 0;

interface Says {
  policy?: string;
  tool?: string;
  maxSteps?: number;
  /** First messages, by task. */
  first?: Record<string, string>;
  note?: string;
  /** The scenario that a simulated user is given. */
  user?: string;
  /** A task that can't be opened so many times. */
  refuses?: Record<string, number>;
}

/** An environment whose program says all that, and that its version is 1. */
function saying(says: Says = {}, partners: Pick<ProcessEnvironmentOptions, 'user'> = {}): Environment {
  opened += 1;
  const [file, data] = [join(root, `bridge-${opened}.js`), join(root, `says-${opened}.json`)];
  writeFileSync(data, JSON.stringify(says));
  writeFileSync(
    file,
    `const says = require(${JSON.stringify(data)});
     const refused = {};
     let count = 0;
     const tools = [{ name: 'look', description: says.tool ?? 'looks', parameters: { type: 'object', properties: {} } }];
     const maxSteps = says.maxSteps ?? 3;
     const methods = {
       describe: () => ({ name: 'e', version: '1', policy: says.policy ?? 'be kind', tools: [], maxSteps, hasReference: false, notes: [says.note ?? 'n'] }),
       tasks: ({ split }) => ({ tasks: [{ id: 'a', split }] }),
       reset: ({ task: { id } }) => {
         refused[id] = (refused[id] ?? 0) + 1;
         if (refused[id] <= (says.refuses?.[id] ?? 0)) throw new Error('no such row');
         const content = says.first?.[id] ?? 'hello ' + id;
         const user = says.user && [{ role: 'system', content: says.user }];
         return { episode: 'e' + count++, messages: [{ role: 'user', content }], tools, maxSteps, user };
       },
       step: ({ message: { role } }) => ({ messages: [], done: role === 'assistant', stopReason: 'user_stop' }),
       evaluate: () => ({ reward: 1, breakdown: {} }),
       close: () => ({}),
     };
     require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
       const { id, method, params } = JSON.parse(line);
       const answer = {};
       try { answer.result = methods[method](params); } catch (error) { answer.error = { code: -32000, message: error.message }; }
       process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\\n');
     });`,
  );
  return closedAfterwards(openProcessEnvironment({ command: [process.execPath, file], ...partners }));
}

const tasks = ['a', 'b', 'c', 'd', 'e'];
/** How many of the tasks are played, as each campaign asks for them: the rest is found. */
async function playedOf(environment: Environment, o: { tasks?: string[] } = {}): Promise<number> {
  const client = scriptedPolicy(async () => ({ role: 'assistant', content: 'done' }));
  const policy = { base: 'base', adapters: [] };
  const { summary } = await played({ environment, policy, tasks, store, client, ...o });
  expect(summary).toMatchObject({ scored: (o.tasks ?? tasks).length, broken: 0 });
  return client.turns;
}

test.each<[what: string, says: Says, played: number]>([
  ['nothing', {}, 0],
  ['what it tells readers', { note: 'another' }, 0],
  ['its policy', { policy: 'be rude' }, 5],
  ['what a tool says of itself', { tool: 'looks closely' }, 5],
  ['its limit', { maxSteps: 4 }, 5],
  ['the first message of one task', { first: { d: 'Good evening' } }, 1],
  ['what its user is given', { user: 'your name is Ann' }, 5],
])('with the same version, and %s changed', async (_what, says, again) => {
  const speak = jest.fn(async () => ({ role: 'user' as const, content: 'hi' }));
  const partners = says.user ? { user: { id: 'u', speak } } : {};
  const before = says.user ? { user: 'your name is Bob' } : {};
  expect(await playedOf(saying(before, partners))).toBe(5);
  const asked = speak.mock.calls.length;
  expect(await playedOf(saying(says, partners))).toBe(again);
  // A look asks no model.
  expect(speak.mock.calls.length).toBe(asked * (again > 0 ? 2 : 1));
  expect(await playedOf(saying(says, partners))).toBe(0);
  // Nothing is lost where the change is taken back.
  expect(await playedOf(saying(before, partners))).toBe(0);
});

test('a task that could not be looked at is played, and what was stored of it is not taken for it', async () => {
  expect(await playedOf(saying())).toBe(5);
  // Twice: it is asked for once more.
  const once = (says: Says = {}) => saying({ refuses: { b: 2 }, ...says });
  expect(await playedOf(once())).toBe(1);
  expect(await playedOf(once({ first: { b: 'Good evening' } }))).toBe(1);
  expect(await playedOf(saying())).toBe(0);
  expect(await playedOf(saying({ refuses: { a: 1 } }))).toBe(0);
});

test('an agent’s program is what it asks with, but for the time of day and its folder', async () => {
  const prompt = join(root, 'prompt.js');
  const write = (text: string) => writeFileSync(prompt, `module.exports = ${text};`);
  writeFileSync(
    join(root, 'agent.js'),
    `const { id } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
     const content = require(${JSON.stringify(prompt)});
     fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
       method: 'POST',
       headers: { authorization: 'Bearer ' + process.env.OPENAI_API_KEY },
       body: JSON.stringify({ model: 'x', messages: [{ role: 'system', content }, { role: 'user', content: 'do ' + id }] }),
     }).then(() => console.log(1));`,
  );
  const lines = ['a', 'b'].map((id) => JSON.stringify({ id, split: 'train' }));
  writeFileSync(join(root, 'tasks.jsonl'), lines.join('\n'));
  const program = { command: ['node', 'agent.js'], grader: ['echo', '1'], folder: root };
  const agent = () => closedAfterwards(openAgent({ ...agentLimits, ...program, tasks: join(root, 'tasks.jsonl') }));
  const run = () => playedOf(agent(), { tasks: ['a', 'b'] });
  const clock = (day: number) =>
    `'Be kind. It is Saturday, November ${day}, 2026 (2026-11-${day}T19:53:50.118Z, 7:53 PM). You are in ' + process.cwd()`;
  write(clock(28));
  expect(await run()).toBe(2);
  write(clock(29));
  expect(await run()).toBe(0);
  write(clock(29).replace('kind', 'rude'));
  expect(await run()).toBe(2);
});
