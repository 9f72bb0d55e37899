/** `campaign labels`: what people labeled, checked, kept beside an analysis or a campaign, and held against its passes. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { UserError } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { plain } from '../../terminal';
import { compare, comparisonText } from './comparison';
import { passesOf } from './folder';
import { keptLabels, readHumanLabels } from './people';
import { writePage } from './write';

export interface LabelsOptions extends CommonOptions {
  name?: string;
}

/** @returns what is printed. */
export async function importLabels(file: string, options: LabelsOptions): Promise<string> {
  const { place, passes } = await passesOf({ home: homeOf(options), name: options.name });
  const labels = readHumanLabels({ file, passes });
  mkdirSync(place.folder, { recursive: true });
  writeFileSync(place.humanLabels, `${JSON.stringify(labels, null, 2)}\n`);
  const page = existsSync(place.json);
  if (page) await writePage(place);
  return plain(
    [
      `${labels.length} labels by people kept: ${place.humanLabels}`,
      `compare them with \`campaign labels compare --name ${place.name}\`${page ? `, or see ${place.html}` : ''}`,
    ].join('\n'),
  );
}

/** Of the file, else of those that were imported. */
export async function compareLabels(file: string | undefined, options: LabelsOptions): Promise<string> {
  const { place, passes } = await passesOf({ home: homeOf(options), name: options.name });
  const labels = file === undefined ? keptLabels(place) : readHumanLabels({ file, passes });
  if (!labels)
    throw new UserError(
      `no labels by people are kept for ${place.name}; give a file, or import one with \`campaign labels import\``,
    );
  const comparison = compare({ labels, passes });
  return options.json ? JSON.stringify(comparison, null, 2) : plain(comparisonText(comparison));
}
