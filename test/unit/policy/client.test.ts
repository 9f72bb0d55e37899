import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import type { ArtifactStore, Snapshots } from '../../../src/artifacts/store';
import type { Message, ToolSchema } from '../../../src/domain/messages';
import type { FixedPolicy } from '../../../src/domain/rollout';
import { OutsideFailure } from '../../../src/domain/failures';
import { createPolicyClient, type PolicyClient, tryAdapter } from '../../../src/policy/client';
import type { TurnRequest } from '../../../src/policy/wire';
import { modelName } from '../../../src/policy/adapters';
import { type Merge, type Part, weightsOf } from '../../../src/policy/merge';
import { pythonPath } from '../../../src/cli/project';
import {
  BASE,
  completion,
  type DialectServer,
  refuse,
  startDialectServer,
  vllmAnswer,
} from '../../support/dialect-server';

let root: string;
let store: ArtifactStore;
let server: DialectServer;
let client: PolicyClient;
/** What was merged, and how. */
let merges: Part[][];
const merge: Merge = async (parts) => {
  merges.push([...parts]);
  return (await adapter(`merged-${merges.length}`)).ref;
};
const clients: PolicyClient[] = [];

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'policy-'));
  store = openFolderStore(join(root, 'store'));
  server = await startDialectServer();
  merges = [];
  client = connect();
});
afterEach(async () => {
  clients.splice(0).forEach((open) => open.close());
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

function connect(
  options: {
    url?: string;
    requestTimeoutMs?: number;
    maxLoadedAdapters?: number;
    merge?: Merge;
    store?: ArtifactStore;
  } = {},
): PolicyClient {
  const opened = createPolicyClient({ url: server.url, concurrency: 8, store, merge, ...options });
  clients.push(opened);
  return opened;
}

const base: FixedPolicy = { base: BASE, adapters: [] };
/** Of a policy of one adapter. */
const nameOf = ({ adapters }: FixedPolicy): string => modelName(adapters[0]!.ref);
async function adapter(name: string): Promise<Part> {
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
    top_k: -1,
    min_p: 0,
    repetition_penalty: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    seed: 3,
    logprobs: true,
    return_token_ids: true,
  });
});

