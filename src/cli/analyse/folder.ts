/**
 * The folder of an analysis: HOME/NAME, beside campaigns. No campaign's folder is taken, nor an analysis's by a campaign; result and spending of a
 * name are of the same conversations, and the name is taken before anything is asked. analysis.json stands beside what it was made with, or it is
 * not there: it goes first and comes last, so that after a kill the same command writes all of it anew.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { asideIn, createFile, makeFolder, replaceFile } from '../../store/durable-file';
import { digest } from '../../store/hash';
import type { ArtifactStore } from '../../store/store';
import { campaignSchema } from '../../domain/campaign';
import type { Candidate, LabelPass } from '../../domain/capability';
import { spentOf } from '../../llm/spending';
import { invalidOption, messageOf, UserError } from '../errors';
import { type Home, isReservedName } from '../project';
import type { Conversations } from './conversations';
import { analysisHtml } from './page';
import { type Analysis, withNames } from './result';

export type Place = ReturnType<typeof placeOf>;

export function placeOf({ root }: Pick<Home, 'root'>, name: string) {
  const folder = join(root, name);
  return {
    name,
    root,
    folder,
    json: join(folder, 'analysis.json'),
    html: join(folder, 'analysis.html'),
    /** Candidates and passes, as the analyst `given` reads them. */
    capabilities: join(folder, 'capabilities.yaml'),
    labels: join(folder, 'labels'),
    /** Which conversations the name stands for. */
    conversations: join(folder, 'conversations.json'),
    /** The store's folder for what is not finished yet. */
    aside: asideIn(root),
  };
}

/** The name that was given, else the first file's. @throws UserError where it can't be used. */
export function nameOf(home: Pick<Home, 'root'>, [file = '']: readonly string[], given?: string): string {
  const words = basename(file)
    .replace(/\.\w+$/, '')
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  const name = given ?? (words?.join('-').slice(0, 63) || 'analysis');
  const parsed = campaignSchema.shape.name.safeParse(name);
  if (!parsed.success) throw invalidOption('--name', `"${name}"`, `it must be ${parsed.error.issues[0]?.message}`);
  if (isReservedName(name) || existsSync(join(home.root, name, 'report.json')))
    throw invalidOption('--name', `"${name}"`, `${home.root} has a campaign or files of its own there; give another`);
  return name;
}

/** Returns whether the folder of this name is an analysis. */
export const isAnalysis = (home: Pick<Home, 'root'>, name: string): boolean =>
  existsSync(placeOf(home, name).conversations);

/** Before a campaign starts. @throws UserError where an analysis has its name: they would share a folder, and what they spent. */
export function refuseNameOfAnalysis({ home, name }: { home: Pick<Home, 'root'>; name: string }): void {
  const { folder } = placeOf(home, name);
  if (isAnalysis(home, name))
    throw new UserError(
      `name is "${name}", and ${folder} is an analysis of conversations (campaign analyse); give the campaign another name, ` +
        'in its file or with --name',
    );
}

/** What the conversations hold and how they are called, in any order; and where that was read. */
const claimSchema = z.strictObject({ digest: z.string(), files: z.array(z.string()) });
type Claim = z.infer<typeof claimSchema>;

export const claimOf = ({ ids }: Pick<Conversations, 'ids'>, files: readonly string[]): Claim => ({
  digest: digest([...ids].sort(([a], [b]) => (a < b ? -1 : 1))),
  files: [...files],
});

interface Claiming {
  place: Place;
  claim: Claim;
  store: ArtifactStore;
}

/** @throws UserError where the name is another's. */
export async function checkClaim({ place, claim, store }: Claiming): Promise<void> {
  const before = readClaim(place.conversations);
  if (before && before.digest !== claim.digest)
    throw new UserError(
      `"${place.name}" is the analysis of other conversations (${before.files.join(', ')}); give another --name, or remove ${place.folder}`,
    );
  if (before) return;
  const used = existsSync(place.folder) && readdirSync(place.folder).length > 0;
  if (used || (await spentOf({ store, campaign: place.name })).length > 0)
    throw new UserError(
      `"${place.name}" is the name of a campaign, or ${place.folder} holds what no analysis wrote; give another --name`,
    );
}

export async function takeName(claiming: Claiming): Promise<void> {
  const { place, claim } = claiming;
  const taken = await createFile({ path: place.conversations, body: jsonText(claim), aside: place.aside });
  // Somebody was first: with the same conversations?
  if (!taken) await checkClaim(claiming);
}

const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Returns undefined where there is none. @throws UserError where it is damaged. */
function readClaim(file: string): Claim | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return claimSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new UserError(`${file} is damaged or of another version (${messageOf(error)}); give another --name`);
  }
}

export async function writeResult(o: {
  place: Place;
  analysis: Analysis;
  candidates: readonly Candidate[];
  passes: readonly LabelPass[];
  ids: ReadonlyMap<string, string>;
}): Promise<void> {
  const { place, analysis, candidates, passes, ids } = o;
  const { aside, json, html, capabilities, labels } = place;
  await makeFolder(aside);
  for (const old of [json, html, capabilities, labels]) await rm(old, { force: true, recursive: old === labels });
  if (candidates.length > 0) {
    await mkdir(labels);
    for (const [n, pass] of passes.entries()) {
      const file = join(labels, `run_${String(n).padStart(2, '0')}.json`);
      await writeFile(file, jsonText(withNames(pass, ids)), { flush: true });
    }
    const body = stringify({
      capabilities: candidates.map(({ name, definition }) => ({ name, definition })),
      ...(passes.length > 0 && { labels: basename(labels) }),
    });
    await replaceFile({ path: capabilities, body, aside });
  }
  await replaceFile({ path: json, body: jsonText(analysis), aside });
  await replaceFile({ path: html, body: analysisHtml(analysis), aside });
}
