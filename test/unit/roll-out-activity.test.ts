/** The rollout activity: a merge that its rollouts wait for is progress, and nobody else's silence. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRolloutActivities } from '../../src/activities';
import type { EnvironmentPool } from '../../src/activities/environments';
import { openFolderStore } from '../../src/artifacts/folder-store';
import { registry } from '../../src/registry';
import type { RollOutProgress } from '../../src/rollout/engine';
import { countingEnvironment, countingPolicy } from '../support/counting-environment';

const home = mkdtempSync(join(tmpdir(), 'roll-out-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('what makes the policy ready to serve is a heartbeat, with what is done by then', async () => {
  const store = openFolderStore(join(home, 'artifacts'));
  const plan = await store.put({
    key: 'plan',
    producer: 'test',
    inputs: [],
    mediaType: 'application/json',
    body: JSON.stringify({ discovery: ['n-1'], heldOut: [], router: [], evaluation: [] }),
  });
  const { rollOut } = createRolloutActivities({
    store,
    home,
    python: '',
    kinds: registry,
    client: countingPolicy(({ onWork }) => onWork?.()),
    environments: { get: async () => countingEnvironment() } as unknown as EnvironmentPool,
  });
  const activity = new MockActivityEnvironment();
  const beats: RollOutProgress[] = [];
  activity.on('heartbeat', (beat: RollOutProgress) => beats.push(beat));
  await activity.run(rollOut, {
    ...{ purpose: 'test' as const, title: 'arm', seed: 1, maxSteps: 8, concurrency: 1, maxAttempts: 1, attempts: 2 },
    environment: { kind: 'builtin', name: 'shop' },
    policy: { base: 'base@1', adapters: [] },
    tasks: { kind: 'plan' as const, plan, part: 'discovery' as const },
    sampling: { temperature: 1, topP: 1, maxTokens: 8 },
  });
  const told = beats.map(({ done, total, turns }) => [done, total, turns]);
  expect(told[0]).toEqual([0, 2, 0]);
  expect(told.filter((one) => String(one) === String(told[1]))).toHaveLength(2); // a turn's own, and the next one's
});