test('numbers go back as the policy wrote them', async () => {
  const written = '{"order":12345678901234567890,"price":2.0,"most":1e400,"n":1e3}';
  server.complete = () =>
    completion({ content: '', tool_calls: [{ id: 'c', function: { name: 'f', arguments: written } }] }, 'tool_calls');
  const { message } = await client.sample(request());
  await client.sample(request({ messages: [...conversation, message] }));
  const { messages } = server.requests.at(-1)!.body as { messages: { tool_calls?: object[] }[] };
  expect(messages.at(-1)!.tool_calls).toMatchObject([{ function: { name: 'f', arguments: written } }]);
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
  [404, vllmAnswer('unknown model').body.error!, 'PolicyNotLoaded', true],
  [400, vllmAnswer('wrong temperature').body.error!, 'PolicyRequestRejected', false],
  [400, { message: 'prompt', code: 'context_length_exceeded' }, 'ContextLengthExceeded', false],
  [400, vllmAnswer('prompt over the context').body.error!, 'ContextLengthExceeded', false],
  [400, vllmAnswer('ids over the context').body.error!, 'ContextLengthExceeded', false],
  // As vLLM 0.32 says it of one that just fills the context.
  [
    400,
    { message: 'max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)', param: 'max_tokens' },
    'ContextLengthExceeded',
    false,
  ],
  [401, { message: 'Unauthorized; set POLICY_SERVER_API_KEY' }, 'PolicyServerWrong', false],
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

test('an answer that is no JSON is the server’s fault, which passes, and names what came', async () => {
  server.complete = (_, response) => void response.end('<html>proxy</html>');
  await expect(client.sample(request())).rejects.toMatchObject({
    type: 'PolicyServerError',
    message: expect.stringContaining('an HTML page'),
  });
});

test('an answer that the server gave up is asked for again, one that it cut off is an answer', async () => {
  server.complete = () => completion({ content: 'half' }, 'abort');
  await expect(client.sample(request())).rejects.toMatchObject({ type: 'PolicyServerError', retryable: true });
  server.complete = () => completion({ content: 'la la la la' }, 'repetition');
  expect(await client.sample(request())).toMatchObject({ finishReason: 'length', message: { content: 'la la la la' } });
});

test('an abort ends the request', async () => {
  const abort = new AbortController();
  server.complete = () => abort.abort();
  await expect(client.sample(request({ signal: abort.signal }))).rejects.toThrow('abort');
});

test('an adapter is named by its content and loaded once for all who ask at once', async () => {
  const policy = { ...base, adapters: [await adapter('x')] };
  await Promise.all(Array.from({ length: 8 }, () => client.sample(request({ policy }))));
  expect(calls().filter((call) => call === 'POST load_lora_adapter')).toHaveLength(1);
  expect([...server.adapters]).toEqual([[nameOf(policy), await store.folder(policy.adapters[0]!.ref)]]);
  expect(nameOf(policy)).toBe(`a-${policy.adapters[0]!.ref.sha256}`);
  expect(server.requests.at(-1)!.body['model']).toBe(nameOf(policy));
});

test('one that was loaded from a folder that is gone is loaded from its own: vLLM would end where it reads it again', async () => {
  const policy = mixOf(await adapter('x'));
  const own = await store.folder(policy.adapters[0]!.ref);
  server.adapters.set(nameOf(policy), join(root, 'of a home that was deleted'));
  await client.ensurePolicy(policy);
  expect(server.adapters.get(nameOf(policy))).toBe(own);
  await connect().ensurePolicy(policy);
  expect(calls().filter((call) => call === 'POST load_lora_adapter')).toHaveLength(1);
});

test('vLLM is told of an adapter whose experts are in one tensor', async () => {
  const policies = await Promise.all(
    [{ target_parameters: ['experts.down_proj'] }, { target_parameters: null }, {}].map(async (config, n) => {
      mkdirSync(join(root, `of-${n}`));
      writeFileSync(join(root, `of-${n}`, 'adapter_config.json'), JSON.stringify({ r: n, ...config }));
      const ref = await store.putFolder({ key: `${n}`, producer: 'test', inputs: [], folder: join(root, `of-${n}`) });
      return { ...base, adapters: [{ ref, weight: 1 }] };
    }),
  );
  for (const policy of policies) await client.ensurePolicy(policy);
  const told = server.requests.flatMap(({ call, body }) =>
    call.includes('load_lora_adapter') ? [body['is_3d_lora_weight']] : [],
  );
  expect(told).toEqual([true, undefined, undefined]);
});

test('two workers may load the same adapter at the same moment', async () => {
  const policy = { ...base, adapters: [await adapter('x')] };
  const names = await Promise.all([connect(), connect(), connect()].map((worker) => worker.ensurePolicy(policy)));
  expect(new Set(names)).toEqual(new Set([nameOf(policy)]));
});

const told = (answer: string): [number, string] => {
  const { status, body } = vllmAnswer(answer);
  return [status, body.error?.message ?? body.detail!];
};
const addLora = (said: string) => told('adapter of too high a rank')[1].replace(/'LoRA rank.*\.'/, `'${said}'`);
const UNEXPECTED =
  "While loading /x, expected target modules in {'q_proj'} but received ['model.layers.0.mlp.up_proj']. Please verify that the loaded LoRA module is correct";
test.each([
  [...told('adapter of too high a rank'), '; start vLLM with --max-lora-rank 64'],
  [500, addLora('LoRA rank 600 is greater than max_lora_rank 512.'), '; vLLM takes no rank above 512: lower'],
  [...told('damaged adapter'), 'header too large'],
  [500, addLora(UNEXPECTED), '; correct training.lora.targetModules, or --lora-target-modules of vLLM'],
  [...told('adapter without --enable-lora'), '; start vLLM with --enable-lora'],
  [...told('adapter that is nowhere'), '; the server has to see the home folder (CAMPAIGN_HOME) under the same path'],
  [400, told('adapter that is nowhere')[1], '; the server has to see the home folder'],
  [...told('no such path'), '; start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True'],
  [400, 'lora_path /x: the base model has no linear module conv.1', 'no linear module'],
])('an adapter that is refused is not waited for: %d %s', async (status, message, said) => {
  server.load = (_, response) => refuse(status, { message, type: 'Error', param: null, code: status })({}, response);
  await expect(client.sample(request({ policy: mixOf(await adapter('x')) }))).rejects.toMatchObject({
    type: 'AdapterRefused',
    retryable: false,
    message: expect.stringContaining(said),
  });
  expect(calls().filter((call) => call === 'POST load_lora_adapter')).toHaveLength(1);
});

test('of a store in a bucket a server is asked by name first, and given the path where it fetches nothing', async () => {
  const inBucket = { ...store, snapshots: {} as Snapshots };
  const [x, y, z] = [mixOf(await adapter('x')), mixOf(await adapter('y')), mixOf(await adapter('z'))];
  const worker = connect({ store: inBucket });
  await worker.ensurePolicy(x);
  expect(server.adapters.get(nameOf(x))).toBe(await store.folder(x.adapters[0]!.ref));
  server.fetches = true;
  await worker.ensurePolicy(y);
  expect(server.adapters.get(nameOf(y))).toBe('fetched');
  server.complete = refuse(400, { message: `LoRA adapter '${nameOf(z)}' was found but could not be loaded.` });
  await expect(worker.ensurePolicy(z)).rejects.toMatchObject({
    type: 'AdapterRefused',
    message: expect.stringContaining('--max-lora-rank') as string,
  });
});

test.each([
  [addLora('EngineCore encountered an issue.'), 503],
  ['EngineCore encountered an issue. See stack trace (above) for the root cause.', 200],
  [addLora('CUDA out of memory. Tried to allocate 20.00 MiB.'), 200],
])('an adapter is not to blame for a server that breaks down: %s', async (message, health) => {
  server.load = (_, response) => refuse(500, { message })({}, response);
  server.health = health;
  await expect(client.sample(request({ policy: mixOf(await adapter('x')) }))).rejects.toMatchObject({
    type: 'PolicyServerError',
    retryable: true,
  });
});

const mixOf = (...adapters: Part[]): FixedPolicy => ({ ...base, adapters });

test('a weighted policy is served by one merged adapter, in whatever order its parts are named', async () => {
  const [x, y, z] = [await adapter('x'), await adapter('y'), await adapter('z')];
  const parts = [
    { ...x, weight: 0.7 },
    { ...y, weight: -0.3 },
  ] as const;
  const name = await client.ensurePolicy(mixOf(...parts));
  expect(name).toBe(modelName((await adapter('merged-1')).ref));
  const same = [mixOf(parts[1], parts[0]), mixOf({ ...z, weight: 0 }, ...parts)];
  for (const policy of same) {
    expect(weightsOf(policy)).toBe(weightsOf(mixOf(...parts)));
    expect(await client.ensurePolicy(policy)).toBe(name);
  }
  expect(merges).toEqual([[...parts].sort((a, b) => (a.ref.sha256 < b.ref.sha256 ? -1 : 1))]);
  expect([...server.adapters]).toEqual([[name, await store.folder((await adapter('merged-1')).ref)]]);
  for (const other of [mixOf({ ...x, weight: 0.6 }, parts[1]), mixOf(parts[0]), mixOf(x, y), mixOf(x)]) {
    expect(weightsOf(other)).not.toBe(weightsOf(mixOf(...parts)));
  }
});

test('only what weighs is served: one adapter as it is, none as the base model', async () => {
  const [x, y] = [await adapter('x'), await adapter('y')];
  expect(await client.ensurePolicy(mixOf({ ...y, weight: 0 }, x))).toBe(nameOf(mixOf(x)));
  expect(await client.ensurePolicy(mixOf({ ...y, weight: 0 }))).toBe('base');
  expect([...server.adapters.values()]).toEqual([await store.folder(x.ref)]);
  expect(merges).toEqual([]);
  await client.ensurePolicy(mixOf({ ...x, weight: 0.5 }));
  expect(merges).toEqual([[{ ...x, weight: 0.5 }]]);
});

test('of more adapters than fit, the least recently used idle ones are unloaded', async () => {
  const worker = connect({ maxLoadedAdapters: 2 });
  const [a, b, c] = [await adapter('a'), await adapter('b'), await adapter('c')].map((one) => ({
    ...base,
    adapters: [one],
  }));
  let finish = () => {};
  server.complete = (body) =>
    body['model'] === nameOf(a!)
      ? new Promise((resolve) => (finish = () => resolve(completion({ content: 'late' }))))
      : completion({ content: '' });
  const busy = worker.sample(request({ policy: a! }));
  for (const policy of [base, b!, c!]) await worker.sample(request({ policy }));
  expect([...server.adapters.keys()].sort()).toEqual([a!, c!].map((p) => nameOf(p)).sort());
  finish();
  expect((await busy).message.content).toBe('late');
});

test('an adapter that changes nothing goes the way of all, and is taken off the server again', async () => {
  const trial = { store, client, python: pythonPath(), base: BASE, model: resolve('models/base') };
  await tryAdapter({ ...trial, targetModules: ['q_proj'], rank: 3 });
  expect(calls().slice(-3)).toEqual(['POST load_lora_adapter', 'POST chat/completions', 'POST unload_lora_adapter']);
  const { lora_path: path } = server.requests.at(-3)!.body;
  expect(JSON.parse(readFileSync(join(String(path), 'adapter_config.json'), 'utf8'))).toMatchObject({ r: 3 });
  server.load = (_, response) =>
    refuse(500, { message: addLora('LoRA rank 3 is greater than max_lora_rank 1.') })({}, response);
  await expect(tryAdapter({ ...trial, targetModules: ['q_proj'], rank: 3 })).rejects.toMatchObject({
    type: 'AdapterRefused',
    message: expect.stringContaining('--max-lora-rank 8'),
  });
}, 120_000);

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

test('connections are kept, at most one per concurrent request', async () => {
  for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 8 }, () => client.sample(request())));
  expect(server.connections()).toBeLessThanOrEqual(9);
});

