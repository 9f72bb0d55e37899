/** Snapshots of campaigns whose workers are there, busy or away, and commands on campaigns that have ended, on a dev server. */
import { Worker } from '@temporalio/worker';
import { follow, campaignsOf } from '../../src/cli/campaign-status';
import { UserError } from '../../src/cli/errors';
import type { Temporal } from '../../src/cli/temporal';
import { takeSnapshot, type Snapshot, writeStatus } from '../../src/cli/watch/snapshot';
import { type AnnouncedServer, announcedServer } from '../support/announced-server';
import { campaignCommand } from '../support/campaign-command';
import { temporaryFolder } from '../support/temporary-folder';
import { latch, until } from './campaigns';
import {
  bothOf,
  bundled,
  connectionTo,
  queues,
  serverForTests,
  start,
  withWorkers,
  workflowBundle,
} from './environment';
import { type Activities, config, failure, fakeActivities } from './fake-activities';

const env = serverForTests();
let temporal: Temporal;
const ofServer = () => campaignsOf(temporal, { home: '/none', temporalAddress: env().address });
beforeAll(() => {
  temporal = { client: env().client, close: async () => undefined };
});
afterEach(async () => {
  for (const { name, status } of await ofServer())
    // It may have ended since.
    if (status === 'running')
      await env()
        .client.workflow.getHandle(name)
        .terminate()
        .catch(() => undefined);
});

/** Runs `body` beside workers on these queues only. */
async function beside<T>(
  kinds: (keyof typeof queues)[],
  replaced: Partial<Activities>,
  body: () => Promise<T>,
): Promise<T> {
  const { activities } = fakeActivities(replaced);
  const workers = await Promise.all(
    kinds
      .flatMap((kind) => bothOf(queues[kind]))
      .map(async (taskQueue) =>
        Worker.create({
          ...connectionTo(env()),
          taskQueue,
          activities,
          ...(taskQueue === queues.control ? { workflowBundle: await workflowBundle() } : {}),
        }),
      ),
  );
  return workers.reduce<() => Promise<T>>((inner, worker) => () => worker.runUntil(inner()), body)();
}

/** The first snapshot that `holds`. */
const seen = (name: string, holds: (snapshot: Snapshot) => boolean): Promise<Snapshot> =>
  until(async () => {
    const snapshot = await takeSnapshot(temporal, name);
    return holds(snapshot) && snapshot;
  });
const listed = async (name: string) => (await ofServer()).find((one) => one.name === name);
test('a campaign that no worker answers for is shown by what the server knows', async () => {
  await start(env(), { campaign: config({ name: 'alone' }) });
  const snapshot = await takeSnapshot(temporal, 'alone');
  expect(snapshot).toMatchObject({ status: 'RUNNING', children: [], activities: [] });
  expect(snapshot.progress).toBeUndefined();
  await expect(takeSnapshot(temporal, 'nobody')).rejects.toThrow(UserError);
});

test('what waits for a worker is told from what one has', async () => {
  const held = latch();
  const rollOut = () => held.opened.then(() => Promise.reject(new Error('released')));
  await beside(['control'], {}, async () => {
    await start(env(), { campaign: config({ name: 'waits' }) });
    const waits = await seen('waits', ({ activities }) => activities.length > 0);
    const queue = 'campaign-rollouts-pool';
    expect(waits.activities).toEqual([{ type: 'checkBase', queue, state: 'scheduled', attempt: 1 }]);
    await beside(['rollouts'], { rollOut }, async () => {
      const rollsOut = ({ activities: [one] }: Snapshot) => one?.type === 'rollOut' && one.state === 'started';
      const runs = await seen('waits', rollsOut);
      expect(runs.activities).toMatchObject([{ attempt: 1 }]);
      await env().client.workflow.getHandle('waits').terminate();
      held.open();
    });
  });
});

test('a campaign or a child that waits for approval is told by the server alone', async () => {
  const campaign = config({ name: 'asking', arms: [], approval: { capabilities: true } });
  const other = config({ name: 'child-asks', arms: [], approval: { environments: true } });
  await beside(['control', 'rollouts'], {}, async () => {
    for (const one of [campaign, other]) await start(env(), { campaign: one });
    for (const { name } of [campaign, other]) await seen(name, (snapshot) => snapshot.attention === 'approval');
  });
  for (const { name } of [campaign, other]) {
    expect(await takeSnapshot(temporal, name)).toMatchObject({ attention: 'approval' });
    expect(await until(() => listed(name))).toMatchObject({ status: 'running', attention: 'approval' });
  }
});

test('code that fails is told from a worker that is away, and ends a run', async () => {
  const bundle = await bundled([], 'test/fixtures/failing-code/workflows.ts');
  const at = { ...connectionTo(env()), taskQueue: queues.control };
  const worker = await Worker.create({ ...at, workflowBundle: bundle });
  const output = { show: () => undefined, note: () => undefined };
  await worker.runUntil(async () => {
    const workflowId = 'changed';
    await env().client.workflow.start('campaignRun', {
      workflowId,
      taskQueue: queues.control,
      workflowTaskTimeout: '1s',
    });
    const signal = new AbortController().signal;
    const following = { temporal, name: workflowId, output, signal, pollMs: 200, workerMs: 0, failingMs: 1000 };
    await expect(follow(following)).rejects.toThrow(workflowId);
    expect(await takeSnapshot(temporal, workflowId)).toMatchObject({ failing: [{ workflowId }] });
  });
});

// Whatever way it ended, they say where it stands, without an error.
describe('`status` with the server of a home', () => {
  let server: AnnouncedServer;
  beforeAll(async () => {
    server = await announcedServer(home);
    server.isAt(env().address);
  });
  afterAll(() => server?.release());
  const home = temporaryFolder();
  const command = (...argv: string[]) => campaignCommand(home, ...argv);
  const jsonLines = (text: string) => text.split('\n').map((line) => JSON.parse(line) as Record<string, string>);

  /** Runs a campaign to its end, and looks at it while its workers are there. */
  async function ended(name: string, replaced: Parameters<typeof fakeActivities>[0] = {}): Promise<Snapshot> {
    const { activities } = fakeActivities(replaced);
    return withWorkers(env(), activities, async () => {
      const handle = await start(env(), { campaign: config({ name, arms: [] }), until: 'rollouts' });
      await handle.result().catch(() => undefined);
      return takeSnapshot(temporal, name);
    });
  }

  test('one that failed: status --watch shows the last frame and why, with exit code 0', async () => {
    const prepare = () => Promise.reject(failure('BadInput', 'the target has no train tasks'));
    await ended('failed', { prepare });
    const watched = await command('status', 'failed', '--watch', '--json');
    expect(watched.code).toBe(0);
    expect(jsonLines(watched.text)[0]).toMatchObject({ status: 'failed', detail: 'the target has no train tasks' });
    expect((await command('status', 'failed')).text).toContain('the target has no train tasks');
  });

  test('one that completed, its workers being gone: the tree of its own run is in status.json', async () => {
    const snapshot = await ended('done');
    expect(snapshot.progress?.stages[0]).toMatchObject({ status: 'completed' });
    const progress = async () =>
      (JSON.parse((await command('status', 'done', '--json')).text) as Partial<Snapshot>).progress;
    expect(await progress()).toBeUndefined();
    await writeStatus({ home, snapshot });
    expect(await progress()).toEqual(snapshot.progress);
    await writeStatus({ home, snapshot: { ...snapshot, runId: 'an earlier run' } });
    expect(await progress()).toBeUndefined();
  });
});
