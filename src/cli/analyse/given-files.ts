/**
 * What a campaign can go on from: the capabilities and the passes as the analyst `given` reads them (docs/analysis.md). Invariant:
 * conversations are called in it as in the user's files.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Candidate, LabelPass } from '../../domain/capability';

export const LABELS = 'labels';

export async function writeLabels(o: {
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
export const capabilitiesText = (o: { candidates: readonly Candidate[]; passes: readonly LabelPass[] }): string =>
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