test('a merge that fails is told as it is, and tried again by the next who asks', async () => {
  let refusals = 1;
  const worker = connect({
    merge: (parts) =>
      refusals-- > 0 ? Promise.reject(new OutsideFailure('BadInput', 'of two base models')) : merge(parts),
  });
  const policy = mixOf({ ...(await adapter('x')), weight: 0.5 }, await adapter('y'));
  await expect(worker.sample(request({ policy }))).rejects.toMatchObject({ type: 'BadInput' });
  expect((await worker.sample(request({ policy }))).message.content).toBe('hello');
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
  expect([...server.adapters.keys()].sort()).toEqual([nameOf(one), modelName((await adapter('merged-2')).ref)].sort());
  expect(calls().filter((call) => call === 'POST load_lora_adapter')).toHaveLength(2);
});

test('of what was loaded, the one that the server does not know any more is forgotten alone', async () => {
  const worker = connect({ maxLoadedAdapters: 2 });
  const [a, b, c] = [await adapter('a'), await adapter('b'), await adapter('c')].map((one) => mixOf(one));
  for (const policy of [a!, b!]) await worker.sample(request({ policy }));
  server.adapters.delete(nameOf(a!)!);
  for (const policy of [a!, c!, base, a!]) await worker.sample(request({ policy }));
  expect([...server.adapters.keys()].sort()).toEqual([a!, c!].map((p) => nameOf(p)).sort());
  expect(calls().filter((call) => call === 'POST load_lora_adapter')).toHaveLength(4);
});
