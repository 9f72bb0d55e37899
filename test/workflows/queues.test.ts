/**
 * Whose workers take which step, and in which order, on a real server: workflows of two stores never meet, short steps do not wait behind long
 * ones, campaigns take turns.
 */
import { Worker } from '@temporalio/worker';
import { join } from 'node:path';
import { mapped } from '../../src/activities/errors';
import { openFolderStore } from '../../src/store/open-store';
import { campaignState, startCampaign } from '../../src/cli/control';
import { takeSnapshot, type Snapshot } from '../../src/cli/watch/snapshot';
import { longQueue, taskQueues } from '../../src/domain/work';
import { temporaryFolder } from '../support/temporary-folder';
import { type Latch, latch, until } from './campaigns';
import { connectionTo, queues, serverForTests, start, workflowBundle } from './environment';
import { artifact, config, fakeActivities, summary } from './fake-activities';

const root = temporaryFolder();
const env = serverForTests();
const temporal = () => ({ client: env().client, close: () => Promise.resolve() });

/** What the workers of a home do, which is written down in `done`. */
async function homeOf(name: string) {
  const home = join(root, name);
  const store = openFolderStore(join(home, 'artifacts'));
  const done: string[] = [];
  const { activities } = fakeActivities();
  const seen = Object.fromEntries(
    Object.entries(activities).map(([type, run]) => [
      type,
      async (input: never) => {
        done.push(type);
        return (run as (given: never) => Promise<unknown>)(input);
      },
    ]),
  );
  const worker = async (taskQueue: string, workflows: object = {}) =>
    Worker.create({
      ...{ ...connectionTo(env()), taskQueue, ...workflows },
      activities: mapped(seen, { home, store }),
    });
  const control = taskQueues.control(await store.id());
  return {
    done,
    home,
    store,
    control,
    worker,
    controlWorker: async () => worker(control, { workflowBundle: await workflowBundle() }),
  };
}

const seen = (name: string, holds: (snapshot: Snapshot) => boolean): Promise<Snapshot> =>
  until(async () => {
    const snapshot = await takeSnapshot(temporal(), name);
    return holds(snapshot) && snapshot;
  });

test('a step that comes to a worker with another store is not begun there, and the right worker then takes it', async () => {
  const [own, other] = [await homeOf('own'), await homeOf('other')];
  const campaign = config({ name: 'shared', arms: [] });
  await (
    await own.controlWorker()
  ).runUntil(async () => {
    const handle = await start(env(), { campaign, until: 'rollouts' }, own.control);
    const wrong = await other.worker(queues.rollouts);
    const { activities } = await wrong.runUntil(
      seen('shared', ({ activities: [step] }) => step?.lastFailure !== undefined),
    );
    expect(activities).toMatchObject([{ type: 'checkBase', queue: queues.rollouts, lastFailureType: 'WrongStore' }]);
    const ids = await Promise.all([own.store.id(), other.store.id()]);
    for (const words of [...ids, other.home]) expect(activities[0]!.lastFailure).toContain(words);
    const long = await own.worker(longQueue(queues.rollouts));
    await (await own.worker(queues.rollouts)).runUntil(long.runUntil(handle.result()));
  });
  expect(other.done).toEqual([]);
  expect(own.done).toEqual(expect.arrayContaining(['prepare', 'checkBase', 'rollOut', 'writeReport']));
});

test('campaigns of two homes never meet: neither their workflows nor, without a pool in common, their steps', async () => {
  const [one, two] = [await homeOf('one'), await homeOf('two')];
  const digests = { configDigest: 'digest', terms: 'terms' };
  const started = async ({ store }: typeof one, name: string) =>
    startCampaign(temporal(), { ...digests, campaign: config({ name }), store: await store.id() });
  await started(one, 'same-name');
  await expect(started(two, 'same-name')).rejects.toThrow(
    /^campaign same-name is running on this Temporal server from another home \(task queue campaign-control-[0-9a-f]{12}\); give this one its own name/,
  );
  await started(two, 'another-name');
  const waits = async () => {
    const { activities } = await seen('same-name', (snapshot) =>
      snapshot.activities.some(({ type }) => type !== 'prepare'),
    );
    return activities;
  };
  expect(await (await one.controlWorker()).runUntil(waits)).toMatchObject([
    { state: 'scheduled', queue: queues.rollouts },
  ]);
  expect(await campaignState(temporal(), 'same-name')).toMatchObject({ taskQueue: one.control, pool: 'pool' });
  expect(two.done).toEqual([]);
  expect((await takeSnapshot(temporal(), 'another-name')).activities).toEqual([]);
});

/** Workers with one slot each, which `activities` run on. However `body` ends, what they wait for is opened then. */
async function withOneSlot(o: { activities: object; latches: Latch[]; body: () => Promise<void> }): Promise<void> {
  const { activities, latches } = o;
  const body = () =>
    o.body().finally(() => {
      for (const { open } of latches) open();
    });
  const { control, rollouts } = queues;
  const of = { ...connectionTo(env()), activities, maxConcurrentActivityTaskExecutions: 1 };
  const workers = await Promise.all([
    Worker.create({ ...of, taskQueue: control, workflowBundle: await workflowBundle() }),
    ...[longQueue(control), rollouts, longQueue(rollouts)].map((taskQueue) => Worker.create({ ...of, taskQueue })),
  ]);
  await workers.reduce<() => Promise<void>>((inner, worker) => () => worker.runUntil(inner()), body)();
}

test('while long steps of one campaign hold every slot for them, short ones of another begin at once', async () => {
  const [rollouts, discovery] = [latch(), latch()];
  const begun: string[] = [];
  const { activities } = fakeActivities({
    rollOut: async (input) => {
      if (input.campaign === 'slow') await rollouts.opened;
      return summary(input);
    },
    checkBase: async ({ rollouts: { campaign } }) => {
      begun.push(campaign);
      return { rollouts: artifact('base check'), problems: [], warnings: [] };
    },
    discover: async () => {
      await discovery.opened;
      return { ref: artifact('candidates'), selects: 'by labels' };
    },
  });
  const body = async () => {
    await start(env(), { campaign: config({ name: 'slow' }) });
    const isAt = (type: string) => (snapshot: Snapshot) =>
      snapshot.activities.some((one) => one.type === type && one.state === 'started');
    await seen('slow', isAt('rollOut'));
    const quick = await start(env(), { campaign: config({ name: 'quick' }), until: 'rollouts' });
    // The base rollouts of the other one hold the slot of long steps.
    await seen('quick', ({ activities: [step] }) => step?.queue === longQueue(queues.rollouts));
    // Those of the tests before may come between.
    expect(begun).toEqual(expect.arrayContaining(['slow', 'quick']));
    rollouts.open();
    await seen('slow', isAt('discover'));
    await quick.result();
    await seen('slow', isAt('discover'));
    await env().client.workflow.getHandle('slow').terminate();
  };
  await withOneSlot({ activities, latches: [rollouts, discovery], body });
});
