/** Pause and resume on the dev server: what becomes of a step that is told to stop is the real server's decision. */
import { ApplicationFailure, CancelledFailure, Context, sleep } from '@temporalio/activity';
import { CancelledFailure as Cancelled } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { resolve } from 'node:path';
import type { CampaignProgress, ChildProgress } from '../../src/workflows/messages';
import { bundled, devServer, quiet, start, withWorkers } from './environment';
import { artifact, config, fakeActivities } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;

const candidate = { name: 'tell_what_is_asked', definition: 'x', examples: [] };
const one = () => ({ ref: artifact('s'), selected: [{ candidate, votes: 10 }] });

/** Outside of activities. */
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

beforeAll(async () => {
  env = await devServer();
});
afterAll(() => env?.teardown());

test.each([
  ['says that it is cancelled', (error: unknown) => error],
  ['dies meanwhile', () => ApplicationFailure.create({ type: 'TrainerDied', message: 'killed' })],
])('pause holds the next step and takes back a running training; one that %s goes on with resume', async (_, ended) => {
  let trainings = 0;
  const { activities, seen } = fakeActivities();
  const train = activities.train;
  let release: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => (release = resolve));
  activities.train = async (input) => {
    if (++trainings > 1) return train(input);
    release();
    for (;;) {
      Context.current().heartbeat({ kind: 'train', step: 1, steps: 4 });
      await sleep(50).catch((error: unknown) => {
        throw error instanceof CancelledFailure ? ended(error) : new Error('not cancelled');
      });
    }
  };
  activities.select = async () => one();
  const campaign = config({ name: `paused-${n++}`, arms: [] });
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    const child = env.client.workflow.getHandle(`${campaign.name}/capability/tell_what_is_asked`);
    await begun;
    await handle.signal('pause');
    for (;;) {
      const progress = await child.query<ChildProgress>('progress');
      if (progress.paused) break;
      await wait(50);
    }
    expect(await handle.query<CampaignProgress>('progress')).toMatchObject({ paused: true });
    expect(seen.record).toBeUndefined();
    await handle.signal('resume');
    await handle.result();
  });
  expect(trainings).toBe(2);
  expect(seen.record?.capabilities?.[0]?.status).toBe('trained');
});

test('a pause in the moment in which a child is started reaches it', async () => {
  const { activities, seen } = fakeActivities({ select: async () => one() });
  const campaign = config({ name: `paused-${n++}`, arms: [] });
  const bundle = bundled([resolve(__dirname, '../fixtures/slow-start/interceptors.ts')]);
  const body = async () => {
    const handle = await start(env, { campaign });
    const childless = async () => (await handle.query<CampaignProgress>('progress')).children.length === 0;
    while (await childless()) await wait(50);
    await handle.signal('pause');
    const child = env.client.workflow.getHandle(`${campaign.name}/capability/tell_what_is_asked`);
    const isPaused = () => child.query<ChildProgress>('progress').then(({ paused }) => paused);
    const runs = async () => (await child.describe()).status.name === 'RUNNING';
    while (!(await runs().catch(() => false))) await wait(50);
    while ((await runs()) && !(await isPaused())) await wait(50);
    expect(await isPaused()).toBe(true);
    await handle.signal('resume');
    await handle.result();
  };
  await withWorkers(env, activities, body, bundle);
  expect(seen.record?.capabilities?.[0]?.status).toBe('trained');
});

describe('a step that waits to be tried again', () => {
  /** A campaign whose synthesis fails until it is told to succeed. */
  const failing = (onFirst: () => Promise<unknown>) => {
    let calls = 0;
    let mended = false;
    const { activities, seen } = fakeActivities({ select: async () => one() });
    const { synthesize } = activities;
    activities.synthesize = async (input) => {
      if (++calls === 1) await onFirst();
      if (mended) return synthesize(input);
      throw ApplicationFailure.nonRetryable('odd', 'Unexpected');
    };
    return { activities, seen, calls: () => calls, mend: () => (mended = true) };
  };

  test('begins no attempt while the campaign is paused', async () => {
    const campaign = config({ name: `paused-${n++}`, arms: [] });
    const handle = env.client.workflow.getHandle(`${campaign.name}/capability/tell_what_is_asked`);
    const step = failing(() => handle.signal('pause'));
    await withWorkers(env, step.activities, async () => {
      const running = await start(env, { campaign });
      const troubled = async () => (await handle.query<ChildProgress>('progress')).troubles?.length === 1;
      while (step.calls() === 0 || !(await troubled())) await wait(50);
      await wait(3000);
      expect(step.calls()).toBe(1);
      expect(await handle.query<ChildProgress>('progress')).toMatchObject({
        paused: true,
        troubles: [{ type: 'Unexpected', reason: 'odd', attempt: { number: 2, of: 14 } }],
      });
      step.mend();
      await handle.signal('resume');
      await running.result();
    });
    expect(step.calls()).toBe(2);
    expect(step.seen.record?.capabilities?.[0]?.status).toBe('trained');
  });

  test('ends with the campaign that is cancelled', async () => {
    const campaign = config({ name: `cancelled-${n++}`, arms: [] });
    const step = failing(async () => undefined);
    await withWorkers(env, step.activities, async () => {
      const running = await start(env, { campaign });
      while (step.calls() < 3) await wait(50);
      await running.cancel();
      await expect(running.result()).rejects.toMatchObject({ cause: expect.any(Cancelled) as Cancelled });
    });
    expect(step.seen.record).toBeUndefined();
  });
});

test('a step whose worker is silent is another step at once, and no attempt of it', async () => {
  const attempts: number[] = [];
  const { activities, seen } = fakeActivities({ select: async () => one() });
  const { train } = activities;
  activities.train = async (input) => {
    attempts.push(Context.current().info.attempt);
    return attempts.length === 1 ? Context.current().cancelled : train(input);
  };
  const workers = { heartbeatSeconds: 20 };
  await withWorkers(env, activities, async () =>
    (await start(env, { campaign: config({ name: `silent-${n++}`, arms: [], workers }) })).result(),
  );
  expect(attempts).toEqual([1, 1]);
  expect(seen.record?.capabilities?.[0]?.status).toBe('trained');
});
