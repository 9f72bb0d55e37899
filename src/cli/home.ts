/**
 * What a home holds, and what of it belongs to which campaign: bytes are those on disk, together they are the home's. `campaign list` and `du` show it;
 * `campaign delete` removes a campaign's history, what it alone uses, and its folder: interrupted at any moment, the same command ends it, and nothing
 * that another campaign uses is removed. `campaign prune` removes what no campaign needs. Neither removes anything from the store that is younger than
 * a day: workers that were started by hand, and other commands, write to it meanwhile.
 */
import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { isOld, walk } from '../artifacts/content-store';
import { openStore } from '../artifacts/open-store';
import { isAlone, removeNotes, removeUsed, type Share, type Usage, usageOf } from '../artifacts/usage';
import { plainLine } from '../domain/plain-text';
import { taskQueues } from '../domain/work';
import { alignColumns, print } from '../terminal';
import { searchAttributeNames } from '../workflows/messages';
import { campaignsOf } from './campaign-status';
import { UserError } from './errors';
import { type CommonOptions, homeOf, requireYes } from './options';
import { type Home, isReservedName, temporalPath } from './project';
import { acquireLock } from './run/processes';
import { type ServeOptions, supervised, type SupervisedRun } from './run/supervisor';
import { startTemporal } from './run/temporal-server';
import { grpcCode, type Temporal, UnknownCampaign, withServer } from './temporal';
import { timeText } from './watch/output';

/** `campaign list`: the campaigns of a home, where they stand and what they take. */
export async function listHome(options: CommonOptions): Promise<void> {
  const home = homeOf(options);
  const use = await homeUse(home);
  const rows = await withServer(options, (temporal) => campaignsOf(temporal, options));
  const campaigns = use.campaigns.map(({ kinds, changedMs, ...one }) => ({
    ...one,
    state: rows.find(({ name }) => name === one.name)?.status ?? 'unknown',
    changedMs,
    kinds,
  }));
  if (options.json) return print(JSON.stringify({ home: home.root, bytes: use.bytes, campaigns }));
  if (campaigns.length === 0) return print(`no campaigns in ${home.root}`);
  const lines = campaigns.map(({ name, state, changedMs, alone, shared, isKnown }) => [
    plainLine(name),
    state,
    changedMs === 0 ? '' : timeText(changedMs),
    sizeText(alone),
    isKnown ? sizeText(shared) : 'unknown',
  ]);
  print(alignColumns([['campaign', 'state', 'last change', 'alone', 'shared'], ...lines]).join('\n'));
  print(`${sizeText(use.bytes)} in ${home.root}`);
  if (campaigns.some(({ isKnown }) => !isKnown))
    print('unknown: run before uses were noted; what is in the store counts as used by it');
}

/** `campaign du`: what takes room, by kind, of the home or of one campaign. */
export async function showUse(name: string | undefined, options: CommonOptions): Promise<void> {
  const home = homeOf(options);
  const use = await homeUse(home);
  const shown = name === undefined ? use : campaignIn(use, name, home);
  if (options.json) return print(JSON.stringify(shown));
  const printRows = (rows: string[][]) => print(alignColumns(rows, { numbers: true }).join('\n'));
  if (!('name' in shown)) {
    const rows = Object.entries(shown.kinds).sort(([, a], [, b]) => b - a);
    return printRows([...rows, ['all', shown.bytes] as const].map(([kind, bytes]) => [kind, sizeText(bytes)]));
  }
  const rows = Object.entries(shown.kinds).sort(([, a], [, b]) => b.alone + b.shared - a.alone - a.shared);
  const lines = [...rows, ['all', shown] as const].map(([kind, used]) => [
    kind,
    sizeText(used.alone),
    sizeText(used.shared),
  ]);
  printRows([['', 'alone', 'shared'], ...lines]);
  if (!shown.isKnown) print(`what ${name} uses of the store is unknown: it was run before uses were noted`);
}

export type DeleteOptions = ServeOptions & { yes?: boolean };

/** @returns the exit code. */
export async function deleteCampaign(name: string, options: DeleteOptions): Promise<number> {
  const home = homeOf(options);
  const before = await homeUse(home);
  const { alone, isKnown } = campaignIn(before, name, home);
  const what = `delete campaign ${name} of ${home.root} and the ${sizeText(alone)} that it alone uses`;
  await requireYes(what, { yes: options.yes, otherwise: 'nothing was deleted' });
  const code = await supervised({ options, work: (run) => remove(run, name, isKnown) });
  if (code === 0) print(`${sizeText(before.bytes - (await homeUse(home)).bytes)} freed`);
  return code;
}

