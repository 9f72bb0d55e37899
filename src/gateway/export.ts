/**
 * Writes a finished campaign into a folder that others can use: adapters, merged adapters, prompts, the router, environments, the report, a card for
 * each. Invariants: what plays is to the letter what was measured; what tells of it holds no path of this machine.
 */
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ifThere } from '../store/durable-file';
import { projectRoot } from '../store/project-root';
import { readJson, type ArtifactStore } from '../store/store';
import type { FixedPolicy, Sampling } from '../domain/rollout';
import { modelOf, readFingerprint } from '../policy/base-model';
import { type Merge, plainAdapter, partsOf } from '../policy/merge';
import { renderReport } from '../report/render';
import { type Report, reportSchema } from '../report/model';
import { fittedRouterSchema, type FittedRouter } from '../routing/router';
import { adapterCard, type CardFacts, folderCard } from './cards';
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
  /** By which others know the base model. */
  baseName: string;
  license: string;
  /** Of this machine: what begins with one of them is no business of others. */
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
  for (const { name, policy } of all) {
    const { prompt } = policy;
    const parts = partsOf(policy.adapters);
    const merged = parts.length > 0 && !plainAdapter(parts) ? `sums/${fileName(name)}` : undefined;
    if (merged) await putAdapter(await store.folder(await merge(parts)), join(folder, merged), baseName);
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
    await putAdapter(await store.folder(ref), join(folder, name), baseName);
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
  const shown = reportSchema.parse(JSON.parse(hider(o.paths)(JSON.stringify(published))));
  const pages = renderReport({ report: shown });
  await put('report.json', pages.json);
  await put('report.html', pages.html);
  const facts: CardFacts = {
    report: shown,
    router: exported,
    license,
    rank: await rankOf(folder, written),
  };
  for (const option of written)
    for (const card of foldersOf(option)) await put(`${card}/README.md`, adapterCard(option.name, facts));
  await put('README.md', folderCard(facts));
}

/** The folder that is the option's own: of a sum the merged one. */
const foldersOf = ({ adapters, merged, prompt }: ExportedOption): string[] =>
  prompt ? [] : merged ? [merged] : adapters.length === 1 ? [adapters[0]!.folder] : [];

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

/** A PEFT folder, or a gate over several, whose base model is called by its public name. */
async function putAdapter(from: string, to: string, baseName: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await putAdapter(source, target, baseName);
    else if (entry.name === 'adapter_config.json') {
      const config = JSON.parse(await readFile(source, 'utf8')) as object;
      await writeFile(target, json({ ...config, base_model_name_or_path: baseName }));
    } else if (/\.json$/.test(entry.name)) {
      const value = JSON.parse(await readFile(source, 'utf8')) as object;
      await writeFile(target, json('base_model' in value ? { ...value, base_model: baseName } : value));
    } else if (entry.name !== 'README.md') {
      await cp(source, target, { mode: 0 });
    }
  }
}

const PACKAGE_FILES = [
  ...['README.md', '__init__.py', 'pyproject.toml', 'taskset.py'].map((file) => join('verifiers', file)),
  'process.py',
];
/** Stands in their files for the environment's name. */
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

/** The largest, which a server has to be started for; undefined without adapters. */
async function rankOf(folder: string, options: readonly ExportedOption[]): Promise<number | undefined> {
  const folders = options.flatMap(({ adapters, merged }) => [
    ...adapters.map((one) => one.folder),
    ...(merged ? [merged] : []),
  ]);
  const ranks = await Promise.all(
    [...new Set(folders)].map(async (name) => {
      const text = await ifThere(readFile(join(folder, name, 'adapter_config.json'), 'utf8'));
      return text === undefined ? [] : [Number((JSON.parse(text) as { r?: unknown }).r)];
    }),
  );
  return ranks.flat().length > 0 ? Math.max(...ranks.flat()) : undefined;
}

/** Puts `(path)` in the place of what begins with one of these folders. */
function hider(paths: readonly string[]): (text: string) => string {
  const known = [...new Set(paths)].filter((path) => path.length > 1).sort((a, b) => b.length - a.length);
  if (known.length === 0) return (text) => text;
  const escaped = known.map((path) => path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  // A letter before it is of a longer path, but for that of an escape: of JSON the texts are `"a line\n/home/..."`.
  const begins = String.raw`(?:(?<![\w.-])|(?<=\\[bfnrt]))`;
  const pattern = new RegExp(`${begins}(?:${escaped.join('|')})(?![\\w-])[\\w./@+-]*`, 'g');
  return (text) => text.replace(pattern, '(path)');
}
