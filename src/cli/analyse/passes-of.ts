/** The labeling passes of an analysis or a campaign of the home. Invariant: trajectories are called as people call them: conversations as in the user's files, rollouts by their keys. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readLabelFiles } from '../../analyst/label-files';
import { labelPassSchema, type LabelPass } from '../../domain/capability';
import { findReport } from '../reports';
import { messageOf, UserError } from '../errors';
import { openFolderStore } from '../../artifacts/folder-store';
import type { Home } from '../project';
import { LABELS } from './given-files';
import { placeOf, type Place } from './places';
import { analysisSchema, type Analysis } from './result';

export interface Labeled {
  place: Place;
  passes: LabelPass[];
}

/** By default of the newest analysis. @throws UserError */
export async function passesOf({
  home,
  name,
}: {
  home: Pick<Home, 'root'>;
  name?: string | undefined;
}): Promise<Labeled> {
  const of = name ?? newestAnalysis(home.root);
  if (of === undefined)
    throw new UserError(`no analysis in ${home.root}; make one with \`campaign analyse FILE\`, or give --name`);
  const place = placeOf({ home, name: of });
  const passes = existsSync(place.json) ? await ofAnalysis(place) : await ofCampaign(home.root, of);
  if (passes.length === 0) throw new UserError(`${of} has no labeling pass to compare with: nothing was labeled`);
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
  const files = await readLabelFiles({ folder: join(place.folder, LABELS), field: place.name });
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
  return Promise.all(
    inputs.slice(2).map(async (ref) => labelPassSchema.parse(JSON.parse((await store.read(ref)).toString('utf8')))),
  );
}
