/** The index of a campaign: the keys that its steps found or made. It keeps them from garbage collection until the campaign is deleted. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { z } from 'zod';
import { forEachBounded } from '../domain/concurrency';
import { jsonText } from '../domain/messages';
import { sha256 } from './hash';
import type { RecordFiles } from './store';

const WRITE_MS = 10_000;
const CONCURRENCY = 16;

interface StepKeys {
  all: Set<string>;
  unwritten: Set<string>;
}

const current = new AsyncLocalStorage<StepKeys>();

export const isInStep = (): boolean => current.getStore() !== undefined;

/** Adds a key to the index of the step that runs; without a step it does nothing. */
export function addKey(key: string): void {
  const step = current.getStore();
  if (!step || step.all.has(key)) return;
  step.all.add(key);
  step.unwritten.add(key);
}

const indexPath = (campaign: string): string => `campaigns/${campaign}/index/`;

/** Runs a step of a campaign. Resolves once the keys that the step found or made are in the campaign's index. */
export async function indexed<Result>(
  files: RecordFiles,
  campaign: string,
  step: () => Promise<Result>,
): Promise<Result> {
  const keys: StepKeys = { all: new Set(), unwritten: new Set() };
  const write = async (): Promise<void> => {
    const added = [...keys.unwritten].sort();
    if (added.length === 0) return;
    const text = JSON.stringify(added);
    await files.create(indexPath(campaign) + sha256(text), text);
    for (const key of added) keys.unwritten.delete(key);
  };
  const writeIfPossible = () => write().catch(() => undefined);
  const timer = setInterval(() => void writeIfPossible(), WRITE_MS).unref();
  try {
    const result = await current.run(keys, step);
    await write();
    return result;
  } catch (error) {
    await writeIfPossible();
    throw error;
  } finally {
    clearInterval(timer);
  }
}

const indexText = jsonText.pipe(z.array(z.string()));
const known = new WeakMap<RecordFiles, Map<string, string[]>>();

/** Returns the keys of a campaign, in the order of writing; without a name those of all campaigns. */
export async function keysOf(files: RecordFiles, campaign?: string): Promise<string[]> {
  const read = known.get(files) ?? new Map<string, string[]>();
  known.set(files, read);
  const listed = (await files.list(campaign === undefined ? 'campaigns/' : indexPath(campaign))).filter(
    ({ path }) => path.split('/')[2] === 'index',
  );
  const work = async ({ path }: (typeof listed)[number]) => {
    const text = await files.read(path);
    if (text !== undefined) read.set(path, indexText.parse(text));
  };
  await forEachBounded({ items: listed.filter(({ path }) => !read.has(path)), concurrency: CONCURRENCY, work });
  listed.sort((a, b) => a.changedMs - b.changedMs);
  return [...new Set(listed.flatMap(({ path }) => read.get(path) ?? []))];
}

export async function indexedCampaigns(files: RecordFiles): Promise<string[]> {
  return [...new Set((await files.list('campaigns/')).map(({ path }) => path.split('/')[1]!))];
}

/** Folders that have a subfolder for each campaign, which lives as long as the campaign. */
const OWNED = ['chunks', 'trainings', 'budget', 'campaigns'];

/** Removes the files that only this campaign uses. The next garbage collection removes shared ones that no other campaign uses. */
export async function removeCampaign(files: RecordFiles, campaign: string): Promise<void> {
  for (const folder of OWNED) await files.removeFolder(`${folder}/${campaign}`);
}
