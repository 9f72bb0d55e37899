/** A policy client: what it asks and hands out, which adapters it has the server load, and that it hands on nothing that another base model has answered. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import type { FailureType } from '../../../src/domain/failures';
import type { Message, ToolSchema } from '../../../src/domain/messages';
import type { FixedPolicy } from '../../../src/domain/rollout';
import { modelName } from '../../../src/policy/adapters';
import { createPolicyClient, type PolicyClient } from '../../../src/policy/client';
import type { Merge, Part } from '../../../src/policy/merge';
import type { TurnRequest } from '../../../src/policy/wire';
import {
  BASE,
  completion,
  type DialectServer,
  refuse,
  startDialectServer,
  vllmAnswer,
} from '../../support/dialect-server';
import { failing } from '../../support/failing';
import { closedAfterwards } from '../../support/opened';
import { temporaryFolder } from '../../support/temporary-folder';

const OTHER = 'base@ba9876543210';
const root = temporaryFolder();
const store = openFolderStore(join(root, 'store'));
let server: DialectServer;
let client: PolicyClient;
/** What was merged, and how. */
let merges: Part[][];
const merge: Merge = async (parts) => {
  merges.push([...parts]);
  return (await adapter(`merged-${merges.length}`)).ref;
};
beforeEach(async () => {
  server = closedAfterwards(await startDialectServer());
  merges = [];
  client = connect();
});

const connect = (options: Partial<Parameters<typeof createPolicyClient>[0]> = {}): PolicyClient =>
  closedAfterwards(createPolicyClient({ url: server.url, concurrency: 8, store, merge, ...options }));

/** Asks the policy; returns the name of the model that the server is asked for. */
async function modelFor(from: PolicyClient, policy: FixedPolicy): Promise<unknown> {
  await ask(from, policy);
  return server.requests.at(-1)!.body['model'];
}

const base: FixedPolicy = { base: BASE, adapters: [] };
const mixOf = (...adapters: Part[]): FixedPolicy => ({ ...base, adapters });
/** Of a policy of one adapter. */
const nameOf = ({ adapters }: FixedPolicy): string => modelName(adapters[0]!.ref);
async function adapter(name: string, config: object = { name }): Promise<Part> {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify(config));
  return { ref: await store.putFolder({ key: name, producer: 'test', inputs: [], folder }), weight: 1 };
}
const adapters = (names: string) => Promise.all(names.split(' ').map((name) => adapter(name)));

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
const ask = (from = client, policy = base) => from.sample(request({ policy }));
const calls = () => server.requests.map(({ call }) => call.replace('/v1/', ''));
const asked = (call: string) => calls().filter((one) => one === `POST ${call}`).length;

describe('a turn', () => {
  test('is asked in the dialect; message, ids and log-probs are handed out', async () => {
    const called = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"b":1,"a":"x"}' } };
    server.complete = () => completion({ role: 'assistant', content: null, tool_calls: [called] }, 'tool_calls');
    expect(await ask()).toEqual({
      message: { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'f', arguments: { b: 1, a: 'x' } }] },
      finishReason: 'tool_calls',
      promptIds: [1, 2, 3],
      tokenIds: [5, 6],
      logprobs: [-0.5, -0.25],
    });
    const sent = { name: 'cancel_item', arguments: '{"item":"red lamp","id":"i42"}' };
    expect(server.requests.at(-1)!.body).toEqual({
      model: 'base',
      messages: [
        { role: 'system', content: 'be kind' },
        { role: 'user', content: 'cancel it' },
        { role: 'assistant', content: '', tool_calls: [{ id: 'call_0', type: 'function', function: sent }] },
        { role: 'tool', tool_call_id: 'call_0', content: 'ok' },
      ],
      tools: [
        { type: 'function', function: { name: 'cancel_item', description: 'cancels', parameters: { type: 'object' } } },
      ],
      ...{ max_tokens: 12, temperature: 0.7, top_p: 0.9, seed: 3 },
      ...{ top_k: -1, min_p: 0, repetition_penalty: 1, presence_penalty: 0, frequency_penalty: 0 },
      ...{ logprobs: true, return_token_ids: true },
    });
  });

  test('has arguments that are no JSON object in its text: they are the policy’s mistake', async () => {
    const tool_calls = [
      { id: 'c', function: { name: 'f', arguments: '{"a":' } },
      { id: 'd', function: { name: 'g', arguments: '[1]' } },
    ];
    server.complete = () => completion({ content: 'well', tool_calls });
    expect((await ask()).message).toEqual({ role: 'assistant', content: 'well\nf({"a":)\ng([1])' });
  });
});

