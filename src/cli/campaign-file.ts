/**
 * Campaign files. Invariant: what comes out satisfies the campaign schema, with the preset under the file's fields, the overrides over
 * them and every path absolute; what does not is one line per problem, with the file's line, the field, its value and what is allowed. A campaign
 * travels to workers in a form in which no path of this machine is left.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type Document, isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { give, placeOf, placesIn } from '../store/given';
import { digest } from '../store/hash';
import { openStore } from '../store/open-store';
import type { Campaign, Stage } from '../domain/campaign';
import { modelsWithout } from '../domain/endpoints';
import { type Given, type Identity, type Kind, kindOf, type KindSpec } from '../domain/kinds';
import type { Place } from '../domain/places';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../domain/plain-text';
import { type PresetName, presetNames, presets } from '../domain/presets';
import { LAST_STAGE, stages } from '../domain/work';
import { baseModelId, hashOf } from '../policy/base-model';
import { pluginPath, withPlugins } from '../plugins';
import { type Registry, registry as allKinds } from '../registry';
import { campaignFileSchema, campaignJsonSchema, findRemoved, openJsonSchema, pluggable } from './campaign-schema';
import { InputError, messageOf, UserError } from './errors';
import { dotted, type FieldProblem, parseFields, readText } from './input';
import { type Home, isReservedName, pythonPath } from './project';

type Fields = Record<string, unknown>;

export interface CampaignOverrides {
  name?: string;
  seed?: number;
  trainingSeed?: number;
}

/**
 * Reads, completes and checks a campaign file. Relative paths (of the model, and options that are paths) count from the file's folder,
 * which is also a process target's working directory if it names none. An override of a seed alone appends it to the name, so that
 * runs of one file with several seeds stand side by side.
 * @throws InputError
 */
export function loadCampaign(o: { file: string; overrides?: CampaignOverrides; registry?: Registry }): Campaign {
  const { file, overrides = {}, registry = allKinds } = o;
  const { fields, lineOf } = readYaml(file);
  const { preset = 'paper', ...own } = fields;
  const refuse = (problems: FieldProblem[]): never => {
    const [first, ...others] = problems.map((problem) => ({ ...problem, where: `${file}:${lineOf(problem.path)}` }));
    throw new InputError(first!, ...others);
  };
  const invalid = (field: string, value: unknown, fix: string): FieldProblem[] => [
    { code: 'invalid_value', path: [field], field, value: JSON.stringify(value), fix },
  ];
  if (!presetNames.includes(preset as PresetName))
    refuse(invalid('preset', preset, `allowed: ${presetNames.join(', ')}`));
  const gone = findRemoved(own);
  if (gone.length > 0) refuse(gone);
  const merged = merge(merge(presets[preset as PresetName], own), renamed(own, overrides)) as Fields;
  const folder = dirname(resolve(file));
  const { plugins, kinds, problems: missing } = loadPlugins(own['plugins'], folder, registry);
  if (missing) return refuse(missing);
  const { data: campaign, problems } = parseFields(campaignFileSchema(kinds), merged);
  if (problems) return refuse(problems.map(withPluginHint));
  if (isReservedName(campaign.name))
    return refuse(invalid('name', campaign.name, 'the home keeps files of its own under that name; choose another'));
  return withPaths({ campaign: { ...campaign, plugins }, registry: kinds, change: (path) => resolve(folder, path) });
}

type LoadedPlugins =
  | { plugins: string[]; kinds: Registry; problems?: never }
  | { plugins?: never; kinds?: never; problems: FieldProblem[] };

/** Returns the paths of a file's plug-ins, and the kinds that there are with them. What is no list of names is left to the schema. */
function loadPlugins(named: unknown, folder: string, registry: Registry): LoadedPlugins {
  const names = Array.isArray(named) ? named.filter((name) => typeof name === 'string') : [];
  let [plugins, kinds]: [string[], Registry] = [[], registry];
  for (const [n, name] of names.entries()) {
    try {
      plugins = [...plugins, pluginPath(name, folder)];
      kinds = withPlugins(plugins, registry);
    } catch (error) {
      const at = { path: ['plugins', n], field: `plugins[${n}]`, value: JSON.stringify(name) };
      return { problems: [{ code: 'invalid_value', ...at, fix: messageOf(error) }] };
    }
  }
  return { plugins, kinds };
}

