/** The real vLLM on CPU (`make test-vllm`): what a campaign asks of a policy server, adapters from a bucket by their content, and restarts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { openS3Store } from '../../src/store/s3-store';
import type { ArtifactStore } from '../../src/store/store';
import { failing } from '../support/failing';
import { closedAfterwards } from '../support/opened';
import { expectConformance } from '../support/policy-conformance';
import { freePort } from '../../src/cli/ports';
import { baseModelId, keepFingerprint, servedBase, writeAdapter } from '../../src/policy/base-model';
import type { PolicyClient } from '../../src/policy/client';
import { openPolicyServer } from '../../src/policy/server';
import {
  completionBody,
  derenderBody,
  likeliestBody,
  parseGenerated,
  parseRendered,
  scoreBody,
} from '../../src/policy/wire';
import { bodiesFile, type Recorded } from '../support/dialect-server';
import { makeHermesModel, policyClient, python, writeRandomAdapter } from '../support/embedded-server';
import { startServing } from '../support/gateway';
import { bucket, s3ServerForTests } from '../support/s3-server';

jest.setTimeout(15 * 60_000);
s3ServerForTests(() => undefined);

const repository = resolve(__dirname, '..', '..');
const root = mkdtempSync(join(tmpdir(), 'vllm-'));
const model = join(root, 'model');
const CONTEXT = 2048;
const RANK = 16;
const targetModules = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'];
const url = `s3://${bucket}/vllm`;

/** The model's own generation_config.json cuts off, as those of the hub do. */
function makeModel(): void {
  makeHermesModel(model);
  writeFileSync(join(model, 'generation_config.json'), JSON.stringify({ eos_token_id: 2, pad_token_id: 0, top_k: 3 }));
}

const CAMPAIGNS = [
  // One adapter at a time, and two in all: they are changed within every test.
  ...['--enable-lora', '--max-lora-rank', String(2 * RANK), '--max-loras', '1', '--max-cpu-loras', '2'],
  ...['--lora-target-modules', ...targetModules],
  ...['--enable-auto-tool-choice', '--tool-call-parser', 'hermes', '--enable-scale-out'],
];

class Vllm {
  private child: ChildProcess | undefined;
  private constructor(readonly url: string) {}

  /** `plain`: without what a campaign needs of its flags. */
  static async start({ plain = false } = {}): Promise<Vllm> {
    const server = new Vllm(`http://127.0.0.1:${await freePort()}`);
    await server.start(plain ? [] : CAMPAIGNS);
    return server;
  }

