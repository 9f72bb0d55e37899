/** What of a home belongs to which campaign. Bytes are those on disk; together they are the home's. Reads only. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { walk } from '../artifacts/content-store';
import { openStore } from '../artifacts/open-store';
import { isAlone, type Share, type Usage, usageOf } from '../artifacts/usage';
import { UserError } from './errors';
import { type Home, isReservedName } from './project';

/** Kinds of what a store holds, by the first part of its keys; what is not named here is `results`. */
const storeKinds: Record<string, string> = {
  adapter: 'adapters',
  merge: 'adapters',
  gated: 'adapters',
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
    const id = /-([0-9a-f]{12})$/.exec(name)?.[1] ?? name;
    return { path: join(root, name), users: new Set(usersOf(id).map(([user]) => user)), isStored: stored.has(id) };
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
  const known = campaigns.map((one) => one.name).join(', ') || 'none';
  throw new UserError(`there is no campaign ${name} in ${home.root}; it has ${known}`);
}

/** `820 kB`, `18.2 MB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [size, unit] = [bytes, 0];
  while (size >= 999.5 && unit < units.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