/** Says of a kind that is not known that a plug-in could add it. */
const withPluginHint = (problem: FieldProblem): FieldProblem => {
  const [part, field, ...more] = problem.path;
  const isKind = field === 'kind' && more.length === 0 && String(part) in pluggable;
  return isKind ? { ...problem, fix: `${problem.fix}; a plug-in can add kinds: plugins: [PACKAGE or PATH]` } : problem;
};

/** `campaign schema`: of a file, with the kinds of its plug-ins. */
export function printSchema(file?: string): string {
  if (file === undefined) return JSON.stringify(openJsonSchema(), null, 2);
  const { fields } = readYaml(file);
  const { kinds, problems } = loadPlugins(fields['plugins'], dirname(resolve(file)), allKinds);
  if (problems) throw new InputError({ ...problems[0]!, where: `${file}:` });
  return JSON.stringify(campaignJsonSchema(kinds), null, 2);
}

/** The first stage whose results depend on a field; null of what no result depends on. */
const usedFrom: Record<keyof Campaign, Stage | null> = {
  parts: null,
  // Each part says of which plug-in it is.
  plugins: null,
  name: 'rollouts',
  seed: 'rollouts',
  target: 'rollouts',
  baseModel: 'rollouts',
  policyServer: 'rollouts',
  rollouts: 'rollouts',
  selection: 'selection',
  analyst: 'selection',
  synthesizer: 'capabilities',
  calibration: 'capabilities',
  training: 'capabilities',
  trainingSeed: 'capabilities',
  trainer: 'capabilities',
  validation: 'capabilities',
  arms: 'capabilities',
  router: 'router',
  evaluation: 'evaluation',
  workers: null,
  budget: null,
  approval: null,
};

/** A model is what it is asked, not where and at which pace. */
const ENDPOINT_FIELDS = ['url', 'apiKeyEnv', 'concurrency', 'timeoutSeconds', 'price'];

/** By stage: what a campaign that ends after it depends on. A part that can't be opened leaves out its stage and those after it. */
export type ConfigDigests = Partial<Record<Stage, string>>;

/**
 * Digests of what a campaign file says that can change what comes out, for telling two campaigns of one name apart: one that has ended before it
 * used a part may go on with another one. Paths count relative to the file's folder, so that a checkout can be moved; what analyst and synthesizer
 * read from files counts by its contents.
 * @throws UserError if one of them can't be opened, and the campaign comes to it.
 */
export async function configDigests(o: {
  campaign: Campaign;
  file: string;
  until?: Stage | undefined;
  registry?: Registry;
}): Promise<ConfigDigests> {
  const { campaign, file, until = LAST_STAGE, registry = withPlugins(o.campaign.plugins) } = o;
  const { analyst, synthesizer } = campaign;
  const folder = dirname(resolve(file));
  const portable = withPaths({ campaign, registry, change: (path) => relative(folder, path) });
  const fields = { ...(modelsWithout(ENDPOINT_FIELDS, portable) as Campaign), ...withoutMeans(campaign) };
  const identities: Partial<Record<keyof Campaign, () => Promise<Identity>>> = {
    analyst: async () => (await kindOf(registry.analysts, analyst).open(analyst, undefined)).identity,
    synthesizer: async () => (await kindOf(registry.synthesizers, synthesizer).open(synthesizer, undefined)).identity,
  };
  // The held-out tasks are not among those that are rolled out.
  const used: Record<string, unknown> = { heldOut: campaign.validation.targetTasks };
  const digests: ConfigDigests = {};
  try {
    for (const stage of stages) {
      for (const [field, value] of Object.entries(fields) as [keyof Campaign, unknown][])
        if (usedFrom[field] === stage) used[field] = (await identities[field]?.()) ?? value;
      digests[stage] = digest(used);
    }
  } catch (error) {
    if (digests[until] === undefined) throw new UserError(messageOf(error));
  }
  return digests;
}

/**
 * Where and how fast it is worked, and how patiently, is in the key of no result: a policy server on another host, or more at once, goes on with
 * the same campaign.
 */
function withoutMeans({ policyServer, rollouts, trainer, training }: Campaign): object {
  const { kind } = policyServer;
  return {
    trainer: trainer.kind === 'tinker' ? { kind: trainer.kind, model: trainer.model } : undefined,
    policyServer: kind === 'vllm' ? { kind, contextTokens: policyServer.contextTokens } : { kind },
    rollouts: { ...rollouts, concurrency: undefined, maxAttempts: undefined, maxBrokenShare: undefined },
    training: { ...training, reportTo: undefined },
  };
}

