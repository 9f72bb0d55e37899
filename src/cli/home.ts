/**
 * `campaign list`, `delete` and `gc`. Deleting a campaign removes its history, its index in the store and its folder, and then collects garbage. Artifacts
 * that another campaign uses or that are younger than a day stay. An interrupted deletion is completed by the same command.
 */
import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeCampaign } from '../store/campaign-index';
import { walk } from '../store/backend';
import { openStore } from '../store/open-store';
import type { Garbage } from '../store/store';
import { plainLine } from '../domain/plain-text';
import { taskQueues } from '../domain/work';
import { timeText } from '../report/format';
import { alignColumns, print } from '../terminal';
import { searchAttributes } from '../workflows/messages';
import { isAnalysis } from './analyse/folder';
import { campaignsOf } from './campaign-status';
import { campaignNames, requireHome, UnknownCampaign } from './campaigns';
import { UserError } from './errors';
import { type CommonOptions, homeOf, requireYes } from './options';
import { type Home, temporalPath } from './project';
import { supervised, type SupervisedOptions, type SupervisedRun } from './services/supervisor';
import { startTemporal } from './services/temporal-server';
import { grpcCode, withServer } from './temporal';

const DAY_MS = 24 * 3600 * 1000;

/** `campaign list`: the campaigns of a home with state and last change; of a cluster, those that it knows. */
export async function listHome(options: CommonOptions): Promise<void> {
  const home = homeOf(options);
  if (!options.temporalAddress) requireHome(home);
  const { campaigns, isServed } = await withServer(options, async (temporal) => ({
    campaigns: await campaignsOf(temporal, options),
    isServed: temporal !== undefined,
  }));
  if (options.json) return print(JSON.stringify({ home: home.root, server: isServed, campaigns }));
  if (campaigns.length === 0) return print(`no campaigns in ${home.root}; start one with \`campaign run FILE\``);
  const lines = campaigns.map(({ name, status, changedAt, attention }) => [
    plainLine(name),
    attention === undefined ? status : `${status}, waits for ${attention}`,
    changedAt === undefined ? '-' : timeText(changedAt),
  ]);
  print(alignColumns([['campaign', 'state', 'last change'], ...lines]).join('\n'));
}

/** @returns the exit code. */
export async function deleteCampaign(name: string, options: SupervisedOptions): Promise<number> {
  const home = homeOf(options);
  requireHome(home);
  const known = await campaignNames(home);
  if (!known.includes(name) && !isAnalysis(home, name)) throw new UnknownCampaign(name, { home: home.root, known });
  const what = `delete campaign ${name} of ${home.root}: its history, its reports and the results that it alone uses`;
  await requireYes(what, { yes: options.yes, otherwise: 'nothing was deleted' });
  return supervised({ options, work: (run) => remove(run, name) });
}

async function remove(run: SupervisedRun, name: string): Promise<number> {
  const { home, output } = run;
  const store = await openStore(home.root);
  await deleteHistory(run, name, await store.id());
  for (const folder of [name, join('trainings', name)])
    await rm(join(home.root, folder), { recursive: true, force: true });
  await removeCampaign(store.files, name);
  const { bytes } = await garbageIn(home, { dryRun: false });
  const later = 'what is younger than a day goes with a later `campaign gc`';
  output.note('campaign', `campaign ${name} is deleted, ${sizeText(bytes)} freed; ${later}`);
  return 0;
}

/** gRPC code of a workflow that is already deleted: the list of workflows may lag. */
const NOT_FOUND = 5;

/**
 * Asks the server to delete the campaign and its children. The server records the request durably and deletes later. Workflows that a home's own server
 * holds as running have no workers while this process holds the lock, so they are terminated. @throws UserError if the campaign runs on a cluster.
 */
async function deleteHistory(run: SupervisedRun, name: string, store: string): Promise<void> {
  const { home, options, output } = run;
  const isCluster = options.temporalAddress !== undefined;
  if (!isCluster && !existsSync(home.temporalDatabase)) return;
  if (!isCluster && !temporalPath())
    return output.note('campaign', `its history stays in ${home.temporalDatabase}: no Temporal CLI is installed`);
  const { temporal } = await startTemporal(run);
  const { client } = temporal;
  const query = `${searchAttributes.campaign.name} = ${JSON.stringify(name)}`;
  try {
    for await (const { workflowId, runId, status, taskQueue } of client.workflow.list({ query })) {
      if (taskQueue !== taskQueues.control(store)) continue; // another home's
      const isRunning = status.name === 'RUNNING';
      if (isRunning && isCluster)
        throw new UserError('running', 'campaign', `campaign ${name} is running; \`campaign cancel ${name}\` ends it`);
      if (isRunning) await client.workflow.getHandle(workflowId, runId).terminate('deleted');
      const { namespace } = client.options;
      const execution = { namespace, workflowExecution: { workflowId, runId } };
      await client.workflowService.deleteWorkflowExecution(execution).catch((error: unknown) => {
        if (grpcCode(error) !== NOT_FOUND) throw error;
      });
    }
  } finally {
    await temporal.close();
  }
}

/** `campaign gc`: removes artifacts that no campaign needs, or counts them with --dry-run. */
export async function collectGarbage({ dryRun = false, ...options }: CommonOptions & { dryRun?: boolean }) {
  const home = homeOf(options);
  requireHome(home);
  const { files, bytes } = await garbageIn(home, { dryRun });
  if (options.json) return print(JSON.stringify({ dryRun, files, bytes }));
  print(`${files} files, ${sizeText(bytes)} ${dryRun ? 'would be freed' : 'freed'}`);
}

/** Garbage of the store, and folders of trainings in the home that are a day old: the store has the states from which a training resumes. */
async function garbageIn(home: Home, { dryRun }: { dryRun: boolean }): Promise<Garbage> {
  const garbage = await (await openStore(home.root)).gc({ dryRun });
  const root = join(home.root, 'trainings');
  const trainings = (existsSync(root) ? readdirSync(root) : []).flatMap((campaign) =>
    readdirSync(join(root, campaign)).map((name) => join(root, campaign, name)),
  );
  for (const path of trainings) {
    const all = await walk(path);
    if (all.some(({ changedMs }) => Date.now() - changedMs < DAY_MS)) continue;
    // A checkpoint's weights are the store's, under another name.
    const files = all.filter(({ isFolder, names }) => !isFolder && names === 1);
    garbage.files += files.length;
    garbage.bytes += files.reduce((sum, { bytes }) => sum + bytes, 0);
    if (!dryRun) await rm(path, { recursive: true, force: true });
  }
  return garbage;
}

/** `820kB`, `18MB`. */
const sizeText = (bytes: number): string =>
  new Intl.NumberFormat('en', { notation: 'compact', style: 'unit', unit: 'byte', unitDisplay: 'narrow' }).format(
    bytes,
  );
