/** Two embedded servers that share no folder with the worker or each other, but a bucket: adapters come by their hashes, and a server may be killed. */
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { openS3Store } from '../../src/artifacts/s3-store';
import type { ArtifactStore } from '../../src/artifacts/store';
import type { FixedPolicy, ScoredRollout } from '../../src/domain/rollout';
import { createShop } from '../../examples/shop/target/shop';
import type { PolicyClient } from '../../src/policy/client';
import { atEnd } from '../support/opened';
import { played } from '../support/played';
import { type EmbeddedServer, makeTinyModel, policyClient, startEmbeddedServer } from '../support/embedded-server';
import { bucket, type S3Server, s3ServerForTests } from '../support/s3-server';
import { temporaryFolder } from '../support/temporary-folder';

let s3: S3Server;
s3ServerForTests((server) => (s3 = server));

const root = temporaryFolder();
const inRoot = (name: string): string => join(root, name);
const model = inRoot('model');
const url = `s3://${bucket}/policies`;
let store: ArtifactStore;
let servers: EmbeddedServer[];
let client: PolicyClient;
let policies: { base: FixedPolicy; adapted: FixedPolicy };

const start = (name: string, o: { model?: string; args?: string[] } = {}): Promise<EmbeddedServer> =>
  startEmbeddedServer({
    model,
    ...o,
    env: { ...s3.env, CAMPAIGN_STORE: url, CAMPAIGN_HOME: join(root, name) },
  });
const connect = (...to: EmbeddedServer[]): PolicyClient =>
  policyClient({ url: to.map((one) => one.url).join(', '), concurrency: 16, store });
const fetchedBy = (name: string): string[] => {
  const folder = join(root, name, 'cache', 'served');
  return existsSync(folder) ? readdirSync(folder) : [];
};
const roll = (policy: FixedPolicy, seed: number, more: { onProgress?: () => void } = {}) =>
  played({
    environment: createShop(),
    policy,
    tasks: Array.from({ length: 8 }, (_, n) => `train-${n}`),
    attempts: 4,
    sampling: { temperature: 1, topP: 1, maxTokens: 10 },
    seed,
    maxAttempts: 3,
    store,
    client,
    ...more,
  });

beforeAll(async () => {
  makeTinyModel({ folder: model, adapters: ['adapter', 'wrong'].map(inRoot) });
  store = openS3Store({ url, cache: join(root, 'worker', 'cache'), cacheBytes: 1e9 });
  servers = await Promise.all(['one', 'two'].map((name) => start(name)));
  client = connect(...servers);
  const ref = await store.putFolder({ key: 'adapter', producer: 'test', inputs: [], folder: inRoot('adapter') });
  const base = { base: servers[0]!.base, adapters: [] };
  policies = { base, adapted: { ...base, adapters: [{ ref, weight: 1 }] } };
}, 240_000);
afterAll(async () => {
  client?.close();
  await Promise.all((servers ?? []).map((server) => server.stop()));
}, 60_000);

const answeredBy = async ({ url: at }: EmbeddedServer): Promise<number> => {
  const text = await (await fetch(`${at}/metrics`)).text();
  return [...text.matchAll(/^policy_server_requests_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
};

test('both play base and adapter, each with a copy of its own', async () => {
  for (const policy of Object.values(policies)) {
    const { summary } = await roll(policy, 1);
    expect(summary).toMatchObject({ scored: 32, broken: 0 });
  }
  const counts = await Promise.all(servers.map(answeredBy));
  expect(Math.min(...counts)).toBeGreaterThan(Math.max(...counts) / 2);
  const { sha256 } = policies.adapted.adapters[0]!.ref;
  for (const name of ['one', 'two']) expect(fetchedBy(name)).toEqual([sha256]);
  expect(existsSync(join(root, 'worker', 'cache', 'folders'))).toBe(false);
}, 240_000);

test('one is killed in the middle of a batch: no rollout breaks, none is played twice, and it is taken back', async () => {
  const [one, two] = servers as [EmbeddedServer, EmbeddedServer];
  const before = await answeredBy(two);
  let killed: Promise<void> | undefined;
  const { summary, records } = await roll(policies.adapted, 2, { onProgress: () => void (killed ??= one.kill()) });
  await killed;
  expect(summary).toMatchObject({ scored: 32, broken: 0 });
  expect(new Set((records as ScoredRollout[]).map(({ key }) => key)).size).toBe(32);
  expect(await answeredBy(two)).toBeGreaterThan(before);
  servers[0] = await start('one', { args: ['--port', new URL(one.url).port] });
  for (let seed = 3; (await answeredBy(servers[0])) <= 10; seed++)
    expect((await roll(policies.adapted, seed)).summary).toMatchObject({ scored: 32, broken: 0 });
}, 240_000);

test('an adapter whose bytes are others in the bucket is refused', async () => {
  const ref = await store.putFolder({ key: 'wrong', producer: 'test', inputs: [], folder: inRoot('wrong') });
  const { files } = JSON.parse((await store.read(ref)).toString()) as { files: { path: string; sha256: string }[] };
  const { sha256 } = files.find(({ path }) => path.endsWith('.safetensors'))!;
  const Key = `policies/objects/${sha256.slice(0, 2)}/${sha256}`;
  await s3.client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: 'other bytes' }));
  const wrong = { ...policies.base, adapters: [{ ref, weight: 1 }] };
  await expect(roll(wrong, 1)).rejects.toMatchObject({
    type: 'AdapterRefused',
    message: expect.stringContaining('does not hold the bytes of its name') as string,
  });
  for (const name of ['one', 'two']) expect(fetchedBy(name)).not.toContain(ref.sha256);
}, 120_000);

test('a server of another base among them is refused before it has played anything', async () => {
  const other = await start('other', { model: resolve(__dirname, '../../models/base') });
  atEnd(other.stop);
  const mixed = connect(servers[1]!, other);
  atEnd(mixed.close);
  await expect(mixed.ensurePolicy(policies.adapted)).rejects.toMatchObject({ type: 'WrongBaseModel' });
  expect(await answeredBy(other)).toBe(0);
}, 120_000);
