/**
 * One campaign with several training seeds, one run after another, and their comparison. Invariant: all runs have the file's `seed`, so that
 * base rollouts, labels, selection and environments are made once and found by the others.
 */
import { join } from 'node:path';
import { comparisonText } from '../../report/compare/render';
import { loadCampaign } from '../campaign-file';
import { compareReports, writeComparison } from '../commands/compare';
import { UserError } from '../errors';
import { homeOf } from '../options';
import { runCampaign, type RunOptions } from './command';

export interface SeedsOptions extends RunOptions {
  trainingSeeds: number[];
}

/** @returns the exit code: that of the first run that did not end well, or 0. */
export async function runSeeds(
  file: string,
  options: SeedsOptions,
  run: (file: string, options: RunOptions) => Promise<number> = runCampaign,
): Promise<number> {
  const { trainingSeeds, trainingSeed: one, name, until, json } = options;
  if (one !== undefined)
    throw new UserError(`--training-seed is ${one} and --training-seeds names several; give one of the two options`);
  if (name !== undefined)
    throw new UserError(
      `--name is "${name}", and each of the runs has a name of its own; set \`name\` in the file instead`,
    );
  const named = trainingSeeds.map(
    (trainingSeed) => loadCampaign({ file, overrides: { ...options, trainingSeed } }).name,
  );
  const { recover, ...others } = options;
  for (const trainingSeed of trainingSeeds) {
    // The runs share a database: after the first it is the new one.
    const first = trainingSeed === trainingSeeds[0];
    const code = await run(file, { ...others, trainingSeed, exit: true, ...(first && recover && { recover }) });
    if (code !== 0) return code;
  }
  if (until !== undefined && until !== 'evaluation') return 0;
  const home = homeOf(options).root;
  const comparison = await compareReports({ home, named });
  const folder = join(home, named[0] as string);
  await writeComparison(comparison, folder);
  if (!json) process.stderr.write(`\n${comparisonText(comparison, process.stderr.columns)}\n\n`);
  process.stderr.write(`${join(folder, 'comparison.html')}\n`);
  return 0;
}
