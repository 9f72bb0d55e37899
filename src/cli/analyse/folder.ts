/**
 * The folder of an analysis: HOME/NAME, beside campaigns. Invariants: no campaign's folder is taken, nor an analysis's by a campaign; result, labels
 * by people and spending of a name are of the same conversations, and the name is taken before anything is asked.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { readLabelFiles } from '../../analyst/label-files';
import { createFile } from '../../artifacts/durable-file';
import { openFolderStore } from '../../artifacts/folder-store';
import { digest } from '../../artifacts/hash';
import { readJson } from '../../artifacts/json';
import type { ArtifactStore } from '../../artifacts/store';
import { campaignSchema } from '../../domain/campaign';
import { type LabelPass, labelPassSchema } from '../../domain/capability';
import { spentOf } from '../../language-model/ledger';
import { messageOf, UserError } from '../errors';
import { type Home, isReservedName } from '../project';
import { findReport } from '../reports';
import type { Conversations } from './conversations';
import { type Analysis, analysisSchema } from './result';

/** Folder of the label files, beside the capabilities' file that names it. */
export const LABELS = 'labels';

export interface Place {
  name: string;
  /** The home's folder. */
  root: string;
  folder: string;
  json: string;
  html: string;
  /** Candidates and passes, as the analyst `given` reads them. */
  capabilities: string;
  labels: string;
  /** Which conversations the name stands for. */
  conversations: string;
  humanLabels: string;
  /** The store's folder for what is not finished yet. */
  aside: string;
}

export function placeOf({ home, name }: { home: Pick<Home, 'root'>; name: string }): Place {
  const folder = join(home.root, name);
  const at = (file: string) => join(folder, file);
  return {
    name,
    root: home.root,
    folder,
    json: at('analysis.json'),
    html: at('analysis.html'),
    capabilities: at('capabilities.yaml'),
    labels: at(LABELS),
    conversations: at('conversations.json'),
    humanLabels: at('human-labels.json'),
    aside: join(home.root, 'artifacts', 'aside'),
  };
}

/** The name that was given, else the first file's. @throws UserError where it can't be used. */
export function nameOf(o: { home: Pick<Home, 'root'>; files: readonly string[]; name?: string | undefined }): string {
  const name = o.name ?? fromFile(o.files[0] ?? '');
  const parsed = campaignSchema.shape.name.safeParse(name);
  if (!parsed.success) throw new UserError(`--name is "${name}"; it must be ${parsed.error.issues[0]?.message}`);
  const taken = isReservedName(name) || existsSync(join(o.home.root, name, 'report.json'));
  if (taken)
    throw new UserError(`${o.home.root} has a campaign or files of its own under "${name}"; give another --name`);
  return name;
}

/** Before a campaign starts. @throws UserError where an analysis has its name: they would share a folder, and what they spent. */
export function refuseNameOfAnalysis({ home, name }: { home: Pick<Home, 'root'>; name: string }): void {
  const { conversations, folder } = placeOf({ home, name });
  if (existsSync(conversations))
    throw new UserError(
      `name is "${name}", and ${folder} is an analysis of conversations (campaign analyse); give the campaign another name, ` +
        'in its file or with --name',
    );
}

const fromFile = (file: string): string =>
  basename(file)
    .replace(/\.\w+$/, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 63) || 'analysis';

const claimSchema = z.strictObject({ digest: z.string(), files: z.array(z.string()) });
export type Claim = z.infer<typeof claimSchema>;

/** By what the conversations hold and how they are called, in any order. */
export const claimOf = ({ ids, files }: Pick<Conversations, 'ids'> & { files: readonly string[] }): Claim => ({
  digest: digest([...ids].sort(([a], [b]) => (a < b ? -1 : 1))),
  files: [...files],
});

