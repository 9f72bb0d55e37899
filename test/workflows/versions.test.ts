/** New workflow code under a campaign that runs, on the server that campaigns run on. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { takeSnapshot } from '../../src/cli/watch/snapshot';
import { longQueue, taskQueues } from '../../src/domain/work';
import { pinnedTo } from '../../src/workers/bundle';
import { campaignCommand } from '../support/campaign-command';
import { temporaryFolder } from '../support/temporary-folder';
import { latch, until } from './campaigns';
import { bothOf, bundled, connectionTo, devServer, queues, quiet, start, workflowBundle } from './environment';
import { type Activities, config, fakeActivities } from './fake-activities';

jest.setTimeout(300_000);
quiet();
let env: TestWorkflowEnvironment;
const home = temporaryFolder();
beforeAll(async () => {
  env = await devServer();
  own = readFileSync((await workflowBundle()).codePath, 'utf8');
  changed = (await bundled([resolve(__dirname, '..', 'fixtures', 'changed-code', 'interceptors.ts')])).code;
});
afterAll(() => env?.teardown());

/** Workflow code: the project's own, and another that can't replay what that has done. */
let [own, changed] = ['', ''];
/** Of workers with versions. */
const cluster = taskQueues.control('cluster');

async function besides<T>(workers: readonly Worker[], body: () => Promise<T>): Promise<T> {
  return workers.reduce<() => Promise<T>>((inner, worker) => () => worker.runUntil(inner), body)();
}

/** A control worker with this code; `pinned`: as on a cluster with CAMPAIGN_VERSIONING. */
async function control(code: string, activities: Activities, pinned = false) {
  const taskQueue = pinned ? cluster : queues.control;
  const workerDeploymentOptions = pinnedTo(code, taskQueue);
  const at = { ...connectionTo(env), taskQueue, activities, workflowBundle: { code } };
  const worker = await Worker.create({ ...at, ...(pinned && { workerDeploymentOptions }) });
  return { worker, buildId: workerDeploymentOptions.version.buildId };
}

const others = (activities: Activities): Promise<Worker[]> =>
  Promise.all(
    [longQueue(cluster), longQueue(queues.control), ...bothOf(queues.rollouts), queues.gpu].map((taskQueue) =>
      Worker.create({ ...connectionTo(env), taskQueue, activities, maxHeartbeatThrottleInterval: '1s' }),
    ),
  );

/** Trainings wait until they are let go, but those of one campaign. */
function heldTrainings() {
  const { activities, seen } = fakeActivities();
  const { train } = activities;
  const held = latch();
  let begun = 0;
  activities.train = async (input) => {
    const result = await train(input);
    if (input.campaign === 'moves') return result;
    begun++;
    await held.opened;
    return result;
  };
  return { activities, seen, bothBegun: () => until(async () => begun === 2), letGo: held.open };
}

const snapshotOf = (name: string) => takeSnapshot({ client: env.client, close: () => Promise.resolve() }, name);
const campaign = (name: string) => config({ name, arms: [] });
const children = (name: string) =>
  ['refuse_what_is_forbidden', 'tell_what_is_asked'].map((child) => `${name}/capability/${child}`);

test('on a cluster, a campaign and its children stay with the version that they began with, and a new one begins with the new', async () => {
  const { activities, seen, bothBegun, letGo } = heldTrainings();
  const [old, next] = await Promise.all([control(own, activities, true), control(changed, activities, true)]);
  expect(old.buildId).not.toBe(next.buildId);
  const current = (buildId: string) =>
    until(() =>
      env.client.workflowService
        .setWorkerDeploymentCurrentVersion({
          ...{ namespace: connectionTo(env).namespace, deploymentName: cluster, buildId, identity: 'operator' },
          ignoreMissingTaskQueues: false,
        })
        .catch(() => undefined),
    );
  const versionOf = async (workflowId: string) =>
    (await env.client.workflow.getHandle(workflowId).describe()).raw.workflowExecutionInfo?.versioningInfo
      ?.deploymentVersion?.buildId;
  await besides([old.worker, next.worker, ...(await others(activities))], async () => {
    await current(old.buildId);
    const stays = await start(env, { campaign: campaign('stays') }, cluster);
    await bothBegun();
    await current(next.buildId);
    await (await start(env, { campaign: campaign('moves') }, cluster)).result();
    letGo();
    await stays.result();
  });
  expect(await Promise.all(['stays', ...children('stays')].map(versionOf))).toEqual(Array(3).fill(old.buildId));
  expect(await Promise.all(['moves', ...children('moves')].map(versionOf))).toEqual(Array(3).fill(next.buildId));
  expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['completed', 'completed']);
});

test('on one machine, a campaign goes on under another build', async () => {
  const { activities, bothBegun, letGo } = heldTrainings();
  const rebuilt = `/* another build */ ${own}`;
  await besides(await others(activities), async () => {
    const handle = await start(env, { campaign: campaign('upgraded') });
    await besides([(await control(own, activities)).worker], bothBegun);
    letGo();
    await besides([(await control(rebuilt, activities)).worker], () => handle.result());
  });
});

test('a campaign whose code can not go on is ended with its children, and started again under that code', async () => {
  const { activities, seen, bothBegun, letGo } = heldTrainings();
  const restart = (name: string) => campaignCommand(home, '--temporal-address', env.address, 'restart', name);
  const isFailing = async () => (await snapshotOf('stuck')).failing?.length === 2;
  await expect(restart('nobody')).rejects.toThrow(/there is no campaign nobody here/);
  await besides(await others(activities), async () => {
    await start(env, { campaign: campaign('stuck') });
    await besides([(await control(own, activities)).worker], bothBegun);
    const all = ['stuck', ...children('stuck')];
    const before = await Promise.all(all.map((id) => env.client.workflow.getHandle(id).describe()));
    await besides([(await control(changed, activities)).worker], async () => {
      letGo();
      await until(() => isFailing().catch(() => false));
      expect((await restart('stuck')).text).toMatch(/^campaign stuck: starts again/);
      await env.client.workflow.getHandle('stuck').result();
    });
    const statuses = before.map(async ({ workflowId, runId }) => {
      const { status } = await env.client.workflow.getHandle(workflowId, runId).describe();
      return status.name;
    });
    expect(await Promise.all(statuses)).toEqual(Array(3).fill('TERMINATED'));
  });
  expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['completed', 'completed']);
});
