/** `campaign labels`: what people labeled, checked, kept beside an analysis or a campaign, and held against its passes. */
import { existsSync } from 'node:fs';
import { terminalText } from '../../report/terminal';
import { plain } from '../../terminal';
import { UserError } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { keepImported, passesOf, readImported } from './folder';
import { compare, comparisonBlocks, readHumanLabels } from './people';

export interface LabelsOptions extends CommonOptions {
  name?: string;
}

/** @returns what is printed. */
export async function importLabels(file: string, options: LabelsOptions): Promise<string> {
  const { place, passes } = await passesOf(homeOf(options), options.name);
  const labels = readHumanLabels({ file, passes });
  await keepImported(place, labels);
  const page = existsSync(place.json) ? `, or see ${place.html}` : '';
  return plain(
    `${labels.length} labels by people kept: ${place.humanLabels}\n` +
      `compare them with \`campaign labels compare --name ${place.name}\`${page}`,
  );
}

/** Of the file, else of those that were imported. */
export async function compareLabels(file: string | undefined, options: LabelsOptions): Promise<string> {
  const { place, passes } = await passesOf(homeOf(options), options.name);
  const labels = file === undefined ? readImported(place) : readHumanLabels({ file, passes });
  if (!labels)
    throw new UserError(
      `no labels by people are kept for ${place.name}; give a file, or import one with \`campaign labels import\``,
    );
  const comparison = compare({ labels, passes });
  if (options.json) return JSON.stringify(comparison, null, 2);
  return terminalText(comparisonBlocks(comparison), process.stdout.columns);
}
