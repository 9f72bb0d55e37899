/** The real vLLM on CPU (`make test-vllm`): what a campaign asks of a policy server, adapters from a bucket by their content, and restarts. */
import Anthropic from '@anthropic-ai/sdk';
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { openS3Store } from '../../src/artifacts/s3-store';
import type { ArtifactStore } from '../../src/artifacts/store';
import { runChecks } from '../../src/checks/check';
import { conformanceChecks } from '../../src/cli/checks/conformance';
import { freePort } from '../../src/cli/ports';
import { baseModelId, keepFingerprint, servedBase, writeAdapter } from '../../src/policy/base-model';
import { createPolicyClient, type PolicyClient } from '../../src/policy/client';
import { createMerger } from '../../src/policy/merge';
import { openPolicyServer } from '../../src/policy/server';
import { makeHermesModel, python } from '../support/embedded-server';
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

class Vllm {
  private child: ChildProcess | undefined;
  private constructor(readonly url: string) {}

  static async start(): Promise<Vllm> {
    const server = new Vllm(`http://127.0.0.1:${await freePort()}`);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const options = [
      ...['--host', '127.0.0.1', '--port', new URL(this.url).port, '--dtype', 'float32', '--enforce-eager'],
      // One adapter at a time, and two in all: they are changed within every test.
      ...['--enable-lora', '--max-lora-rank', String(2 * RANK), '--max-loras', '1', '--max-cpu-loras', '2'],
      ...['--lora-target-modules', ...targetModules, '--max-model-len', String(CONTEXT)],
      ...['--enable-auto-tool-choice', '--tool-call-parser', 'hermes', '--enable-scale-out'],
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
  client = createPolicyClient({ url: vllm.url, concurrency: 8, store, merge: createMerger({ store, python }) });
});
afterAll(async () => {
  client?.close();
  await vllm?.stop();
  rmSync(root, { recursive: true, force: true });
}, 60_000);

const ask = (policy: Parameters<PolicyClient['sample']>[0]['policy']) =>
  client.sample({
    policy,
    messages: [{ role: 'user', content: 'cancel the red lamp please' }],
    tools: [],
    sampling: { temperature: 0, topP: 1, maxTokens: 12 },
    seed: 1,
  });

test('it does what a campaign asks of a policy server, by requests that undo what the model sets', async () => {
  const server = openPolicyServer({ url: vllm.url, concurrency: 32 });
  try {
    const asked = { url: vllm.url, server, client, store, python, base, model, targetModules };
    const checks = await runChecks(
      conformanceChecks({ ...asked, contextTokens: CONTEXT, rank: RANK, tolerance: 1e-4 }),
    );
    console.log(checks.map(({ name, detail }) => `${name}: ${detail}`).join('\n'));
    expect(checks.filter(({ ok, warning }) => !ok || warning)).toEqual([]);
  } finally {
    server.close();
  }
});

test('an adapter comes from the bucket by its content: with no call to load it, after others took its place, and after a restart', async () => {
  const refs = [];
  for (const seed of [7, 8, 9]) {
    const folder = join(root, `adapter-${seed}`);
    await writeAdapter({ python, model, targetModules, rank: RANK, folder, noise: { deviation: 0.05, seed } });
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
  await expect(ask({ base, adapters: [{ ref: wide, weight: 1 }] })).rejects.toMatchObject({
    type: 'AdapterRefused',
    message: expect.stringContaining('--max-lora-rank is below its rank') as string,
  });
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

test('a stream is passed on through the gateway as it comes, in OpenAI’s form and in Anthropic’s', async () => {
  const policies = new Map([['base', { base, adapters: [] }]]);
  const served = { name: 'demo', version: 'demo@1', base, policies };
  const gateway = await startServing({ store, served, url: vllm.url, limits: { seconds: 300 }, concurrency: 8 });
  try {
    const about = { apiKey: 'none', maxRetries: 0 };
    const { completions } = new OpenAI({ baseURL: `${gateway.url}/v1`, ...about }).chat;
    const messages = [{ role: 'user' as const, content: 'hello' }];
    const asked = { model: 'base', messages, temperature: 0, max_tokens: 24 };
    const whole = (await completions.create(asked)).choices[0]!;
    const said = await completions.stream({ ...asked, stream_options: { include_usage: true } }).finalChatCompletion();
    const { content } = whole.message;
    expect(said.choices[0]).toMatchObject({ finish_reason: whole.finish_reason, message: { content } });
    expect(said.usage!.completion_tokens).toBeGreaterThan(0);
    const anthropic = new Anthropic({ baseURL: gateway.url, ...about });
    const told = await anthropic.messages.stream(asked).finalMessage();
    expect(told.content).toMatchObject([{ text: content }]);
    expect(told.usage.output_tokens).toBe(said.usage!.completion_tokens);
    const drawn = completions.stream({ ...asked, temperature: 1, seed: 3, max_tokens: 200 });
    let pieces = 0;
    drawn.on('content', () => void pieces++);
    await drawn.done();
    expect(pieces).toBeGreaterThan(3);
    // Where it refuses, the status is its own.
    const long = { ...asked, messages: [{ role: 'user' as const, content: 'hello '.repeat(CONTEXT) }] };
    await expect(completions.stream(long).done()).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
  } finally {
    await gateway.close();
  }
});
