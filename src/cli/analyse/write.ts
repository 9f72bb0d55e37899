/**
 * What was found, as files. Invariant: analysis.json stands beside what it was made with, or it is not there: it goes first and comes last, and
 * the labels are written aside. Killed in between, the same command writes all of it anew.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { asidePath } from '../../artifacts/durable-file';
import { isCode, makeFolder, replaceFile } from '../../artifacts/durable-file';
import type { Candidate, LabelPass } from '../../domain/capability';
import { compare } from './comparison';
import { LABELS, passesOf, type Place, readAnalysis } from './folder';
import { analysisHtml } from './page';
import { keptLabels } from './people';
import type { Analysis } from './result';

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
  const { labels, capabilities: given } = place;
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

/** With conversations called as in the user's files. */
async function writeLabels(o: {
  folder: string;
  passes: readonly LabelPass[];
  ids: ReadonlyMap<string, string>;
}): Promise<void> {
  const { folder, passes, ids } = o;
  for (const [n, pass] of passes.entries()) {
    const file = join(folder, `run_${String(n).padStart(2, '0')}.json`);
    await writeFile(file, `${JSON.stringify(named(pass, ids), null, 2)}\n`, { flush: true });
  }
}

/** Of the file that `analyst.capabilities` names. */
const capabilitiesText = (o: { candidates: readonly Candidate[]; passes: readonly LabelPass[] }): string =>
  stringify({
    capabilities: o.candidates.map(({ name, definition }) => ({ name, definition })),
    ...(o.passes.length > 0 && { labels: LABELS }),
  });

/** The pass with the files' names of the conversations. */
function named({ attempt, totals, labels, reasons, failures }: LabelPass, ids: ReadonlyMap<string, string>): LabelPass {
  const of = (key: string) => ids.get(key) ?? key;
  const keysOf = <T>(record: Record<string, T>) =>
    Object.fromEntries(Object.entries(record).map(([key, value]) => [of(key), value]));
  const lists = Object.entries(labels).map(([name, own]) => [
    name,
    Object.fromEntries(Object.entries(own).map(([list, keys]) => [list, keys.map(of)])),
  ]);
  return {
    attempt,
    totals,
    labels: Object.fromEntries(lists) as LabelPass['labels'],
    ...(reasons && {
      reasons: Object.fromEntries(Object.entries(reasons).map(([name, given]) => [name, keysOf(given)])),
    }),
    ...(failures && { failures: keysOf(failures) }),
  };
}

/** analysis.html, made anew from analysis.json, the labels and what people labeled. */
export async function writePage(place: Place): Promise<void> {
  const analysis = readAnalysis(place);
  const labels = keptLabels(place);
  const passes = labels && analysis.passes > 0 ? (await passesOf({ home: place, name: place.name })).passes : [];
  const comparison = labels && passes.length > 0 ? compare({ labels, passes }) : undefined;
  const body = analysisHtml({ analysis, comparison });
  await replaceFile({ path: place.html, body, aside: place.aside });
}
