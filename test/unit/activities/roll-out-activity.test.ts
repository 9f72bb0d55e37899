/** The rollout activity: a merge that its rollouts wait for is progress, and nobody else's silence. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRolloutActivities } from '../../../src/activities';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { type FailureType, OutsideFailure } from '../../../src/domain/failures';
import type { RolloutSummary } from '../../../src/domain/rollout';
import type { TurnRequest } from '../../../src/policy/wire';
import { registry } from '../../../src/registry';
import type { RollOutProgress } from '../../../src/rollout/engine';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { poolOf } from '../../support/environment-pool';

const home = mkdtempSync(join(tmpdir(), 'roll-out-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** One attempt of the activity at two rollouts of a task. */
async function rolledOut(o: { seed: number; attempt?: number; beforeTurn?: (request: TurnRequest) => void }) {
  const { seed, attempt = 1, beforeTurn } = o;
  const store = openFolderStore(join(home, 'artifacts'));
  const plan = await store.put({
    key: 'plan',
    producer: 'test',
    inputs: [],
    mediaType: 'application/json',
    body: JSON.stringify({ train: ['n-1'], validation: [], router: [], test: [] }),
  });
  const { rollOut } = createRolloutActivities({
    store,
    home,
    python: '',
    kinds: registry,
    client: countingPolicy(beforeTurn),
    environments: poolOf(async () => countingEnvironment()),
  });
  const activity = new MockActivityEnvironment({ attempt });
  const beats: RollOutProgress[] = [];
  activity.on('heartbeat', (beat: RollOutProgress) => beats.push(beat));
  const summary = (await activity.run(rollOut, {
    ...{
      purpose: 'test' as const,
      title: 'arm',
      seed,
      maxSteps: 8,
      concurrency: 1,
      maxAttempts: 1,
      maxBrokenShare: 0.1,
      attempts: 2,
      campaign: 'one',
      budget: {},
    },
    environment: { kind: 'builtin', name: 'shop' },
    policy: { base: 'base@1', adapters: [] },
    tasks: { kind: 'plan' as const, plan, part: 'train' as const },
    sampling: { temperature: 1, topP: 1, maxTokens: 8 },
  })) as RolloutSummary;
  return { summary, beats };
}

test('rollouts that broke in a short outage are made again, and stand as broken in the end, whatever attempt of the step it is', async () => {
  const seeds = new Set<number>();
  let type: FailureType = 'PolicyServerBusy';
  let asked = 0;
  // The first rollout is scored, the other one is not.
  const busy = ({ seed }: TurnRequest): void => {
    seeds.add(seed);
    if (seeds.size <= 3) return;
    asked += 1;
    throw new OutsideFailure(type, 'come back later');
  };
  const ended = async (seed: number) => {
    const { summary } = await rolledOut({ seed, attempt: 9, beforeTurn: busy });
    return { ...summary, asked };
  };
  expect(await ended(2)).toMatchObject({ scored: 1, broken: 1, asked: 5 });
  // What would come again is not waited for.
  [type, asked] = ['PolicyAnswerInvalid', 0];
  seeds.clear();
  expect(await ended(3)).toMatchObject({ scored: 1, broken: 1, asked: 1 });
  // The server is back.
  expect((await rolledOut({ seed: 2 })).summary).toMatchObject({ scored: 2, broken: 0 });
}, 60_000);
