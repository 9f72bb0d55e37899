/**
 * A training whose store is a bucket, where every request takes its time, against the same on a folder:
 *
 *   node -r ./test/support/register.cjs bench/store.ts
 *
 * Rollouts and updates take ten seconds each, so that what is left is the store's. `requests` is how many of its requests a step waits for, one
 * after the other. Prints one JSON object.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { createGpuActivities } from '../src/activities';
import type { TrainInput } from '../src/activities/types';
import { openFolderStore } from '../src/store/open-store';
import { openS3Store } from '../src/store/s3-store';
import type { ArtifactStore } from '../src/store/store';
import { campaignSchema } from '../src/domain/campaign';
import { registry, shopParts } from '../test/support/kinds';
import { dealGpus } from '../src/training/learner-process';
import { putPlan } from '../test/support/activity-inputs';
import { countingEnvironment, countingPolicy } from '../test/support/counting-environment';
import { poolOf } from '../test/support/environment-pool';
import { startWire } from '../test/support/hosts';
import { bucket, startS3Server } from '../test/support/s3-server';

const REQUEST_MS = 200;
const WORK_MS = 10_000;
const STEPS = 5;
const folder = mkdtempSync(join(tmpdir(), 'bench-'));
const python = join(folder, 'python');
const learner = resolve(__dirname, '../test/fixtures/learners/timed-steps.mjs');
const isBase = `[ "$3" = base-id ] && { echo '{"id":"base@1"}' > "$7"; exit 0; }`;
writeFileSync(python, `#!/bin/sh\n${isBase}\nexec "${process.execPath}" "${learner}" "$5"\n`);
chmodSync(python, 0o755);
process.env['UPDATE_MS'] = String(WORK_MS);

/** Seconds that a step takes, from the end of the first to that of the last. */
async function trained(name: string, store: ArtifactStore): Promise<number> {
  const home = join(folder, name);
  mkdirSync(home);
  const { training } = campaignSchema.parse({
    name,
    ...shopParts,
    baseModel: { path: 'models/base' },
    training: { steps: STEPS, checkpointEvery: 1000, groupsPerStep: 1, groupSize: 8 },
  });
  const input: TrainInput = {
    ...{ name, store: await store.id(), campaign: 'bench', budget: {} },
    maker: { kind: 'bench', version: '1', options: {} },
    environment: { kind: 'shop' },
    tasks: { kind: 'plan', plan: await putPlan(store, ['n-2']), part: 'train' },
    ...{ base: 'base@1', training, seed: 1, maxTokens: 16, maxSteps: 8 },
    ...{ concurrency: 8, maxAttempts: 1, stallSeconds: 60, trainer: { kind: 'local' } },
  };
  const { train } = createGpuActivities({
    ...{ store, home, python, kinds: registry, model: 'models/base' },
    // A rollout is four turns.
    client: countingPolicy(() => sleep(WORK_MS / 4)),
    environments: poolOf(() => Promise.resolve(countingEnvironment())),
    gpus: dealGpus({ slots: 1, perTrainer: 0, visible: undefined }),
  });
  const ends: number[] = [];
  const activity = new MockActivityEnvironment();
  activity.on('heartbeat', (details?: { step?: number }) => {
    if ((details?.step ?? 0) > ends.length) ends.push(performance.now());
  });
  await activity.run(train, input);
  return (ends.at(-1)! - ends[0]!) / 1000 / (STEPS - 1);
}

async function main(): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const s3 = await startS3Server();
  const wire = await startWire(Number(/\d+$/.exec(s3.env['AWS_ENDPOINT_URL_S3']!)?.[0]));
  Object.assign(process.env, s3.env, { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${wire.port}` });
  const inBucket = (name: string) =>
    openS3Store({ url: `s3://${bucket}/${name}`, cache: join(folder, `cache-${name}`), cacheBytes: 1e9 });
  try {
    const onFolder = await trained('folder', openFolderStore(join(folder, 'artifacts')));
    const near = await trained('near', inBucket('near'));
    wire.delay(REQUEST_MS / 2);
    const far = await trained('far', inBucket('far'));
    const requests = ((far - near) * 1000) / REQUEST_MS;
    console.log(JSON.stringify({ folder: onFolder, near, far, ratio: far / onFolder, requests }, null, 1));
  } finally {
    wire.close();
    await s3.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
void main();
