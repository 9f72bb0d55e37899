/** New workflow code under a campaign that runs, on the server that campaigns run on. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { takeSnapshot } from '../../src/cli/watch/snapshot';
import { longQueue, taskQueues } from '../../src/domain/work';
import { pinnedTo } from '../../src/workers/bundle';
import { campaignCommand } from '../support/campaign-command';
import { bothOf, bundled, devServer, queues, quiet, start, workflowBundle } from './environment';
import { type Activities, config, fakeActivities } from './fake-activities';

jest.setTimeout(300_000);
quiet();
let env: TestWorkflowEnvironment;
const home = mkdtempSync(join(tmpdir(), 'versions-'));
beforeAll(async () => {
  env = await devServer();
  own = readFileSync((await workflowBundle()).codePath, 'utf8');
  changed = (await bundled([resolve(__dirname, '..', 'fixtures', 'changed-code', 'interceptors.ts')])).code;
});
afterAll(async () => {
  await env?.teardown();
  rmSync(home, { recursive: true, force: true });
});

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
  const at = { connection: env.nativeConnection, taskQueue, activities, workflowBundle: { code } };
  const worker = await Worker.create({ ...at, ...(pinned && { workerDeploymentOptions }) });
  return { worker, buildId: workerDeploymentOptions.version.buildId };
}

const others = (activities: Activities): Promise<Worker[]> =>
  Promise.all(
    [longQueue(cluster), longQueue(queues.control), ...bothOf(queues.rollouts), queues.gpu].map((taskQueue) =>
      Worker.create({ connection: env.nativeConnection, taskQueue, activities, maxHeartbeatThrottleInterval: '1s' }),
    ),
  );

/** Trainings wait until they are let go, but those of one campaign. */
function heldTrainings() {
  const { activities, seen } = fakeActivities();
  const { train } = activities;
  let letGo = (): void => undefined;
  let begun = 0;
  const held = new Promise<void>((open) => (letGo = open));
  activities.train = async (input) => {
    const result = await train(input);
    if (input.campaign === 'moves') return result;
    begun++;
    await held;
    return result;
  };
  const bothBegun = () => until(async () => begun === 2);
  return { activities, seen, bothBegun, letGo: () => letGo() };
}

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds().catch(() => false))) await new Promise((next) => setTimeout(next, 200));
};
const snapshotOf = (name: string) => takeSnapshot({ client: env.client, close: () => Promise.resolve() }, name);
const campaign = (name: string) => config({ name, arms: [] });
const children = (name: string) =>
  ['refuse_what_is_forbidden', 'tell_what_is_asked'].map((child) => `${name}/capability/${child}`);

test('on a cluster, a campaign and its children stay with the version that they began with, and a new one begins with the new', async () => {
  const { activities, seen, bothBegun, letGo } = heldTrainings();
  const [old, next] = await Promise.all([control(own, activities, true), control(changed, activities, true)]);
  expect(old.buildId).not.toBe(next.buildId);
  const current = (buildId: string) =>
    until(async () => {
      await env.client.workflowService.setWorkerDeploymentCurrentVersion({
        ...{ namespace: 'default', deploymentName: cluster, buildId, identity: 'operator' },
        ignoreMissingTaskQueues: false,
      });
      return true;
    });
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
  expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['trained', 'trained']);
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
  const address = String((env.connection.options as { address?: string }).address);
  const restart = (name: string) => campaignCommand(home, '--temporal-address', address, 'restart', name);
  const isFailing = async () => (await snapshotOf('stuck')).failing?.length === 2;
  await expect(restart('nobody')).rejects.toThrow(/there is no campaign nobody here/);
  await besides(await others(activities), async () => {
    await start(env, { campaign: campaign('stuck') });
    await besides([(await control(own, activities)).worker], bothBegun);
    const all = ['stuck', ...children('stuck')];
    const before = await Promise.all(all.map((id) => env.client.workflow.getHandle(id).describe()));
    await besides([(await control(changed, activities)).worker], async () => {
      letGo();
      await until(isFailing);
      expect((await restart('stuck')).text).toMatch(/^campaign stuck: starts again/);
      await env.client.workflow.getHandle('stuck').result();
    });
    const statuses = before.map(async ({ workflowId, runId }) => {
      const { status } = await env.client.workflow.getHandle(workflowId, runId).describe();
      return status.name;
    });
    expect(await Promise.all(statuses)).toEqual(Array(3).fill('TERMINATED'));
  });
  expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['trained', 'trained']);
});