describe('an answer that is none', () => {
  const { choices, ...rest } = completion({ content: '' });
  const lacking = (changes: object) => ({ ...rest, choices: [{ ...choices[0], ...changes }] });
  const recorded = (to: string) => refuse(400, vllmAnswer(to).body.error!);
  test.each<[string, unknown, FailureType]>([
    ['prompt_token_ids', { choices, prompt_token_ids: undefined }, 'PolicyAnswerInvalid'],
    ['logprobs', lacking({ logprobs: null }), 'PolicyAnswerInvalid'],
    ['1 token_ids', lacking({ token_ids: [1] }), 'PolicyAnswerInvalid'],
    ['finish_reason abort', completion({ content: 'half' }, 'abort'), 'PolicyServerError'],
  ])('lacks %s', async (said, answer, type) => {
    server.complete = () => answer;
    await expect(ask()).rejects.toMatchObject(failing(type, said, { retryable: type === 'PolicyServerError' }));
  });

  type Row = [string, DialectServer['complete'], FailureType, boolean, string];
  const tooLong = (how: string, complete: DialectServer['complete'], said: string): Row => [
    `400, ${how}`,
    complete,
    'ContextLengthExceeded',
    false,
    said,
  ];
  const fills = 'max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)';
  test.each<Row>([
    ['500', refuse(500, { message: 'oops' }), 'PolicyServerError', true, 'oops'],
    ['503', refuse(503, { message: 'going down' }), 'PolicyServerError', true, 'going down'],
    ['429', refuse(429, { message: 'slow down' }), 'PolicyServerBusy', true, 'slow down'],
    ['a page', (_, response) => void response.end('<html>proxy</html>'), 'PolicyServerError', true, 'no JSON'],
    ['the end of the connection', (_, response) => void response.destroy(), 'PolicyServerUnavailable', true, 'closed'],
    ['404', refuse(404, { message: 'no model' }), 'PolicyNotLoaded', true, 'no model'],
    ['400', recorded('wrong temperature'), 'PolicyRequestRejected', false, 'must be non-negative, got -1.0'],
    tooLong('by its code', refuse(400, { message: 'prompt', code: 'context_length_exceeded' }), 'prompt'),
    tooLong('of a prompt', recorded('prompt over the context'), 'maximum context length is 2048 tokens'),
    tooLong('of ids', recorded('ids over the context'), 'longer than the maximum model length of 2048'),
    tooLong('as vLLM 0.32 says it of a prompt that just fills the context', refuse(400, { message: fills }), fills),
    ['401', refuse(401, { message: 'Unauthorized' }), 'PolicyServerWrong', false, 'set POLICY_SERVER_API_KEY'],
  ])('is %s', async (_, complete, type, retryable, said) => {
    server.complete = complete;
    await expect(ask()).rejects.toMatchObject(failing(type, said, { retryable }));
    // One request each: retries are the caller's. (A model that is not known is loaded and asked again, once.)
    expect(asked('chat/completions')).toBe(type === 'PolicyNotLoaded' ? 2 : 1);
    expect(await client.reachable()).toBe(true);
  });

  test('is silence, or nobody', async () => {
    server.complete = () => undefined;
    await expect(ask(connect({ requestTimeoutMs: 50 }))).rejects.toMatchObject({ type: 'PolicyServerTimeout' });
    await server.close();
    await expect(ask(connect())).rejects.toMatchObject({ type: 'PolicyServerUnavailable' });
    expect(await client.reachable()).toBe(false);
  });

  test('is waited for until the asker gives up', async () => {
    const abort = new AbortController();
    server.complete = () => abort.abort();
    await expect(client.sample(request({ signal: abort.signal }))).rejects.toThrow('abort');
  });
});

