/**
 * Writes a finished campaign into a folder that others can use: adapters, merged adapters, prompts, the router, environments, the report, a card. Invariants: the policies are exactly those that were measured; report and card hold no path of this machine.
 */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { projectRoot } from '../store/project-root';
import { readJson, type ArtifactStore } from '../store/store';
import type { FixedPolicy, Sampling } from '../domain/rollout';
import { modelOf, readFingerprint } from '../policy/base-model';
import { type Merge, plainAdapter, partsOf } from '../policy/merge';
import { renderReport } from '../report/render';
import { parseReport, type Report } from '../report/model';
import { fittedRouterSchema, type FittedRouter } from '../routing/router';
import { folderCard } from './cards';
import { type ExportedOption, type ExportedRouter, FINGERPRINT_FILE, ROUTER_FILE } from './folder';
import { routerIn } from './served';
import { replaceFolder } from './whole-folder';

export interface ExportOptions {
  store: ArtifactStore;
  report: Report;
  baselines?: FittedRouter['options'];
  sampling?: Sampling | undefined;
  merge: Merge;
  folder: string;
  /** Public name of the base model. */
  baseName: string;
  license: string;
  /** Private paths of this machine; texts that begin with one of them are hidden. */
  paths: readonly string[];
}

/** Throws BadInput where the folder holds something else, or the campaign has no router. */
export const exportCampaign = (o: ExportOptions): Promise<void> =>
  replaceFolder({
    folder: o.folder,
    mark: ROUTER_FILE,
    write: (made) => write(made, o),
  });

async function write(folder: string, o: ExportOptions): Promise<void> {
  const { store, report, baselines = [], sampling, merge, baseName, license } = o;
  const put = async (name: string, text: string) => {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  };
  const router = await readJson(store, routerIn(report), fittedRouterSchema);
  const all = [...router.options, ...baselines];
  const named = namesOf(all);
  const written: ExportedOption[] = [];
  const ranks: number[] = [];
  for (const { name, policy } of all) {
    const { prompt } = policy;
    const parts = partsOf(policy.adapters);
    const merged = parts.length > 0 && !plainAdapter(parts) ? `sums/${fileName(name)}` : undefined;
    if (merged) ranks.push(await putAdapter(await store.folder(await merge(parts)), join(folder, merged), baseName));
    const file = `prompts/${fileName(name)}.txt`;
    if (prompt) await put(file, prompt.text);
    written.push({
      name,
      adapters: policy.adapters.map(({ ref, weight }) => ({ folder: named.get(ref.sha256)!, weight })),
      ...(merged && { merged }),
      ...(prompt && { prompt: { file, place: prompt.place } }),
    });
  }
  for (const [sha, name] of named) {
    const ref = all.flatMap(({ policy }) => policy.adapters).find((one) => one.ref.sha256 === sha)!.ref;
    ranks.push(await putAdapter(await store.folder(ref), join(folder, name), baseName));
  }
  const base = { id: router.options[0]!.policy.base, name: baseName };
  const chosen = router.options.length;
  const lists = { options: written.slice(0, chosen), baselines: written.slice(chosen) };
  const exported: ExportedRouter = {
    format: 1,
    campaign: report.campaign.name,
    base,
    ...(sampling && { sampling }),
    ...router,
    ...lists,
  };
  await put(ROUTER_FILE, json(exported));
  const fingerprint = await readFingerprint(store, modelOf(base.id));
  if (fingerprint) await put(FINGERPRINT_FILE, json(fingerprint));
  await putEnvironments(o, put);
  // The configuration names servers and programs of this machine.
  const published = { ...report, campaign: { ...report.campaign, config: undefined } };
  const shown = parseReport(hider(o.paths)(JSON.stringify(published)));
  const pages = renderReport({ report: shown });
  await put('report.json', pages.json);
  await put('report.html', pages.html);
  await put('README.md', folderCard({ report: shown, router: exported, license, rank: Math.max(0, ...ranks) }));
}

/** The folder of each adapter by its content: named as the option that is it alone, else by its hash. */
function namesOf(options: FittedRouter['options']): Map<string, string> {
  const names = new Map<string, string>();
  const alone = ({ adapters, prompt }: FixedPolicy) => adapters.length === 1 && !prompt;
  const first = options.filter(({ policy }) => alone(policy));
  for (const { name, policy } of first) names.set(policy.adapters[0]!.ref.sha256, `adapters/${fileName(name)}`);
  for (const { ref } of options.flatMap(({ policy }) => policy.adapters))
    if (!names.has(ref.sha256)) names.set(ref.sha256, `adapters/a-${ref.sha256.slice(0, 12)}`);
  return names;
}

const fileName = (name: string): string => name.replace(/[^\w+-]/g, '_');
const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Copies a PEFT folder without its card; the base model is called by its public name. Returns the adapter's rank. */
async function putAdapter(from: string, to: string, baseName: string): Promise<number> {
  const own = ['adapter_config.json', 'README.md'];
  await mkdir(to, { recursive: true });
  await cp(from, to, { recursive: true, filter: (path) => !own.includes(basename(path)) });
  const config = JSON.parse(await readFile(join(from, 'adapter_config.json'), 'utf8')) as { r: number };
  await writeFile(join(to, 'adapter_config.json'), json({ ...config, base_model_name_or_path: baseName }));
  return config.r;
}

const PACKAGE_FILES = [
  ...['README.md', '__init__.py', 'pyproject.toml', 'taskset.py'].map((file) => join('verifiers', file)),
  'process.py',
];
/** Placeholder for the environment's name in the files. */
const NAME = /synthesized_environment/g;

export async function putPackage(
  { name, module }: { name: string; module: string },
  put: (name: string, text: string) => Promise<void>,
): Promise<void> {
  const folder = `verifiers/${name}`;
  for (const file of PACKAGE_FILES) {
    const text = await readFile(join(projectRoot, 'bridges', 'exported', file), 'utf8');
    await put(`${folder}/${basename(file)}`, text.replace(NAME, name));
  }
  await put(`${folder}/environment.js`, module);
}

/** Writes the last version of each capability's environment, as a file and as a package. */
async function putEnvironments(
  { store, report }: ExportOptions,
  put: (name: string, text: string) => Promise<void>,
): Promise<void> {
  for (const { name, rounds } of report.capabilities ?? []) {
    const module = rounds?.at(-1)?.module;
    if (!module) continue;
    const text = (await store.read(module)).toString('utf8');
    await put(`environments/${fileName(name)}.js`, text);
    await putPackage({ name: fileName(name), module: text }, put);
  }
}

/** Returns a function that replaces paths below these folders by `(path)`. */
function hider(paths: readonly string[]): (text: string) => string {
  const known = [...new Set(paths)].filter((path) => path.length > 1).sort((a, b) => b.length - a.length);
  if (known.length === 0) return (text) => text;
  const escaped = known.map((path) => path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  // A letter before it is of a longer path, but for that of an escape: of JSON the texts are `"a line\n/home/..."`.
  const begins = String.raw`(?:(?<![\w.-])|(?<=\\[bfnrt]))`;
  const pattern = new RegExp(`${begins}(?:${escaped.join('|')})(?![\\w-])[\\w./@+-]*`, 'g');
  return (text) => text.replace(pattern, '(path)');
}