async function remove(run: SupervisedRun, name: string, isKnown: boolean): Promise<number> {
  const { home, output } = run;
  const store = await openStore(home.root);
  await deleteHistory(run, name, await store.id());
  if (isKnown) {
    const trainings = trainingFolders(home, await usageOf(store));
    await removeUsed(store, name);
    for (const { path, users } of trainings)
      if (users.size === 1 && users.has(name)) await rm(path, { recursive: true, force: true });
  } else {
    const why = 'it was run before uses were noted, and others may need them';
    output.note('campaign', `what it has in ${join(home.root, 'artifacts')} and its trainings stay: ${why}`);
  }
  await rm(join(home.root, name), { recursive: true, force: true });
  for (const records of ['chunks', 'trainings']) await store.files.removeFolder(`${records}/${name}`);
  await removeNotes(store, name);
  const rest = `logs in ${home.logs} are of all campaigns and stay, and what the store was given within a day does until \`campaign prune\``;
  output.note('campaign', `campaign ${name} is deleted; ${rest}`);
  return 0;
}

async function deleteHistory(run: SupervisedRun, name: string, store: string): Promise<void> {
  const { home, options, output } = run;
  const isCluster = options.temporalAddress !== undefined;
  if (!isCluster && !existsSync(home.temporalDatabase)) return;
  if (!isCluster && !temporalPath())
    return output.note('campaign', `its history stays in ${home.temporalDatabase}: no Temporal CLI is installed`);
  const { temporal } = await startTemporal(run);
  try {
    await deleteExecutions(temporal, { name, store, isCluster });
  } finally {
    await temporal.close();
  }
}

/** gRPC's code of what is gone already, where the list is behind. */
const NOT_FOUND = 5;

/**
 * Asks the server to delete the campaign and its children; it has written that down when it answers, and does it in its own time.
 * @throws UserError if the campaign runs on a cluster; what a home's own server holds as running, nobody runs while we hold the home.
 */
async function deleteExecutions(
  { client }: Temporal,
  { name, store, isCluster }: { name: string; store: string; isCluster: boolean },
): Promise<void> {
  const { namespace } = client.options;
  const query = `${searchAttributeNames.campaign} = ${JSON.stringify(name)}`;
  for await (const { workflowId, runId, status, taskQueue } of client.workflow.list({ query })) {
    if (taskQueue !== taskQueues.control(store)) continue; // another home's
    if (status.name === 'RUNNING') {
      if (isCluster) throw new UserError(`campaign ${name} is running; \`campaign cancel ${name}\` ends it`);
      await client.workflow.getHandle(workflowId, runId).terminate('deleted');
    }
    const execution = { namespace, workflowExecution: { workflowId, runId } };
    await client.workflowService.deleteWorkflowExecution(execution).catch((error: unknown) => {
      if (grpcCode(error) !== NOT_FOUND) throw error;
    });
  }
}

/** Says what goes, or would go. */
export async function prune({ dryRun = false, ...options }: CommonOptions & { dryRun?: boolean }): Promise<void> {
  const home = homeOf(options);
  requireHome(home);
  const release = await acquireLock(home);
  try {
    const store = await openStore(home.root);
    let bytes = 0;
    for (const { path, isStored } of trainingFolders(home, await usageOf(store))) {
      const all = await walk(path);
      if (!isStored || !all.every(({ changedMs }) => isOld(changedMs))) continue;
      const files = all.filter(({ names }) => names === 1);
      const size = files.reduce((sum, file) => sum + file.bytes, 0);
      bytes += size;
      print(`${path}  ${sizeText(size)}`);
      if (!dryRun) await rm(path, { recursive: true, force: true });
    }
    const swept = await store.sweep({ dryRun });
    print(`${swept.files} files of the store  ${sizeText(swept.bytes)}`);
    print(`${sizeText(bytes + swept.bytes)} ${dryRun ? 'would be freed' : 'freed'}`);
  } finally {
    await release();
  }
}

/** Kinds of what a store holds, by the first part of its keys; what is not named here is `results`. */
const storeKinds: Record<string, string> = {
  adapter: 'adapters',
  merge: 'adapters',
  'blank-adapter': 'adapters',
  rollouts: 'rollouts',
  outcomes: 'rollouts',
  reply: 'replies',
  journals: 'journals',
  unreferenced: 'unreferenced',
  rest: 'other',
};
/** Of a home's other folders and files, by their names. */
const homeKind = (name: string): string =>
  ['trainings', 'logs'].includes(name) ? name : name.startsWith('temporal.db') ? 'temporal' : 'other';