describe('an adapter', () => {
  const loads = () => asked('load_lora_adapter');

  test('is named by its content and loaded once for all who ask at once', async () => {
    const policy = mixOf(await adapter('x'));
    await Promise.all(Array.from({ length: 8 }, () => ask(client, policy)));
    expect(loads()).toBe(1);
    expect([...server.adapters]).toEqual([[nameOf(policy), await store.folder(policy.adapters[0]!.ref)]]);
    expect(nameOf(policy)).toBe(`a-${policy.adapters[0]!.ref.sha256}`);
    expect(server.requests.at(-1)!.body['model']).toBe(nameOf(policy));
  });

  const told = (answer: string): [number, string] => {
    const { status, body } = vllmAnswer(answer);
    return [status, body.error?.message ?? body.detail!];
  };
  const addLora = (said: string) => told('adapter of too high a rank')[1].replace(/'LoRA rank.*\.'/, `'${said}'`);
  const loading =
    (status: number, message: string): DialectServer['complete'] =>
    (_, response) =>
      refuse(status, { message })({}, response);

  test.each([
    [...told('adapter of too high a rank'), '--max-lora-rank'],
    [...told('damaged adapter'), 'header too large'],
    [...told('adapter without --enable-lora'), '--enable-lora'],
    [...told('adapter that is nowhere'), 'CAMPAIGN_HOME'],
    [...told('no such path'), 'VLLM_ALLOW_RUNTIME_LORA_UPDATING=True'],
    [400, 'lora_path /x: the base model has no linear module conv.1', 'no linear module'],
  ])('that is refused is not waited for: %d %s', async (status, message, said) => {
    server.load = loading(status, message);
    const refused = failing('AdapterRefused', said, { retryable: false });
    await expect(ask(client, mixOf(await adapter('x')))).rejects.toMatchObject(refused);
    expect(loads()).toBe(1);
  });

  test.each([
    [addLora('EngineCore encountered an issue.'), 503],
    ['EngineCore encountered an issue. See stack trace (above) for the root cause.', 200],
    [addLora('CUDA out of memory. Tried to allocate 20.00 MiB.'), 200],
  ])('is not to blame for a server that breaks down: %s', async (message, health) => {
    server.load = loading(500, message);
    server.health = health;
    const broken = failing('PolicyServerError', '', { retryable: true });
    await expect(ask(client, mixOf(await adapter('x')))).rejects.toMatchObject(broken);
  });

  test('of a store in a bucket is asked for by name first, and its path is given where the server fetches nothing', async () => {
    const [x, y, z] = (await adapters('x y z')).map((one) => mixOf(one)) as [FixedPolicy, FixedPolicy, FixedPolicy];
    const worker = connect({ store: { ...store, isBucket: true } });
    await modelFor(worker, x);
    expect(server.adapters.get(nameOf(x))).toBe(await store.folder(x.adapters[0]!.ref));
    server.fetches = true;
    await modelFor(worker, y);
    expect(server.adapters.get(nameOf(y))).toBe('fetched');
    server.complete = refuse(400, { message: `LoRA adapter '${nameOf(z)}' was found but could not be loaded.` });
    await expect(modelFor(worker, z)).rejects.toMatchObject(failing('AdapterRefused', '--max-lora-rank'));
  });

  test('is loaded again, once, after a restart of the server; so is a merged one', async () => {
    const [x, y] = await adapters('x y');
    const [one, merged] = [mixOf(x!), mixOf({ ...x!, weight: 0.5 }, { ...y!, weight: 0.5 })];
    await Promise.all([one, merged].map((policy) => ask(client, policy)));
    server.adapters.clear();
    server.requests.length = 0;
    await Promise.all(Array.from({ length: 16 }, (_, n) => ask(client, n % 2 ? one : merged)));
    const names = [nameOf(one), modelName((await adapter('merged-2')).ref)];
    expect([...server.adapters.keys()].sort()).toEqual(names.sort());
    expect(loads()).toBe(2);
  });
});

describe('a policy of several adapters', () => {
  let [x, y] = [] as unknown as [Part, Part];
  beforeAll(async () => ([x, y] = (await adapters('x y')) as [Part, Part]));

  test('is served as what weighs: one adapter as it is, none as the base model', async () => {
    expect(await modelFor(client, mixOf({ ...y, weight: 0 }, x))).toBe(nameOf(mixOf(x)));
    expect(await modelFor(client, mixOf({ ...y, weight: 0 }))).toBe('base');
    expect([...server.adapters.values()]).toEqual([await store.folder(x.ref)]);
    expect(merges).toEqual([]);
    await modelFor(client, mixOf({ ...x, weight: 0.5 }));
    expect(merges).toEqual([[{ ...x, weight: 0.5 }]]);
  });
});

