import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../src/artifacts/folder-store';
import type { ArtifactStore } from '../../src/artifacts/store';
import type { Message, ToolSchema } from '../../src/domain/messages';
import type { Policy } from '../../src/domain/rollout';
import { createPolicyClient, type PolicyClient, type TurnRequest } from '../../src/policy/client';
import { modelName } from '../../src/policy/adapters';
import { completion, refuse, startDialectServer, type DialectServer } from '../support/dialect-server';

let root: string;
let store: ArtifactStore;
let server: DialectServer;
let client: PolicyClient;
const clients: PolicyClient[] = [];

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'policy-'));
  store = openFolderStore(join(root, 'store'));
  server = await startDialectServer();
  client = connect();
});
afterEach(async () => {
  clients.splice(0).forEach((open) => open.close());
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

function connect(options: { url?: string; requestTimeoutMs?: number; maxLoadedAdapters?: number } = {}): PolicyClient {
  const opened = createPolicyClient({ url: server.url, concurrency: 8, store, ...options });
  clients.push(opened);
  return opened;
}

const base: Policy = { base: 'base@1', adapters: [] };
async function adapter(name: string): Promise<Policy['adapters'][number]> {
  mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, name, 'adapter_config.json'), JSON.stringify({ name }));
  return {
    ref: await store.putFolder({ key: name, producer: 'test', inputs: [], folder: join(root, name) }),
    weight: 1,
  };
}

const tools: ToolSchema[] = [
  { name: 'cancel_item', description: 'cancels', parameters: { type: 'object' }, annotations: { readOnlyHint: false } },
];
const conversation: Message[] = [
  { role: 'system', content: 'be kind' },
  { role: 'user', content: 'cancel it' },
  {
    role: 'assistant',
    content: '',
    toolCalls: [{ id: 'call_0', name: 'cancel_item', arguments: { item: 'red lamp', id: 'i42' } }],
  },
  { role: 'tool', toolCallId: 'call_0', content: 'ok' },
];
const request = (changes: Partial<TurnRequest> = {}): TurnRequest => ({
  policy: base,
  messages: conversation,
  tools,
  sampling: { temperature: 0.7, topP: 0.9, maxTokens: 12 },
  seed: 3,
  ...changes,
});
const calls = () => server.requests.map(({ call }) => call.replace('/v1/', ''));

test('asks in the dialect, and hands out message, ids and log-probs', async () => {
  server.complete = () =>
    completion(
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"b":1,"a":"x"}' } }],
      },
      'tool_calls',
    );
  expect(await client.sample(request())).toEqual({
    message: { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'f', arguments: { b: 1, a: 'x' } }] },
    finishReason: 'tool_calls',
    promptIds: [1, 2, 3],
    tokenIds: [5, 6],
    logprobs: [-0.5, -0.25],
  });
  expect(server.requests.at(-1)!.body).toEqual({
    model: 'base',
    messages: [
      { role: 'system', content: 'be kind' },
      { role: 'user', content: 'cancel it' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [
          {
            id: 'call_0',
            type: 'function',
            function: { name: 'cancel_item', arguments: '{"item":"red lamp","id":"i42"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'ok' },
    ],
    tools: [
      { type: 'function', function: { name: 'cancel_item', description: 'cancels', parameters: { type: 'object' } } },
    ],
    max_tokens: 12,
    temperature: 0.7,
    top_p: 0.9,
    seed: 3,
    logprobs: true,
    return_token_ids: true,
  });
});

test('arguments that are no JSON object stay in the text: they are the policy’s mistake', async () => {
  server.complete = () =>
    completion({
      content: 'well',
      tool_calls: [
        { id: 'c', function: { name: 'f', arguments: '{"a":' } },
        { id: 'd', function: { name: 'g', arguments: '[1]' } },
      ],
    });
  expect((await client.sample(request())).message).toEqual({ role: 'assistant', content: 'well\nf({"a":)\ng([1])' });
});

test.each([
  ['no token ids', { ...completion({ content: '' }), prompt_token_ids: undefined }, 'prompt_token_ids'],
  [
    'no log-probs',
    { ...completion({ content: '' }), choices: [{ ...completion({}).choices[0], logprobs: null }] },
    'logprobs',
  ],
  [
    'too few log-probs',
    { ...completion({ content: '' }), choices: [{ ...completion({}).choices[0], token_ids: [1] }] },
    '1 token_ids',
  ],
])('an answer with %s is refused by name', async (_, answer, named) => {
  server.complete = () => answer;
  await expect(client.sample(request())).rejects.toMatchObject({
    type: 'PolicyAnswerInvalid',
    message: expect.stringContaining(named),
  });
});

test.each([
  [500, { message: 'oops' }, 'PolicyServerError', true],
  [503, { message: 'going down' }, 'PolicyServerError', true],
  [429, { message: 'slow down' }, 'PolicyServerBusy', true],
  [404, { message: 'no model base' }, 'PolicyNotLoaded', true],
  [400, { message: 'temperature: -1', param: 'temperature' }, 'PolicyRequestRejected', false],
  [400, { message: 'prompt', code: 'context_length_exceeded' }, 'ContextLengthExceeded', false],
  [
    400,
    { message: "This model's maximum context length is 4096 tokens. However, ..." },
    'ContextLengthExceeded',
    false,
  ],
  [401, { message: 'no key' }, 'PolicyRequestRejected', false],
])('a %d %j is a %s', async (status, error, type, retryable) => {
  server.complete = refuse(status, error);
  await expect(client.sample(request())).rejects.toMatchObject({
    type,
    retryable,
    message: expect.stringContaining(error.message),
  });
  // One request each: retries are the caller's. (A model that is not known is loaded and asked again, once.)
  expect(calls().filter((call) => call === 'POST chat/completions')).toHaveLength(status === 404 ? 2 : 1);
});

test('no server, a silent server, a server that hangs up', async () => {
  server.complete = () => undefined;
  await expect(connect({ requestTimeoutMs: 50 }).sample(request())).rejects.toMatchObject({
    type: 'PolicyServerTimeout',
  });
  server.complete = (_, response) => void response.destroy();
  await expect(client.sample(request())).rejects.toMatchObject({ type: 'PolicyServerUnavailable', retryable: true });
  expect(await client.reachable()).toBe(true);
  const gone = await startDialectServer();
  await gone.close();
  await expect(connect({ url: gone.url }).sample(request())).rejects.toMatchObject({ type: 'PolicyServerUnavailable' });
  expect(await connect({ url: gone.url }).reachable()).toBe(false);
});

test('an answer that is no JSON is the server’s fault, and names what came', async () => {
  server.complete = (_, response) => void response.end('<html>proxy</html>');
  await expect(client.sample(request())).rejects.toMatchObject({
    type: 'PolicyAnswerInvalid',
    message: expect.stringContaining('<html>proxy'),
  });
});

test('an abort ends the request', async () => {
  const abort = new AbortController();
  server.complete = () => abort.abort();
  await expect(client.sample(request({ signal: abort.signal }))).rejects.toThrow('abort');
});

test('connections are kept, at most one per concurrent request', async () => {
  for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 8 }, () => client.sample(request())));
  expect(server.connections()).toBeLessThanOrEqual(9);
});

