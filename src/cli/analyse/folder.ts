/** The folder of an analysis: HOME/NAME, beside those of campaigns. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { stringify } from 'yaml';
import { campaignSchema } from '../../domain/campaign';
import { languageModelCost } from '../../report/build/cost';
import { pageHtml } from '../../report/html';
import { invalidOption, UserError } from '../errors';
import { type Home, isReservedName } from '../project';
import type { Analysis } from './result';

type Folder = Pick<Home, 'root'>;

/** Returns the name that was given, else the first file's. @throws UserError where a campaign has it. */
export function nameOf(home: Folder, [file = '']: readonly string[], given?: string): string {
  const words = basename(file)
    .replace(/\.\w+$/, '')
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  const name = given ?? (words?.join('-').slice(0, 63) || 'analysis');
  const parsed = campaignSchema.shape.name.safeParse(name);
  if (!parsed.success) throw invalidOption('--name', `"${name}"`, `it must be ${parsed.error.issues[0]?.message}`);
  if (isReservedName(name) || (existsSync(join(home.root, name)) && !isAnalysis(home, name)))
    throw invalidOption('--name', `"${name}"`, `${home.root} has a campaign or files of its own there; give another`);
  return name;
}

/** Returns whether the folder of this name is an analysis. */
export const isAnalysis = ({ root }: Folder, name: string): boolean => existsSync(join(root, name, 'analysis.json'));

/**
 * Returns whether the analysis of this name has findings of a language model.
 * @throws UserError where these were paid for, and would be replaced by an analysis of other files or without a model.
 */
export function hasFindings(home: Folder, o: { name: string; files: readonly string[]; asks: boolean }): boolean {
  const { name, files, asks } = o;
  if (!isAnalysis(home, name)) return false;
  const earlier = JSON.parse(readFileSync(join(home.root, name, 'analysis.json'), 'utf8')) as Analysis;
  if (!earlier.reading) return false;
  if (asks && earlier.files.join() === files.join()) return true;
  const fix = 'give another --name, or the same files, --url and --model';
  throw new UserError(
    'name_taken',
    '--name',
    `"${name}" has findings of a language model on ${earlier.files.join(', ')}; ${fix}`,
  );
}

/** Called before a campaign starts. @throws UserError if an analysis has its name: they would share a folder and a budget. */
export function refuseNameOfAnalysis({ home, name }: { home: Folder; name: string }): void {
  if (!isAnalysis(home, name)) return;
  const other = 'give the campaign another name, in its file or with --name';
  const is = `name is "${name}", and ${join(home.root, name)} is an analysis of conversations (campaign analyse)`;
  throw new UserError('name_taken', 'name', `${is}; ${other}`);
}

/** Replaces the files of an analysis. Returns the paths of the page, and of the selected capabilities if there are any. */
export async function writeAnalysis({ root }: Folder, analysis: Analysis) {
  const { name, reading } = analysis;
  const page = join(root, name, 'analysis.html');
  const capabilities = join(root, name, 'capabilities.yaml');
  const selected = reading?.selection.candidates.filter((one) => one.selected) ?? [];
  const spent = reading && languageModelCost(reading.spent, reading.budget);

  await mkdir(join(root, name), { recursive: true });
  await writeFile(join(root, name, 'analysis.json'), `${JSON.stringify(analysis, null, 2)}\n`);
  await writeFile(page, pageHtml({ kind: 'analysis', title: `${name}: analysis`, analysis, spent }));
  await rm(capabilities, { force: true });
  if (selected.length === 0) return { page };
  const given = selected.map(({ name, definition }) => ({ name, definition }));
  await writeFile(capabilities, stringify({ capabilities: given }));
  return { page, capabilities };
}
