/**
 * Versions of workflow code. A campaign and its children stay on the bundle that they began with, which the store keeps. New campaigns begin on the
 * current version: the one whose control worker started last. A version is the sha256 of its bundle, and Temporal records it as the build id: a worker
 * runs no bundle of the store that has changed.
 */
import { Client, type ConnectionLike } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { WorkerDeploymentOptions } from '@temporalio/worker';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sha256 } from '../store/hash';
import type { RecordFiles } from '../store/store';

/** The bundle that `npm run build` makes. */
export const builtBundle = join(__dirname, '..', 'workflow-bundle.js');

const FOLDER = 'bundles/';
const bundlePath = (id: string): string => `${FOLDER}${id}.js`;

/** Returns the version of the built bundle. */
export const builtVersion = async (): Promise<string> => sha256(await readFile(builtBundle, 'utf8'));

/** Shortens a version for display. */
export const shortVersion = (id: string): string => id.slice(0, 12);

/** Returns a version's bundle; undefined if the store does not have it, or it is damaged. */
export async function readBundle(files: RecordFiles, id: string): Promise<string | undefined> {
  const code = await files.read(bundlePath(id));
  return code !== undefined && sha256(code) === id ? code : undefined;
}

async function keepBundle(files: RecordFiles, code: string): Promise<void> {
  const id = sha256(code);
  if ((await readBundle(files, id)) !== undefined) return;
  await files.remove(bundlePath(id));
  await files.create(bundlePath(id), code);
}

const DAY_MS = 24 * 3600 * 1000;

/** Removes the bundles that no open campaign needs. A younger one may be that of a worker which is starting. */
async function removeUnused(files: RecordFiles, used: string[]): Promise<void> {
  const needed = used.map(bundlePath);
  for (const { path, changedMs } of await files.list(FOLDER))
    if (!needed.includes(path) && Date.now() - changedMs > DAY_MS) await files.remove(path);
}

interface ControlQueue {
  connection: ConnectionLike;
  namespace: string;
  /** The files of the campaigns' store. */
  files: RecordFiles;
  /** Also the name of the deployment. */
  taskQueue: string;
}

/** Options of its worker. */
export interface Version {
  workflowBundle: { code: string };
  workerDeploymentOptions: WorkerDeploymentOptions;
}

/** Returns the built version, then those of open campaigns; and `missing`, the versions of open campaigns whose bundle the store does not have. */
export async function versionsToServe(queue: ControlQueue): Promise<{ versions: Version[]; missing: string[] }> {
  const { files, taskQueue: deploymentName } = queue;
  const built = await readFile(builtBundle, 'utf8');
  await keepBundle(files, built);
  const bundles = new Map([[sha256(built), built]]);
  const missing: string[] = [];
  for (const id of await versionsOfOpenCampaigns(queue)) {
    const code = bundles.get(id) ?? (await readBundle(files, id));
    if (code === undefined) missing.push(id);
    else bundles.set(id, code);
  }
  await removeUnused(files, [...bundles.keys()]);
  const versions = [...bundles].map(([buildId, code]): Version => {
    const version = { deploymentName, buildId };
    const pinned = { useWorkerVersioning: true, version, defaultVersioningBehavior: 'PINNED' } as const;
    return { workflowBundle: { code }, workerDeploymentOptions: pinned };
  });
  return { versions, missing };
}

const versionAttribute = defineSearchAttributeKey('TemporalWorkerDeploymentVersion', 'KEYWORD');

async function versionsOfOpenCampaigns({ connection, namespace, taskQueue }: ControlQueue): Promise<string[]> {
  const { workflow } = new Client({ connection, namespace });
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`;
  const ids = new Set<string>();
  // "DEPLOYMENT:ID"; a campaign that no worker has taken up yet has no version.
  for await (const { typedSearchAttributes } of workflow.list({ query }))
    ids.add(typedSearchAttributes.get(versionAttribute)?.split(':').at(-1) ?? '');
  return [...ids].filter(Boolean);
}

const ANSWER_MS = 60_000;
const RETRY_MS = 200;

/** Makes new campaigns begin on a version. The server knows the version once its worker has asked for a task, so this is tried until then. */
export async function makeCurrent(
  { connection, namespace }: Pick<ControlQueue, 'connection' | 'namespace'>,
  { workerDeploymentOptions: { version } }: Version,
): Promise<void> {
  const { workflowService } = new Client({ connection, namespace });
  const request = { namespace, identity: `control worker ${process.pid}`, ignoreMissingTaskQueues: true, ...version };
  for (const end = performance.now() + ANSWER_MS; ;)
    try {
      return void (await workflowService.setWorkerDeploymentCurrentVersion(request));
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(RETRY_MS);
    }
}
