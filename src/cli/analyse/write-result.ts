/**
 * What was found, as files. Invariant: analysis.json stands beside what it was made with, or it is not there: it goes first and comes last, and
 * the labels are written aside. Killed in between, the same command writes all of it anew.
 */
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asidePath } from '../../artifacts/aside';
import { isCode, makeFolder, replaceFile } from '../../artifacts/durable-file';
import type { Candidate, LabelPass } from '../../domain/capability';
import { capabilitiesText, LABELS, writeLabels } from './given-files';
import type { Place } from './places';
import type { Analysis } from './result';
import { writePage } from './write-page';

/** @returns the file that `analyst.capabilities` names, if there are any. */
export async function writeResult(o: {
  place: Place;
  analysis: Analysis;
  candidates: readonly Candidate[];
  passes: readonly LabelPass[];
  ids: ReadonlyMap<string, string>;
}): Promise<string | undefined> {
  const { place, analysis, candidates, passes, ids } = o;
  const { aside } = place;
  await makeFolder(aside);
  const [fresh, old] = [asidePath(aside), asidePath(aside)];
  const [labels, given] = [join(place.folder, LABELS), join(place.folder, 'capabilities.yaml')];
  try {
    await mkdir(fresh);
    await writeLabels({ folder: fresh, passes, ids });
    for (const file of [place.json, place.html]) await rm(file, { force: true });
    await rename(labels, old).catch((error: unknown) => {
      if (!isCode(error, 'ENOENT')) throw error;
    });
    if (candidates.length === 0) await rm(given, { force: true });
    else {
      await rename(fresh, labels);
      await replaceFile({ path: given, body: capabilitiesText({ candidates, passes }), aside });
    }
    await replaceFile({ path: place.json, body: `${JSON.stringify(analysis, null, 2)}\n`, aside });
  } finally {
    for (const folder of [fresh, old]) await rm(folder, { recursive: true, force: true });
  }
  await writePage(place);
  return candidates.length === 0 ? undefined : given;
}