/** @throws UserError where the name is another's. */
export async function checkClaim(o: { place: Place; claim: Claim; store: ArtifactStore }): Promise<void> {
  const { place, claim, store } = o;
  const before = readClaim(place);
  if (!before) {
    const used = existsSync(place.folder) && readdirSync(place.folder).length > 0;
    if (used || (await spentOf({ store, campaign: place.name })).length > 0)
      throw new UserError(
        `"${place.name}" is the name of a campaign, or ${place.folder} holds what no analysis wrote; give another --name`,
      );
  } else if (before.digest !== claim.digest)
    throw new UserError(
      `"${place.name}" is the analysis of other conversations (${before.files.join(', ')}); give another --name, ` +
        `or remove ${place.folder} with its labels by people`,
    );
}

export async function takeName(o: { place: Place; claim: Claim; store: ArtifactStore }): Promise<void> {
  const { place, claim } = o;
  const body = `${JSON.stringify(claim, null, 2)}\n`;
  const taken = await createFile({ path: place.conversations, body, aside: place.aside });
  // Somebody was first: with the same conversations?
  if (!taken) await checkClaim(o);
}

function readClaim({ conversations }: Pick<Place, 'conversations'>): Claim | undefined {
  if (!existsSync(conversations)) return undefined;
  try {
    return claimSchema.parse(JSON.parse(readFileSync(conversations, 'utf8')));
  } catch (error) {
    throw new UserError(`${conversations} is damaged (${messageOf(error)}); give another --name`);
  }
}

/**
 * The labeling passes of an analysis or a campaign of the home, by default of the newest analysis. Trajectories are called as people call them:
 * conversations as in the user's files, rollouts by their keys. @throws UserError
 */
export async function passesOf({
  home,
  name,
}: {
  home: Pick<Home, 'root'>;
  name?: string | undefined;
}): Promise<{ place: Place; passes: LabelPass[] }> {
  const known = name ?? newestAnalysis(home.root);
  if (known === undefined)
    throw new UserError(`no analysis in ${home.root}; make one with \`campaign analyse FILE\`, or give --name`);
  const place = placeOf({ home, name: known });
  const passes = existsSync(place.json) ? await ofAnalysis(place) : await ofCampaign(home.root, known);
  if (passes.length === 0) throw new UserError(`${known} has no labeling pass to compare with: nothing was labeled`);
  return { place, passes };
}

/** @throws UserError if it is damaged or of another version. */
export function readAnalysis({ json }: Pick<Place, 'json'>): Analysis {
  try {
    return analysisSchema.parse(JSON.parse(readFileSync(json, 'utf8')));
  } catch (error) {
    throw new UserError(
      `${json} is damaged or of another version (${messageOf(error)}); the same \`campaign analyse FILE\` writes it anew`,
    );
  }
}

function newestAnalysis(root: string): string | undefined {
  const at = (name: string) => join(root, name, 'analysis.json');
  const [newest] = (existsSync(root) ? readdirSync(root) : [])
    .filter((name) => existsSync(at(name)))
    .sort((a, b) => statSync(at(b)).mtimeMs - statSync(at(a)).mtimeMs);
  return newest;
}

async function ofAnalysis(place: Place): Promise<LabelPass[]> {
  if (readAnalysis(place).passes === 0) return [];
  const files = await readLabelFiles({ folder: place.labels, field: place.name });
  return files.map(({ pass }) => pass);
}

/** A selection is made of rollouts, candidates and the passes. */
async function ofCampaign(root: string, name: string): Promise<LabelPass[]> {
  const { report } = findReport({ home: root, name }) ?? {};
  const [selection] = report?.selection?.from ?? [];
  if (!selection)
    throw new UserError(
      `${join(root, name)} holds neither an analysis nor a report with a selection; give another --name`,
    );
  const store = openFolderStore(join(root, 'artifacts'));
  const { inputs } = await store.provenance(selection);
  return Promise.all(inputs.slice(2).map((ref) => readJson(store, ref, labelPassSchema)));
}