test('an adapter is named by its content and loaded once for all who ask at once', async () => {
  const policy = { ...base, adapters: [await adapter('x')] };
  await Promise.all(Array.from({ length: 8 }, () => client.sample(request({ policy }))));
  expect(calls().filter((call) => call === 'POST load_lora_adapter')).toHaveLength(1);
  expect([...server.adapters]).toEqual([[modelName(policy), await store.folder(policy.adapters[0]!.ref)]]);
  expect(modelName(policy)).toBe(`a-${policy.adapters[0]!.ref.sha256.slice(0, 12)}`);
  expect(server.requests.at(-1)!.body['model']).toBe(modelName(policy));
});

test('two workers may load the same adapter at the same moment', async () => {
  const policy = { ...base, adapters: [await adapter('x')] };
  const names = await Promise.all([connect(), connect(), connect()].map((worker) => worker.ensurePolicy(policy)));
  expect(new Set(names)).toEqual(new Set([modelName(policy)]));
});

test('a weighted policy is a merge of its adapters', async () => {
  const [x, y] = [await adapter('x'), await adapter('y')];
  const policy = {
    ...base,
    adapters: [
      { ...x, weight: 0.7 },
      { ...y, weight: 0.3 },
    ],
  };
  const name = await client.ensurePolicy(policy);
  expect(name).toMatch(/^m-[0-9a-f]{12}$/);
  const merge = server.requests.find(({ call }) => call === 'POST /v1/merge_lora_adapters')!;
  expect(merge.body).toEqual({
    lora_name: name,
    adapters: [
      { lora_name: modelName({ ...base, adapters: [x] }), weight: 0.7 },
      { lora_name: modelName({ ...base, adapters: [y] }), weight: 0.3 },
    ],
  });
  expect(
    modelName({
      ...base,
      adapters: [
        { ...x, weight: 0.6 },
        { ...y, weight: 0.4 },
      ],
    }),
  ).not.toBe(name);
});

test('a server that can not merge says so, and is not asked for ever', async () => {
  const other = await startDialectServer({ merges: false });
  const policy = { ...base, adapters: [{ ...(await adapter('x')), weight: 0.5 }, await adapter('y')] };
  await expect(connect({ url: other.url }).sample(request({ policy }))).rejects.toMatchObject({
    type: 'PolicyRequestRejected',
    message: expect.stringContaining("can't merge"),
  });
  await other.close();
});

test('after a restart of the server everything is loaded again, once', async () => {
  const [x, y] = [await adapter('x'), await adapter('y')];
  const one = { ...base, adapters: [x] };
  const merged = {
    ...base,
    adapters: [
      { ...x, weight: 0.5 },
      { ...y, weight: 0.5 },
    ],
  };
  await Promise.all([one, merged].map((policy) => client.sample(request({ policy }))));
  server.adapters.clear();
  server.requests.length = 0;
  const policies = Array.from({ length: 16 }, (_, n) => (n % 2 ? one : merged));
  await Promise.all(policies.map((policy) => client.sample(request({ policy }))));
  expect([...server.adapters.keys()].sort()).toEqual(
    [one, merged, { ...base, adapters: [y] }].map((p) => modelName(p)).sort(),
  );
  expect(calls().filter((call) => call === 'POST load_lora_adapter')).toHaveLength(2);
  expect(calls().filter((call) => call === 'POST merge_lora_adapters')).toHaveLength(1);
});

test('of more adapters than fit, the least recently used idle ones are unloaded', async () => {
  const worker = connect({ maxLoadedAdapters: 2 });
  const [a, b, c] = [await adapter('a'), await adapter('b'), await adapter('c')].map((one) => ({
    ...base,
    adapters: [one],
  }));
  let finish = () => {};
  server.complete = (body) =>
    body['model'] === modelName(a!)
      ? new Promise((resolve) => (finish = () => resolve(completion({ content: 'late' }))))
      : completion({ content: '' });
  const busy = worker.sample(request({ policy: a! }));
  for (const policy of [base, b!, c!]) await worker.sample(request({ policy }));
  expect([...server.adapters.keys()].sort()).toEqual([a!, c!].map((p) => modelName(p)).sort());
  finish();
  expect((await busy).message.content).toBe('late');
});
