/** The policy client against the real embedded server, on a random tiny model: the TypeScript-Python contract of the dialect. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openFolderStore } from '../../src/artifacts/folder-store';
import type { ArtifactStore } from '../../src/artifacts/store';
import type { FixedPolicy, ScoredRollout } from '../../src/domain/rollout';
import { createShop } from '../../src/environments/shop/shop';
import { createPolicyClient, type PolicyClient } from '../../src/policy/client';
import type { TurnRequest } from '../../src/policy/wire';
import { createMerger, type Part } from '../../src/policy/merge';
import { openPolicyServer } from '../../src/policy/server';
import { checkSampling } from '../../src/policy/server-proof';
import { played } from '../support/played';
import { makeTinyModel, python, startEmbeddedServer, type EmbeddedServer } from '../support/embedded-server';

const repository = resolve(__dirname, '..', '..');
const root = mkdtempSync(join(tmpdir(), 'dialect-'));
const model = join(root, 'model');
let server: EmbeddedServer;
let client: PolicyClient;
let store: ArtifactStore;
let adapters: Part[];

beforeAll(async () => {
  const folders = ['x', 'y'].map((name) => join(root, name));
  makeTinyModel({ folder: model, adapters: folders });
  server = await startEmbeddedServer({ model });
  base = { base: server.base, adapters: [] };
  store = openFolderStore(join(root, 'store'));
  client = createPolicyClient({ url: server.url, concurrency: 8, store, merge: createMerger({ store, python }) });
  const refs = await Promise.all(
    folders.map((folder) => store.putFolder({ key: folder, producer: 'test', inputs: [], folder })),
  );
  adapters = refs.map((ref) => ({ ref, weight: 1 }));
}, 120_000);
afterAll(async () => {
  client.close();
  await server.stop();
  rmSync(root, { recursive: true, force: true });
}, 30_000);

let base: FixedPolicy;
const request = (changes: Partial<TurnRequest> = {}): TurnRequest => ({
  policy: base,
  messages: [
    { role: 'system', content: 'you are a help desk .' },
    { role: 'user', content: 'cancel the red lamp i42 please' },
  ],
  tools: [
    { name: 'get_account', description: '', parameters: { type: 'object', properties: { user: { type: 'string' } } } },
  ],
  sampling: { temperature: 1, topP: 1, maxTokens: 12 },
  seed: 5,
  ...changes,
});
const greedy = { temperature: 0, topP: 1, maxTokens: 12 };

test('a turn holds aligned ids and log-probs, and the same seed samples the same', async () => {
  const [one, again, other] = [
    await client.sample(request()),
    await client.sample(request()),
    await client.sample(request({ seed: 6 })),
  ];
  expect(one.tokenIds.length).toBeGreaterThan(0);
  expect(one.logprobs).toHaveLength(one.tokenIds.length);
  expect(Math.max(...one.logprobs)).toBeLessThanOrEqual(0);
  expect(again.tokenIds).toEqual(one.tokenIds);
  expect(again.promptIds).toEqual(one.promptIds);
  expect(other.tokenIds).not.toEqual(one.tokenIds);
});

test('adapters are loaded from the store, merges are made, and each answers in its own way', async () => {
  const [x, y] = adapters as [Part, Part];
  const halfOf = (part: Part): Part => ({ ...part, weight: 0.5 });
  const policies = [[], [x], [y], [halfOf(x), halfOf(y)]].map((parts): FixedPolicy => ({ ...base, adapters: parts }));
  const turns = await Promise.all(policies.map((policy) => client.sample(request({ policy, sampling: greedy }))));
  expect(new Set(turns.map(({ logprobs }) => logprobs[0])).size).toBe(4);
  // Two halves of an adapter are the adapter.
  const whole = { ...base, adapters: [halfOf(x), halfOf(x)] };
  const { tokenIds, logprobs } = await client.sample(request({ policy: whole, sampling: greedy }));
  expect(tokenIds).toEqual(turns[1]!.tokenIds);
  logprobs.forEach((logprob, n) => expect(logprob).toBeCloseTo(turns[1]!.logprobs[n]!, 4));
}, 120_000);

test('a prompt beyond the context is told by its type, an impossible field by its name', async () => {
  const long = 'lamp '.repeat(400);
  await expect(client.sample(request({ messages: [{ role: 'user', content: long }] }))).rejects.toMatchObject({
    type: 'ContextLengthExceeded',
  });
  await expect(client.sample(request({ sampling: { ...greedy, temperature: -1 } }))).rejects.toMatchObject({
    type: 'PolicyRequestRejected',
    message: expect.stringContaining('temperature'),
  });
});

test('a restart of the server in the middle is seen, and afterwards everything goes on', async () => {
  const policy = { ...base, adapters: adapters.slice(0, 1) };
  const before = await client.sample(request({ policy, sampling: greedy }));
  await server.stop();
  await expect(client.sample(request({ policy }))).rejects.toMatchObject({
    type: 'PolicyServerUnavailable',
    retryable: true,
  });
  expect(await client.reachable()).toBe(false);
  server = await startEmbeddedServer({ model, args: ['--port', new URL(server.url).port] });
  const after = await client.sample(request({ policy, sampling: greedy }));
  expect(after.tokenIds).toEqual(before.tokenIds);
}, 120_000);

test('a restart with another base model is noticed, and so is the right one after it', async () => {
  const port = ['--port', new URL(server.url).port];
  const before = await client.sample(request({ sampling: greedy }));
  await server.stop();
  server = await startEmbeddedServer({ model: join(repository, 'models', 'base'), args: port });
  // Its first request may find that the connection has ended; after that, nothing is sampled for it.
  await client.sample(request()).catch(() => undefined);
  const refused = expect.stringContaining(`serves ${server.base}, and the campaign wants ${base.base}`) as string;
  await expect(client.sample(request())).rejects.toMatchObject({ type: 'WrongBaseModel', message: refused });
  expect(await (await fetch(`${server.url}/metrics`)).text()).not.toMatch(/^policy_server_requests_total\{/m);
  await server.stop();
  server = await startEmbeddedServer({ model, args: port });
  await client.sample(request()).catch(() => undefined);
  expect((await client.sample(request({ sampling: greedy }))).tokenIds).toEqual(before.tokenIds);
}, 120_000);

test('the engine rolls out the shop with it: every sampled id is in a row', async () => {
  const { summary, records } = await played({
    environment: createShop(),
    policy: { ...base, adapters: adapters.slice(0, 1) },
    tasks: ['train-0', 'train-1', 'train-2', 'train-3'],
    attempts: 4,
    sampling: { temperature: 1, topP: 1, maxTokens: 10 },
    seed: 1,
    concurrency: 8,
    purpose: 'test',
    title: 'contract',
    maxAttempts: 1,
    store,
    client,
  });
  expect(summary).toMatchObject({ scored: 16, broken: 0 });
  let sampled = 0;
  for (const { rows } of records as ScoredRollout[]) {
    for (const { turns } of rows) for (const { start, end } of turns) sampled += end - start;
  }
  expect(sampled).toBe(summary.completionTokens);
}, 60_000);

test('rollouts of the shop that are hinted hold the ids of the same conversation without the hint', async () => {
  const shop = createShop();
  const hinting = {
    ...shop,
    reset: async (task: { id: string; seed: number }) => {
      const episode = await shop.reset(task);
      return {
        ...episode,
        start: { ...episode.start, hint: 'look up the account first .', maxSteps: 3 },
        step: async () => ({ messages: [{ role: 'user' as const, content: 'cancel the red lamp' }], done: false }),
      };
    },
  };
  const { records } = await played({
    environment: hinting,
    policy: base,
    tasks: ['train-0', 'train-1'],
    attempts: 4,
    hints: { share: 0.5 },
    sampling: { temperature: 1, topP: 1, maxTokens: 10 },
    seed: 1,
    concurrency: 8,
    purpose: 'test',
    title: 'hints',
    maxAttempts: 1,
    store,
    client,
  });
  const rollouts = records as ScoredRollout[];
  expect(rollouts.map(({ hinted = false }) => hinted)).toEqual([0, 1].flatMap(() => [true, true, false, false]));
  expect(rollouts.map(({ steps }) => steps)).toEqual(rollouts.map(() => 3));
  const { tools } = await shop.describe();
  for (const { messages, rows } of rollouts) {
    // What the server begins an answer to the recorded messages with.
    const before = messages.flatMap(({ role }, n) => (role === 'assistant' ? [messages.slice(0, n)] : []));
    const prompts = await Promise.all(
      before.map(async (said) => (await client.sample(request({ messages: said, tools }))).promptIds),
    );
    const turns = rows.flatMap(({ promptIds, completionIds, turns }) =>
      turns.map(({ start }) => [...promptIds, ...completionIds.slice(0, start)]),
    );
    expect(turns).toEqual(prompts);
  }
}, 60_000);

test('it is seen to sample from all of its distribution, and not to where something cuts it off', async () => {
  const direct = openPolicyServer({ url: server.url, concurrency: 32 });
  const { base: name } = await direct.models();
  try {
    await checkSampling({ url: server.url, server: direct, model: name });
    const cutOff = { complete: (body: object) => direct.complete({ ...body, top_p: 0.8 } as never) };
    await expect(checkSampling({ url: server.url, server: cutOff, model: name })).rejects.toMatchObject({
      type: 'PolicyServerWrong',
    });
  } finally {
    direct.close();
  }
}, 120_000);
