/** Requests of an agent's program that are answered with an error: its rollout fails with the field, whether or not the program catches the error. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OutsideFailure } from '../../../src/domain/failures';
import { checkAgent } from '../../../src/environments/agent/check';
import { openAgent } from '../../../src/environments/agent/kind';
import { failing } from '../../support/failing';
import { closedAfterwards } from '../../support/opened';
import { playedAlone } from '../../support/played';
import { agentLimits } from '../../support/programs';
import { scriptedPolicy } from '../../support/scripted-policy';
import { temporaryFolder } from '../../support/temporary-folder';

const root = temporaryFolder();
const tasks = join(root, 'tasks.jsonl');
const ids = ['train-0', 'train-1', 'test-0'];
writeFileSync(tasks, ids.map((id) => JSON.stringify({ id, split: id.split('-')[0] })).join('\n'));

const policy = { base: 'base', adapters: [] };
const client = scriptedPolicy(() => ({ role: 'assistant', content: 'hello' }));

/** A program that asks once, does what `text` says, catches whatever comes of it, and tells reward 1. */
const agent = (text: string, changes: Partial<Parameters<typeof openAgent>[0]> = {}) => {
  const file = join(root, `${Math.random()}.mjs`);
  writeFileSync(
    file,
    `const url = process.env.OPENAI_BASE_URL;
     const task = process.env.CAMPAIGN_TASK_ID;
     const send = async (body, { path = '/chat/completions', method = 'POST', key = process.env.OPENAI_API_KEY, base = url } = {}) => {
       const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' };
       const answer = await fetch(base + path, { method, headers, ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }) });
       if (!answer.ok) throw new Error(await answer.text());
       return (await answer.json()).choices?.[0].message;
     };
     const user = { role: 'user', content: 'hello' };
     const ask = (more = {}, to) => send({ model: 'trace', messages: [user], ...more }, to);
     await ask();
     try { ${text} } catch (error) { console.error(error.message); }
     console.log('{"reward": 1}');`,
  );
  const command = [process.execPath, file];
  return closedAfterwards(openAgent({ ...agentLimits, command, tasks, folder: root, ...changes }));
};

const rolloutOf = (environment: ReturnType<typeof agent>, more: Partial<Parameters<typeof playedAlone>[1]> = {}) =>
  playedAlone('train-0', { environment, client, policy, ...more });

const BAD: [name: string, text: string, said: RegExp][] = [
  ['a field of another type', 'await ask({ temperature: "hot" })', /400: temperature: .*number.*"hot"/],
  ['a body that is too large', 'await ask({ user: "x".repeat(2 ** 24) })', /413: body: /],
  ['a path that is not there', 'await ask({}, { path: "/responses" })', /POST \/v1\/responses, .* 404/],
  ['a base without /v1', 'await ask({}, { base: url.slice(0, -3) })', /POST \/chat\/completions, .* 404/],
  ['another key', 'await ask({}, { key: "sk-mine" })', /401: authorization/],
];

test.each(BAD)('%s, whose error is caught, is no reward', async (_, text, message) => {
  await expect(rolloutOf(agent(text))).rejects.toMatchObject(failing('BadEnvironment', message));
});

const TOOL = `{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'] } } }`;
test('what is sent after a call is found by the check', async () => {
  const text = `const { tool_calls, ...message } = await ask({ tools: [${TOOL}] });
   for (const call of tool_calls ?? []) call.function.arguments = JSON.parse(call.function.arguments);
   await ask({ messages: [user, { ...message, tool_calls }] })`;
  const findings = await checkAgent({
    environment: agent(text),
    ...{ silenceSeconds: 60, say: () => undefined },
  });
  const problem = expect.stringMatching(/400: messages\.1\.tool_calls\.0\.function\.arguments: .*string.*\{"at":1\}/);
  expect(findings).toMatchObject([{ check: 'task train-0', problem: problem as string }]);
});

const GOOD: [name: string, text: string][] = [
  ['what models there are', 'await send(undefined, { path: "/models", method: "GET" })'],
  ['its model', 'await send(undefined, { path: "/models/" + process.env.OPENAI_MODEL, method: "GET" })'],
  ['what else there may be', 'await send(undefined, { path: "/props", method: "GET" })'],
  ['with a key of a rollout that is over', 'await ask({}, { key: "rollout-0" })'],
  [
    'and goes before all is sent',
    `const { request } = await import('node:http');
     const half = request(url + '/chat/completions', { method: 'POST', headers: { authorization: 'Bearer ' + process.env.OPENAI_API_KEY, 'content-length': 1000 } });
     half.on('error', () => undefined).write('{"model":');
     await new Promise((go) => setTimeout(go, 200));
     half.destroy();
     await ask({ user: 'again' })`,
  ],
];
test.each(GOOD)('a program that asks %s has its reward', async (_, text) => {
  expect(await rolloutOf(agent(text))).toMatchObject({ status: 'scored', reward: 1 });
});

test('what is asked once the rollout is over is not counted, and a full context is a result of the policy', async () => {
  const late = 'for (let n = 0; n < 3; n++) await ask().catch(() => undefined); await ask({ n: 2 })';
  expect(await rolloutOf(agent(late), { maxSteps: 2 })).toMatchObject({ stopReason: 'max_steps', reward: 1, steps: 2 });
  const full = scriptedPolicy(({ messages }) => {
    if (messages.length > 1) throw new OutsideFailure('ContextLengthExceeded', 'too long');
    return { role: 'assistant', content: 'hello' };
  });
  const long = 'await ask({ messages: [user, user] })';
  expect(await rolloutOf(agent(long), { client: full })).toMatchObject({ stopReason: 'context_length', reward: 1 });
});

test('what the policy server refuses fails the rollout too', async () => {
  const refusing = scriptedPolicy(({ messages }) => {
    if (messages.length > 1) throw new OutsideFailure('PolicyRequestRejected', '400 messages: roles must alternate');
    return { role: 'assistant', content: 'hello' };
  });
  const rollout = rolloutOf(agent('await ask({ messages: [user, user] })'), { client: refusing });
  await expect(rollout).rejects.toMatchObject({ type: 'PolicyRequestRejected' });
});