  async start(flags = CAMPAIGNS): Promise<void> {
    const options = [
      ...['--host', '127.0.0.1', '--port', new URL(this.url).port, '--dtype', 'float32', '--enforce-eager'],
      // Two run at once for a while, and beside them whatever else there is.
      ...['--max-model-len', String(CONTEXT), '--gpu-memory-utilization', '0.3', ...flags],
      // A prompt with a seed that is computed in pieces ends the build for CPU, and many come at once here.
      ...['--no-enable-chunked-prefill', '--max-num-batched-tokens', '8192'],
    ];
    const cpu = { OMP_NUM_THREADS: '1', OMP_WAIT_POLICY: 'PASSIVE', VLLM_CPU_OMP_THREADS_BIND: 'nobind' };
    const env = {
      ...process.env,
      ...{ ...cpu, VLLM_CPU_KVCACHE_SPACE: '1', HF_HUB_OFFLINE: '1', VLLM_NO_USAGE_STATS: '1' },
      ...{ VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True', CAMPAIGN_STORE: url, CAMPAIGN_HOME: join(root, 'served') },
    };
    const program = join(repository, '.venv-vllm', 'bin', 'vllm');
    const child = spawn(program, ['serve', model, ...options], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.child = child;
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-4000)));
    const isUp = () =>
      fetch(`${this.url}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await isUp())) {
      if (child.exitCode !== null) throw new Error(`vLLM did not start: ${said}`);
      await sleep(500);
    }
  }

  async stop(): Promise<void> {
    const child = this.child!;
    const ended = new Promise((done) => child.once('close', done));
    process.kill(-child.pid!, 'SIGKILL');
    await ended;
  }
}

let vllm: Vllm;
let store: ArtifactStore;
let client: PolicyClient;
let base: string;

beforeAll(async () => {
  makeModel();
  store = openS3Store({ url, cache: join(root, 'worker'), cacheBytes: 1e9 });
  const id = await baseModelId({ python, home: root, model });
  await keepFingerprint({ python, model, store, id });
  base = servedBase(id, { policyServer: { kind: 'vllm', contextTokens: CONTEXT } as never });
  vllm = await Vllm.start();
  client = policyClient({ url: vllm.url, store });
});
afterAll(async () => {
  client?.close();
  await vllm?.stop();
  rmSync(root, { recursive: true, force: true });
});

const ask = (policy: Parameters<PolicyClient['sample']>[0]['policy']) =>
  client.sample({
    policy,
    messages: [{ role: 'user', content: 'cancel the red lamp please' }],
    tools: [],
    sampling: { temperature: 0, topP: 1, maxTokens: 12 },
    seed: 1,
  });

test('it does what a campaign asks of a policy server, by requests that undo what the model sets', async () => {
  const server = closedAfterwards(openPolicyServer({ url: vllm.url, concurrency: 32 }));
  const asked = { server, client, store, python, base };
  const writeAdapter = (o: { seed: number; folder: string }) =>
    writeRandomAdapter({ python, model, targetModules, rank: RANK, ...o });
  await expectConformance({ ...asked, contextTokens: CONTEXT, writeAdapter });
});

test('an adapter comes from the bucket by its content: with no call to load it, after others took its place, and after a restart', async () => {
  const refs = [];
  for (const seed of [7, 8, 9]) {
    const folder = join(root, `adapter-${seed}`);
    await writeRandomAdapter({ python, model, targetModules, rank: RANK, folder, seed });
    refs.push(await store.putFolder({ key: folder, producer: 'test', inputs: [], folder }));
    // Only the bucket has it.
    rmSync(folder, { recursive: true });
  }
  const policies = refs.map((ref) => ({ base, adapters: [{ ref, weight: 1 }] }));
  const first = [];
  for (const policy of policies) first.push(await ask(policy));
  expect(new Set(first.map(({ logprobs }) => logprobs[0])).size).toBe(3);
  const again = await Promise.all(policies.map(ask));
  expect(again.map(({ tokenIds }) => tokenIds)).toEqual(first.map(({ tokenIds }) => tokenIds));
  await vllm.stop();
  await expect(ask(policies[0]!)).rejects.toMatchObject({ type: 'PolicyServerUnavailable' });
  await vllm.start();
  expect((await ask(policies[0]!)).tokenIds).toEqual(first[0]!.tokenIds);
});

test('one of too high a rank is refused with what to look at, and one whose bytes are others with that reason', async () => {
  const folder = join(root, 'wide');
  await writeAdapter({ python, model, targetModules, rank: 4 * RANK, folder });
  const wide = await store.putFolder({ key: 'wide', producer: 'test', inputs: [], folder });
  await expect(ask({ base, adapters: [{ ref: wide, weight: 1 }] })).rejects.toMatchObject(
    failing('AdapterRefused', '--max-lora-rank'),
  );
  const other = join(root, 'damaged');
  cpSync(folder, other, { recursive: true });
  rmSync(join(other, 'adapter_model.safetensors'));
  writeFileSync(join(other, 'adapter_model.safetensors'), 'no weights');
  const damaged = await store.putFolder({ key: 'damaged', producer: 'test', inputs: [], folder: other });
  await expect(ask({ base, adapters: [{ ref: damaged, weight: 1 }] })).rejects.toMatchObject({
    type: 'AdapterRefused',
  });
  expect(await client.reachable()).toBe(true);
});

test('a stream through the gateway holds the whole answer', async () => {
  const policies = new Map([['base', { base, adapters: [] }]]);
  const served = { name: 'demo', version: 'demo@1', base, policies };
  const gateway = closedAfterwards(await startServing({ store, served, url: vllm.url, concurrency: 8 }));
  const { completions } = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 }).chat;
  const messages = [{ role: 'user' as const, content: 'hello' }];
  const asked = { model: 'base', messages, temperature: 0, max_tokens: 24 };
  const whole = (await completions.create(asked)).choices[0]!;
  const said = await completions.stream({ ...asked, stream_options: { include_usage: true } }).finalChatCompletion();
  const { content } = whole.message;
  expect(said.choices[0]).toMatchObject({ finish_reason: whole.finish_reason, message: { content } });
  expect(said.usage!.completion_tokens).toBeGreaterThan(0);
  // Where it refuses, the status is its own.
  const long = { ...asked, messages: [{ role: 'user' as const, content: 'hello '.repeat(CONTEXT) }] };
  await expect(completions.stream(long).done()).rejects.toMatchObject({
    status: 400,
    code: 'context_length_exceeded',
  });
});

/** An answer without what differs from one to the next: numbers, sampled text, names, and how many there are of something. */
function form(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map((one) => form(one, key));
  if (value && typeof value === 'object') {
    const entries = Object.entries(value);
    if (entries.every(([name]) => /^\d+$/.test(name))) return entries.slice(0, 1).map(([, one]) => form(one));
    return Object.fromEntries(entries.map(([name, one]) => [name, form(one, name)]));
  }
  const isWord = ['message', 'detail', 'object', 'finish_reason', 'role', 'type', 'param'].includes(key);
  return value === null || isWord ? value : typeof value;
}

test('its answers are those that the server of `make test` has been given (RECORD=1 records them anew)', async () => {
  const call = async (path: string, body?: object, at = vllm) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(`${at.url}${path}`, body && init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, body: isJson ? (JSON.parse(text) as unknown) : text };
  };
  const CHAT = '/v1/chat/completions';
  const LOAD = '/v1/load_lora_adapter';
  const folders = [RANK, 4 * RANK].map((rank) => ({ rank, folder: join(root, `rank-${rank}`) }));
  for (const { rank, folder } of folders) await writeAdapter({ python, model, targetModules, rank, folder });
  const [fine, wide] = folders.map(({ folder }) => folder);
  const damaged = join(root, 'cut-off');
  cpSync(fine!, damaged, { recursive: true });
  writeFileSync(join(damaged, 'adapter_model.safetensors'), 'no weights');
  const load = (name: string, folder = fine, at = vllm) => call(LOAD, { lora_name: name, lora_path: folder }, at);

  const messages = [{ role: 'user' as const, content: 'hello' }];
  const sampling = { temperature: 0, topP: 1, maxTokens: 2 };
  const asked = { model, messages, tools: [], sampling, seed: 1 };
  const chat = (changes: object = {}) => call(CHAT, { ...completionBody(asked), ...changes });
  const words = (count: number) => [{ role: 'user', content: 'one '.repeat(count) }];
  const rendered = await call(`${CHAT}/render`, completionBody(asked));
  const { token_ids: ids } = parseRendered(rendered.body);
  const generated = await call('/inference/v1/generate', rendered.body as object);
  const sampled = parseGenerated(generated.body);
  const plain = await Vllm.start({ plain: true });
  const found: Recorded = {
    chat: await chat(),
    'the likeliest': await call(CHAT, { ...likeliestBody(model, messages), top_logprobs: 2 }),
    'scored ids': await call('/v1/completions', scoreBody({ model, ids: ids.slice(0, 3) })),
    rendered,
    generated,
    derendered: await call(`${CHAT}/derender`, derenderBody({ asked, promptIds: ids, sampled })),
    loaded: await load('fine'),
    'loaded already': await load('fine'),
    models: await call('/v1/models'),
    unloaded: await call('/v1/unload_lora_adapter', { lora_name: 'fine' }),
    'nothing to unload': await call('/v1/unload_lora_adapter', { lora_name: 'fine' }),
    'unknown model': await chat({ model: 'none-such' }),
    'wrong temperature': await chat({ temperature: -1 }),
    'prompt over the context': await chat({ messages: words(CONTEXT) }),
    'ids over the context': await call('/inference/v1/generate', {
      ...(rendered.body as object),
      token_ids: Array.from({ length: CONTEXT + 8 }, () => ids[0]!),
    }),
    'adapter of too high a rank': await load('wide', wide),
    'damaged adapter': await load('damaged', damaged),
    'adapter that is nowhere': await load('nowhere', join(root, 'nowhere')),
    'no such path': await call('/v1/none-such', {}),
    'adapter without --enable-lora': await load('fine', fine, plain),
    'rendered without --enable-scale-out': await call(`${CHAT}/render`, completionBody(asked), plain),
  };
  await plain.stop();
  const text = JSON.stringify(found, undefined, 2).replaceAll(root, '/home');
  if (process.env['RECORD']) writeFileSync(bodiesFile, `${text}\n`);
  expect(form(JSON.parse(text))).toEqual(form(JSON.parse(readFileSync(bodiesFile, 'utf8'))));
});
