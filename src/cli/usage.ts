/** What of a home belongs to which campaign: `campaign list`, `du`, `delete` and `prune`. Bytes are those on disk; together they are the home's. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { walk } from '../artifacts/contents';
import { openStore } from '../artifacts/open-store';
import { isAlone, type Share, usageOf } from '../artifacts/usage';
import { UserError } from './errors';
import { type Home, isReservedName } from './project';

/** Kinds of what a home holds, by the first part of keys in the store; what is not named here is `results`. */
const kinds: Record<string, readonly string[]> = {
  adapters: ['adapter', 'merge', 'gated', 'blank-adapter'],
  rollouts: ['rollouts', 'outcomes'],
  replies: ['reply'],
  journals: ['journals'],
  unreferenced: ['unreferenced'],
};
const kindOf = (part: string): string =>
  Object.keys(kinds).find((kind) => kinds[kind]!.includes(part)) ?? (part === 'rest' ? 'other' : 'results');

export interface Used {
  /** Nobody else uses it: it goes with the campaign. */
  alone: number;
  shared: number;
}

export interface CampaignUse extends Used {
  name: string;
  /** Whether it has noted what it uses; else its figures are those of its folder alone. */
  isKnown: boolean;
  kinds: Record<string, Used>;
  changedMs: number;
}

export interface HomeUse {
  bytes: number;
  /** All of the home, by kind. */
  kinds: Record<string, number>;
  campaigns: CampaignUse[];
}

/** A training's folder is called after what is learned and the beginning of its id. */
const trainingOf = (folder: string): string => /-([0-9a-f]{12})$/.exec(folder)?.[1] ?? folder;

export interface TrainingFolder {
  path: string;
  users: ReadonlySet<string>;
  /** Its result is in the store: the folder is for resuming, and for a look. */
  isStored: boolean;
}

/** Folders of trainings, and the campaigns that have asked for them. */
export function trainingFolders(
  home: Home,
  { noted, contents }: Pick<Awaited<ReturnType<typeof usageOf>>, 'noted' | 'contents'>,
): TrainingFolder[] {
  const root = join(home.root, 'trainings');
  const idOf = (key: string) => /(?:^|:)training\/([0-9a-f]{12})[0-9a-f]*$/.exec(key)?.[1];
  const stored = new Set(contents.entries.flatMap(({ key }) => idOf(key) ?? []));
  return (existsSync(root) ? readdirSync(root) : []).map((name) => ({
    path: join(root, name),
    users: new Set(
      [...noted].flatMap(([user, keys]) => ([...keys].some((key) => idOf(key) === trainingOf(name)) ? [user] : [])),
    ),
    isStored: stored.has(trainingOf(name)),
  }));
}

/** Folders of campaigns: whatever lies beside the home's own. */
const campaignFolders = (home: Home): string[] =>
  (existsSync(home.root) ? readdirSync(home.root, { withFileTypes: true }) : [])
    .filter((entry) => entry.isDirectory() && !isReservedName(entry.name))
    .map(({ name }) => name);

/** @throws UserError if there is no home. */
export async function homeUse(home: Home): Promise<HomeUse> {
  if (!existsSync(home.root)) throw new UserError(`there is no home ${home.root}; name another with --home`);
  const usage = await usageOf(await openStore(home.root));
  const folders = campaignFolders(home);
  const trainings = new Map(trainingFolders(home, usage).map((one) => [basename(one.path), one.users]));
  const names = [...new Set([...folders, ...usage.noted.keys()])].sort();
  const changed = new Map<string, number>();
  const shares: Share[] = usage.shares.map((share) => ({ ...share, kind: kindOf(share.kind) }));
  for (const { path, isFolder, bytes, names: links, changedMs } of await walk(home.root)) {
    const [top = '', below = ''] = relative(home.root, path).split(sep);
    if (top === 'artifacts') continue;
    const isCampaign = folders.includes(top);
    if (isCampaign) changed.set(top, Math.max(changedMs, changed.get(top) ?? 0));
    const users = isCampaign ? new Set([top]) : (top === 'trainings' && trainings.get(below)) || new Set<string>();
    const kind = isCampaign
      ? 'reports'
      : top === 'trainings' || top === 'logs'
        ? top
        : top.startsWith('temporal.db')
          ? 'temporal'
          : 'other';
    // A checkpoint's weights are the store's, under another name.
    if (isFolder || links === 1) shares.push({ kind, bytes, users, mayBeUsed: false });
  }
  const campaigns = names.map((name) => {
    const own = shares.filter(({ users }) => users.has(name));
    const byKind: Record<string, Used> = {};
    for (const share of own) {
      const used = (byKind[share.kind] ??= { alone: 0, shared: 0 });
      used[isAlone(share, name) ? 'alone' : 'shared'] += share.bytes;
    }
    const sum = (of: keyof Used) => Object.values(byKind).reduce((total, used) => total + used[of], 0);
    return {
      name,
      isKnown: usage.noted.has(name),
      alone: sum('alone'),
      shared: sum('shared'),
      kinds: byKind,
      changedMs: changed.get(name) ?? 0,
    };
  });
  const all: Record<string, number> = {};
  for (const { kind, bytes } of shares) all[kind] = (all[kind] ?? 0) + bytes;
  return { bytes: Object.values(all).reduce((sum, bytes) => sum + bytes, 0), kinds: all, campaigns };
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
