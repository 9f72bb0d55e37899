/** Commands on labels: `campaign labels` keeps what people labeled and holds it against the passes; `campaign select` is the selection over published label files. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readLabelFiles } from '../../analyst/given';
import { readJson } from '../../artifacts/store';
import { openStore } from '../../artifacts/open-store';
import { selectionRuleSchema } from '../../domain/campaign';
import { type LabelPass, labelPassSchema, type Selection } from '../../domain/capability';
import { plainText } from '../../domain/plain-text';
import { selectCapabilities } from '../../domain/selection';
import { terminalText } from '../../report/terminal';
import { alignColumns } from '../../terminal';
import { compare, comparisonBlocks, readHumanLabels } from './people';
import { keepImported, passesIn, type Place, placeOf, readAnalysis, readImported } from './folder';
import { UserError } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { findReport } from '../reports';

export interface LabelsOptions extends CommonOptions {
  name?: string;
}

/** @returns what is printed. */
export async function importLabels(file: string, options: LabelsOptions): Promise<string> {
  const { place, passes } = await openPasses(options);
  const labels = readHumanLabels(file, passes);
  await keepImported(place, labels);
  const page = existsSync(place.json) ? `, or see ${place.html}` : '';
  return plainText(
    `${labels.length} labels by people kept: ${place.humanLabels}\n` +
      `compare them with \`campaign labels compare --name ${place.name}\`${page}`,
  );
}

/** Of the file, else of those that were imported. */
export async function compareLabels(file: string | undefined, options: LabelsOptions): Promise<string> {
  const { place, passes } = await openPasses(options);
  const labels = file === undefined ? readImported(place) : readHumanLabels(file, passes);
  if (!labels)
    throw new UserError(
      `no labels by people are kept for ${place.name}; give a file, or import one with \`campaign labels import\``,
    );
  const comparison = compare(labels, passes);
  if (options.json) return JSON.stringify(comparison, null, 2);
  return terminalText(comparisonBlocks(comparison), process.stdout.columns);
}

/**
 * The labeling passes of an analysis or a campaign of the home, by default of the newest analysis. Trajectories are called as people call them:
 * conversations as in the user's files, rollouts by their keys. @throws UserError
 */
async function openPasses(options: LabelsOptions): Promise<{ place: Place; passes: LabelPass[] }> {
  const home = homeOf(options);
  const name = options.name ?? newestAnalysis(home.root);
  if (name === undefined)
    throw new UserError(`no analysis in ${home.root}; make one with \`campaign analyse FILE\`, or give --name`);
  const place = placeOf(home, name);
  const analysis = readAnalysis(place);
  const passes = analysis ? await passesIn(place, analysis) : await passesOfCampaign(place);
  if (passes.length === 0) throw new UserError(`${name} has no labeling pass to compare with: nothing was labeled`);
  return { place, passes };
}

function newestAnalysis(root: string): string | undefined {
  const files = (existsSync(root) ? readdirSync(root) : [])
    .map((name) => ({ name, file: join(root, name, 'analysis.json') }))
    .filter(({ file }) => existsSync(file));
  const changed = ({ file }: (typeof files)[number]) => statSync(file).mtimeMs;
  return files.sort((a, b) => changed(b) - changed(a))[0]?.name;
}

/** A selection is made of rollouts, candidates and the passes. */
async function passesOfCampaign({ root, name, folder }: Place): Promise<LabelPass[]> {
  const [selection] = findReport({ home: root, name })?.report.selection?.from ?? [];
  if (!selection)
    throw new UserError(`${folder} holds neither an analysis nor a report with a selection; give another --name`);
  const store = await openStore(root);
  const { inputs } = await store.provenance(selection);
  return Promise.all(inputs.slice(2).map((ref) => readJson(store, ref, labelPassSchema)));
}

export interface SelectOptions extends Partial<Record<'rho' | 'delta' | 'votes', number>> {
  labels: string;
  json?: boolean;
}

/** `campaign select`. */
export async function select({ labels, json, ...given }: SelectOptions): Promise<string> {
  const usual = selectionRuleSchema.parse({});
  const { rho = usual.rho, delta = usual.delta, votes = usual.votes } = given;
  const files = await readLabelFiles({ folder: labels, field: '--labels' }).catch((error: Error) => {
    const [cause = '', ...others] = error.message.split('\n');
    throw new UserError(cause, others);
  });
  const passes = files.map(({ pass }) => pass);
  const selection = selectCapabilities({ passes, rule: { rho, delta, votes, evidence: usual.evidence } });
  return json ? JSON.stringify(selection, null, 2) : table(selection);
}

function table({ capabilities, passes, reason }: Selection): string {
  const figure = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(3)} ± ${std.toFixed(3)}`;
  const rows = capabilities.map((one) => [
    one.name,
    figure(one.coverage),
    figure(one.delta),
    `${one.votes}/${one.passes}`,
    one.selected ? 'yes' : 'no',
  ]);
  const selected = capabilities.filter((one) => one.selected).length;
  const summary = `${selected} of ${capabilities.length} selected, from ${passes} passes`;
  const table = alignColumns([['capability', 'Cov', 'Delta', 'votes', 'selected'], ...rows]);
  return [...table, '', [summary, ...(reason === undefined ? [] : [reason])].join(': ')].join('\n');
}
