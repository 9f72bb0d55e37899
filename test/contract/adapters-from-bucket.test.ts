/** An embedded server that shares no folder with the worker, only a bucket: it fetches adapters by their hashes. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { openS3Store } from '../../src/store/s3-store';
import type { ArtifactStore } from '../../src/store/store';
import { createShop } from '../../examples/shop/target/shop';
import type { PolicyClient } from '../../src/policy/client';
import { played } from '../support/played';
import { type EmbeddedServer, makeTinyModel, policyClient, startEmbeddedServer } from '../support/embedded-server';
import { bucket, type S3Server, sharedS3ForTests } from '../support/s3-server';
import { temporaryFolder } from '../support/temporary-folder';

let s3: Pick<S3Server, 'env' | 'client'>;
sharedS3ForTests((server) => (s3 = server));

const root = temporaryFolder();
const inRoot = (name: string): string => join(root, name);
const url = `s3://${bucket}/policies`;
let store: ArtifactStore;
let server: EmbeddedServer;
let client: PolicyClient;

beforeAll(async () => {
  const model = inRoot('model');
  makeTinyModel({ folder: model, adapters: ['adapter', 'wrong'].map(inRoot) });
  store = openS3Store({ url, cache: inRoot('worker'), cacheBytes: 1e9 });
  const env = { ...s3.env, CAMPAIGN_STORE: url, CAMPAIGN_HOME: inRoot('server') };
  server = await startEmbeddedServer({ model, env });
  client = policyClient({ url: server.url, store });
});
afterAll(async () => {
  client?.close();
  await server?.stop();
});

const stored = (name: string) => store.putFolder({ key: name, producer: 'test', inputs: [], folder: inRoot(name) });
const fetched = () => readdirSync(join(inRoot('server'), 'cache', 'served'));
const roll = (ref: Awaited<ReturnType<typeof stored>>) =>
  played({
    environment: createShop(),
    policy: { base: server.base, adapters: [{ ref, weight: 1 }] },
    tasks: ['train-0', 'train-1'],
    attempts: 2,
    sampling: { temperature: 1, topP: 1, maxTokens: 10 },
    store,
    client,
  });

test('an adapter is fetched into a cache of the server, and into none of the worker', async () => {
  const ref = await stored('adapter');
  expect((await roll(ref)).summary).toMatchObject({ scored: 4, broken: 0 });
  expect(fetched()).toEqual([ref.sha256]);
  expect(existsSync(join(inRoot('worker'), 'folders'))).toBe(false);
});

test('an adapter whose bytes are others in the bucket is refused', async () => {
  const ref = await stored('wrong');
  const { files } = JSON.parse((await store.read(ref)).toString()) as { files: { path: string; sha256: string }[] };
  const { sha256 } = files.find(({ path }) => path.endsWith('.safetensors'))!;
  const Key = `policies/objects/${sha256.slice(0, 2)}/${sha256}`;
  await s3.client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: 'other bytes' }));
  await expect(roll(ref)).rejects.toMatchObject({ type: 'AdapterRefused' });
  expect(fetched()).not.toContain(ref.sha256);
});