/** Digest of what may be changed under one name: what may be spent, what waits for approval, and how many rollouts may break. */
export const termsDigest = ({
  budget,
  approval,
  rollouts,
}: Pick<Campaign, 'budget' | 'approval' | 'rollouts'>): string =>
  digest({ budget, approval, maxBrokenShare: rollouts.maxBrokenShare });

function readYaml(file: string): { fields: Fields; lineOf: (path: readonly PropertyKey[]) => number } {
  const unreadable = (problem: string, fix: string, line?: number) => {
    const reason = `${file} ${problem}`;
    const where = line === undefined ? {} : { where: `${file}:${line}` };
    return new InputError({ code: 'unreadable_file', field: 'campaign file', value: file, reason, fix, ...where });
  };
  let text: string;
  try {
    text = readText(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw unreadable(
      code === 'ENOENT' ? 'does not exist' : code === 'EISDIR' ? 'is a folder' : `cannot be read: ${messageOf(error)}`,
      'name a campaign file, such as campaigns/demo.yaml',
    );
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const broken = document.errors[0];
  if (broken) throw unreadable('is not YAML', messageOf(broken), lines.linePos(broken.pos[0]).line);
  if (!isMap(document.contents))
    throw unreadable('is not a map', 'write fields (name, target, baseModel, ...), like campaigns/demo.yaml', 1);
  const fields = document.toJS() as Fields;
  const half = findHalfCharacter(fields);
  if (half)
    throw new InputError({
      ...{ code: 'invalid_value', field: dotted(half), reason: HALF_CHARACTER_PROBLEM },
      where: `${file}:${lineOf({ document, lines, path: half })}`,
    });
  return { fields, lineOf: (path) => lineOf({ document, lines, path }) };
}

/** Line of the deepest part of the path that the file holds: its key where there is one. */
function lineOf(at: { document: Document; lines: LineCounter; path: readonly PropertyKey[] }): number {
  for (let depth = at.path.length; depth > 0; depth--) {
    const parent = depth === 1 ? at.document.contents : at.document.getIn(at.path.slice(0, depth - 1), true);
    const name = at.path[depth - 1];
    const key = isMap(parent)
      ? parent.items.find(({ key }) => isScalar(key) && key.value === name)?.key
      : at.document.getIn(at.path.slice(0, depth), true);
    const range = (key as { range?: [number, number, number] } | undefined)?.range;
    if (range) return at.lines.linePos(range[0]).line;
  }
  return 1;
}

/** What the overrides come to. The training seed that a campaign has anyway changes nothing, its name neither. */
function renamed(fields: Fields, { name, seed, trainingSeed }: CampaignOverrides): CampaignOverrides {
  const own = fields['seed'] ?? 1;
  const isOther = trainingSeed !== undefined && trainingSeed !== (fields['trainingSeed'] ?? seed ?? own);
  const suffix = (seed !== undefined && seed !== own ? `-${seed}` : '') + (isOther ? `-s${trainingSeed}` : '');
  return {
    ...(suffix !== '' && typeof fields['name'] === 'string' && { name: `${fields['name']}${suffix}` }),
    ...(seed !== undefined && { seed }),
    ...(isOther && { trainingSeed }),
    ...(name !== undefined && { name }),
  };
}

/** Lays `over` on `under`, field by field; lists, scalars and objects of another `kind` are replaced whole. */
function merge(under: unknown, over: unknown): unknown {
  if (over === undefined) return under;
  if (!isFields(under) || !isFields(over)) return over;
  if (over['kind'] !== undefined && over['kind'] !== under['kind']) return over;
  const merged: Fields = { ...under };
  for (const [key, value] of Object.entries(over)) merged[key] = merge(under[key], value);
  return merged;
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

type PathChange = (path: string, given?: Given) => string | Place;

/** The campaign with every path in it changed: the model's, and the options of the parts that their kinds call paths. */
function withPaths(o: { campaign: Campaign; registry: Registry; change: PathChange }): Campaign {
  const { campaign, registry, change } = o;
  const { target, analyst, synthesizer, router, arms, baseModel } = campaign;
  const changed = <Spec extends KindSpec>(
    spec: Spec,
    kinds: readonly Pick<Kind<unknown>, 'kind' | 'paths' | 'given'>[],
  ): Spec => changePaths(spec, kindOf(kinds, spec), change);
  return {
    ...campaign,
    target: changed(target, registry.environments),
    analyst: changed(analyst, registry.analysts),
    synthesizer: changed(synthesizer, registry.synthesizers),
    router: changed(router, registry.routers),
    arms: arms.map((arm) => changed(arm, registry.arms)),
    baseModel: { ...baseModel, path: change(baseModel.path) as string },
  };
}

export function changePaths<Spec extends KindSpec>(
  spec: Spec,
  { paths, given: files }: Pick<Kind<unknown>, 'paths' | 'given'>,
  change: PathChange,
): Spec {
  const changed: KindSpec = { ...spec };
  for (const path of paths) {
    const [option = '', field] = path.split('.');
    const value = changed[option];
    if (field === undefined) {
      if (typeof value === 'string') changed[option] = change(value, files[path]);
    } else if (isFields(value) && typeof value[field] === 'string')
      changed[option] = { ...value, [field]: change(value[field], files[path]) };
  }
  return changed as Spec;
}

/**
 * The campaign as workflows are given it: what it names by path is in the home's store, the base model goes by its id, and what comes with the
 * project is named as such. A program elsewhere keeps its path: it has to be there on the workers' machines. `base`: the model's id.
 * @throws UserError
 */
export async function travelling(o: {
  campaign: Campaign;
  home: Home;
  base: string;
  until?: Stage | undefined;
}): Promise<Campaign> {
  const { campaign, home, base, until } = o;
  const store = await openStore(home.root);
  const registry = withPlugins(campaign.plugins);
  const wanted = new Map<string, Given>();
  withPaths({ campaign, registry, change: (path, given) => (given !== undefined && wanted.set(path, given), path) });
  const places = new Map<string, string | Place>();
  for (const [path, given] of wanted) {
    const name = basename(path);
    const files = await filesAt(path, given).catch((error: unknown) => {
      // Nothing of it is looked at before the rollouts have ended.
      if (until === 'rollouts') return undefined;
      throw new UserError(messageOf(error));
    });
    places.set(path, files ? await give(store, { name, files }) : name);
  }
  const named = { ...campaign, baseModel: { path: basename(campaign.baseModel.path), id: base } };
  const placed = withPlaces(named, (path) => places.get(path) ?? placeOf(path));
  return { ...placed, plugins: [...registry.plugins] };
}

/** The campaign with places for its paths, and for words of commands that are paths into the project. @throws UserError */
export function withPlaces(campaign: Campaign, change: (path: string) => string | Place = placeOf): Campaign {
  const [taken] = placesIn(campaign);
  if (taken) throw new UserError(`${JSON.stringify(taken)}: campaigns name their paths so; call it otherwise`);
  const registry = withPlugins(campaign.plugins);
  const placed = withPaths({ campaign, registry, change });
  const { runs = [] } = kindOf(registry.environments, campaign.target);
  const commands = runs.flatMap((option) => {
    const words = campaign.target[option];
    return Array.isArray(words)
      ? [[option, words.map((word) => (typeof word === 'string' ? placeOf(word) : word))]]
      : [];
  });
  return { ...placed, target: { ...placed.target, ...Object.fromEntries(commands) } };
}

async function filesAt(path: string, given: Given): Promise<Record<string, Uint8Array | string>> {
  if (typeof given === 'function') return given(path);
  const files = (await readdir(path)).filter((file) => file.endsWith(given));
  const bodies = await Promise.all(files.map((file) => readFile(join(path, file))));
  return Object.fromEntries(files.map((file, n) => [`${basename(path)}/${file}`, bodies[n]!]));
}

/**
 * Which base model it is: by its folder, where that is on this machine, else as the file says.
 * @throws UserError where the file says another one, or does not say.
 */
export async function baseIdOf({ baseModel }: Campaign, home: Home, signal?: AbortSignal): Promise<string> {
  const { path, id } = baseModel;
  if (!existsSync(path)) {
    if (id !== undefined) return id;
    const fix = 'correct baseModel.path, or say in baseModel.id which model it is';
    const reason = `is ${path}, which is not on this machine`;
    throw new InputError({ code: 'invalid_value', field: 'baseModel.path', value: path, reason, fix });
  }
  const found = await baseModelId({ python: pythonPath(), home: home.root, model: path, ...(signal && { signal }) });
  if (id === undefined || hashOf(id) === hashOf(found)) return id ?? found;
  const fix = `baseModel.path ${path} is ${found}; correct one of them`;
  throw new InputError({ code: 'invalid_value', field: 'baseModel.id', value: id, fix });
}