describe('the base model', () => {
  const wrong = (said: string | RegExp) => failing('WrongBaseModel', said, { retryable: true });

  test('if it is another is refused by what is served, what is wanted and the fix, before anything is asked of it', async () => {
    server.root = OTHER;
    const refusal = wrong(
      `policy server ${server.url} serves ${OTHER}, and the campaign wants ${BASE}: start the server with that model, or the worker with the POLICY_SERVER_URL`,
    );
    const { signal } = new AbortController();
    await expect(ask()).rejects.toMatchObject(refusal);
    await expect(client.likeliest({ policy: base, messages: conversation, signal })).rejects.toMatchObject(refusal);
    expect([asked('chat/completions'), asked('completions')]).toEqual([0, 0]);
    // A campaign of the base that it does serve is served.
    expect((await ask(client, { ...base, base: OTHER })).message.content).toBe('hello');
  });

  test.each([
    ['an answer', () => completion({ content: 'of another model' })],
    ['the end of the context', refuse(400, { message: 'prompt', code: 'context_length_exceeded' })],
  ] as const)('that takes another’s place: %s that comes after it is not handed on', async (_what, answer) => {
    await ask();
    server.complete = async (body, response) => {
      // The server breaks down under somebody else's request and comes back as another one, behind the same address.
      server.complete = refuse(502, { message: 'bad gateway' });
      await expect(ask()).rejects.toMatchObject({ type: 'PolicyServerError' });
      server.root = OTHER;
      return answer(body, response);
    };
    await expect(ask()).rejects.toMatchObject(wrong(OTHER));
  });

  describe('where the server does not say which it is', () => {
    const ids = [3, 1, 4, 1, 5];
    beforeEach(async () => {
      server.root = '/models/somebody/else';
      await store.put({
        ...{ key: 'fingerprint/0123456789ab', producer: 'test', inputs: [], mediaType: 'application/json' },
        body: JSON.stringify({ ids, logprobs: [-2, -7.5, -0.25, -11] }),
      });
    });

    const untruncated = {
      ...{ temperature: 0, top_p: 1, top_k: -1, min_p: 0 },
      ...{ repetition_penalty: 1, presence_penalty: 0, frequency_penalty: 0 },
    };

    test('is compared by log-probs, again after a minute: those of another precision are accepted', async () => {
      const now = jest.spyOn(performance, 'now');
      try {
        server.score = () => [-2.05, -7.4, -0.26, -13];
        for (let n = 0; n < 5; n++) await ask();
        const scored = () => server.requests.filter(({ call }) => call === 'POST /v1/completions');
        expect(scored()).toMatchObject([{ body: { model: 'base', prompt: ids, ...untruncated } }]);
        const later = performance.now() + 60_000;
        now.mockImplementation(() => later);
        await Promise.all([ask(), ask()]);
        expect(scored()).toHaveLength(2);
        server.score = () => [-9, -1, -9, -1];
        now.mockImplementation(() => later + 60_001);
        await expect(ask()).rejects.toMatchObject({ type: 'WrongBaseModel' });
      } finally {
        now.mockRestore();
      }
    });

    const unknown = () => {
      throw new Error('Token id 5 is out of vocabulary');
    };
    test.each<[string, DialectServer['score'], RegExp]>([
      ['log-probs', () => [-2.5, -7.9, -0.25, -9], /\(log-probs of 4 tokens are off by 0\.50 nats in the median\)/],
      ['ids that it does not know', unknown, /\(.*Token id 5 is out of/],
    ])('is another one by its %s', async (_, score, said) => {
      server.score = score;
      await expect(ask()).rejects.toMatchObject(wrong(new RegExp(`serves another model as base ${said.source}`)));
    });

    test('is not believed without them', async () => {
      const worker = connect({ store: openFolderStore(join(root, 'empty')) });
      await expect(ask(worker)).rejects.toMatchObject(wrong(/does not say which model that is.*set CAMPAIGN_BASE_ID/));
      expect(asked('chat/completions')).toBe(0);
    });

    test('is what the operator says that it is, but not where the server says something else', async () => {
      expect((await ask(connect({ baseId: BASE }))).message.content).toBe('hello');
      const refusal = wrong(/serves base@ba9876543210 \(CAMPAIGN_BASE_ID\)/);
      await expect(ask(connect({ baseId: OTHER }))).rejects.toMatchObject(refusal);
      expect(asked('completions')).toBe(0);
      server.root = OTHER;
      await expect(ask(connect({ baseId: BASE }))).rejects.toMatchObject(wrong(OTHER));
    });
  });
});