interface Used {
  /** Nobody else uses it: it goes with the campaign. */
  alone: number;
  shared: number;
}

interface CampaignUse extends Used {
  name: string;
  /** Whether it has noted what it uses; else its figures are those of its folder alone. */
  isKnown: boolean;
  kinds: Record<string, Used>;
  changedMs: number;
}

interface HomeUse {
  bytes: number;
  /** All of the home, by kind. */
  kinds: Record<string, number>;
  campaigns: CampaignUse[];
}

interface TrainingFolder {
  path: string;
  users: ReadonlySet<string>;
  /** Its result is in the store: the folder is for resuming, and for a look. */
  isStored: boolean;
}

/** Folders of trainings, each called after what is learned and the beginning of its id, and the campaigns that have asked for them. */
export function trainingFolders(home: Home, { noted, contents }: Pick<Usage, 'noted' | 'contents'>): TrainingFolder[] {
  const root = join(home.root, 'trainings');
  const idOf = (key: string) => /(?:^|:)training\/([0-9a-f]{12})[0-9a-f]*$/.exec(key)?.[1];
  const stored = new Set(contents.entries.map(({ key }) => idOf(key)));
  const usersOf = (id: string) => [...noted].filter(([, keys]) => [...keys].some((key) => idOf(key) === id));
  return (existsSync(root) ? readdirSync(root) : []).map((name) => {
    const id = /-([0-9a-f]{12})$/.exec(name)?.[1];
    // Called after its campaign, or after one training.
    const users = id === undefined ? [name] : usersOf(id).map(([user]) => user);
    return { path: join(root, name), users: new Set(users), isStored: stored.has(id) };
  });
}

/** @throws UserError if there is no home. */
export function requireHome({ root }: Home): void {
  if (!existsSync(root)) throw new UserError(`there is no home ${root}; name another with --home`);
}

/** @throws UserError if there is no home. */
export async function homeUse(home: Home): Promise<HomeUse> {
  requireHome(home);
  const usage = await usageOf(await openStore(home.root));
  // Folders of campaigns: whatever lies beside the home's own.
  const folders = readdirSync(home.root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !isReservedName(entry.name))
    .map(({ name }) => name);
  const trainings = new Map(trainingFolders(home, usage).map((one) => [basename(one.path), one.users]));
  const changed = new Map<string, number>();
  const shares: Share[] = usage.shares.map((share) => ({ ...share, kind: storeKinds[share.kind] ?? 'results' }));
  for (const { path, isFolder, bytes, names: links, changedMs } of await walk(home.root)) {
    const [top = '', below = ''] = relative(home.root, path).split(sep);
    if (top === 'artifacts') continue;
    const isCampaign = folders.includes(top);
    if (isCampaign) changed.set(top, Math.max(changedMs, changed.get(top) ?? 0));
    const users = isCampaign ? new Set([top]) : (top === 'trainings' && trainings.get(below)) || new Set<string>();
    const kind = isCampaign ? 'reports' : homeKind(top);
    // A checkpoint's weights are the store's, under another name.
    if (isFolder || links === 1) shares.push({ kind, bytes, users, mayBeUsed: false });
  }
  const kinds: HomeUse['kinds'] = {};
  for (const { kind, bytes } of shares) kinds[kind] = (kinds[kind] ?? 0) + bytes;
  const names = [...new Set([...folders, ...usage.noted.keys()])].sort();
  const campaigns = names.map((name): CampaignUse => {
    const [total, byKind]: [Used, CampaignUse['kinds']] = [{ alone: 0, shared: 0 }, {}];
    for (const share of shares.filter(({ users }) => users.has(name)))
      for (const used of [total, (byKind[share.kind] ??= { alone: 0, shared: 0 })])
        used[isAlone(share, name) ? 'alone' : 'shared'] += share.bytes;
    return { name, isKnown: usage.noted.has(name), ...total, kinds: byKind, changedMs: changed.get(name) ?? 0 };
  });
  return { bytes: Object.values(kinds).reduce((sum, bytes) => sum + bytes, 0), kinds, campaigns };
}

/** @throws UserError that names those there are. */
export function campaignIn({ campaigns }: HomeUse, name: string, home: Home): CampaignUse {
  const found = campaigns.find((one) => one.name === name);
  if (found) return found;
  throw new UnknownCampaign(name, { home: home.root, known: campaigns.map((one) => one.name) });
}

/** `820 kB`, `18.2 MB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [size, unit] = [bytes, 0];
  while (size >= 999.5 && unit < units.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
