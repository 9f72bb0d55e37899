/**
 * Campaign files. Invariant: a loaded campaign satisfies the campaign schema; the file's fields replace those of the preset, overrides replace the file's,
 * and every path is absolute. Errors are one line per problem, with the file's line, the field, its value and what is allowed. A campaign is sent to
 * workers in a form without paths of this machine.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { give, placeOf, placesIn } from '../store/given';
import { digest } from '../store/hash';
import { openStore } from '../store/open-store';
import type { Campaign, Stage } from '../domain/campaign';
import { modelsWithout } from '../domain/endpoints';
import { type Given, type Kind, kindOf, type KindSpec } from '../domain/kinds';
import type { Place } from '../domain/places';
import { presetNames, presets } from '../domain/presets';
import { baseModelId, hashOf } from '../policy/base-model';
import { baseFolder, hubId } from '../policy/hub';
import { pluginPath, withPlugins } from '../plugins';
import type { Registry } from '../registry';
import { campaignFileSchema, campaignJsonSchema, openJsonSchema, partsOf, targetSchema } from './campaign-schema';
import { InputError, messageOf, UserError } from './errors';
import { type Fields, InputFile } from './input';
import { type Home, pythonPath } from './project';
import { findRemoved } from './removed-fields';

export interface CampaignOverrides {
  name?: string;
  seed?: number;
  trainingSeed?: number;
}

const presetSchema = z.looseObject({ preset: z.enum(presetNames).default('paper') });

/**
 * Reads, completes and checks a campaign file. Relative paths (of the model, and options that are paths) count from the file's folder,
 * which is also a process target's working directory if it names none. An override of a seed alone appends it to the name, so that
 * runs of one file with several seeds stand side by side.
 * @throws InputError
 */
export function loadCampaign(o: { file: string; overrides?: CampaignOverrides }): Campaign {
  const { input, folder, plugins, kinds } = openFile(o.file);
  const { preset, ...own } = input.check(presetSchema);
  const fields = merge(merge(presets[preset], own), renamed(own, o.overrides ?? {}));
  const campaign = { ...input.check(campaignFileSchema(kinds), fields), plugins };
  for (const { options, name, path } of pathsIn(campaign, kinds)) options[name] = resolve(folder, path);
  const { baseModel } = campaign;
  return { ...campaign, baseModel: { ...baseModel, ...(baseModel.path && { path: resolve(folder, baseModel.path) }) } };
}

/** Reads the target of a campaign file, and its plug-ins, alone. @throws InputError */
export function loadTarget(file: string): Pick<Campaign, 'target' | 'plugins'> {
  const { input, folder, plugins, kinds } = openFile(file);
  const schema = z.object({ target: targetSchema(kinds) });
  const { target } = input.check(schema, { target: input.fields['target'] });
  for (const { options, name, path } of pathOptions(target, kindOf(kinds.environments, target)))
    options[name] = resolve(folder, path);
  return { target, plugins };
}

/** Returns a campaign file, the paths of its plug-ins, and the kinds that there are with them. @throws InputError, also for removed fields. */
function openFile(file: string) {
  const input = new InputFile(file, 'campaign file', 'name a file with fields such as those of campaigns/demo.yaml');
  const removed = findRemoved(input.fields);
  if (removed.length > 0) throw input.refusal(...removed);
  const folder = dirname(resolve(file));
  const plugins: string[] = [];
  let kinds = withPlugins([]);
  for (const [n, name] of [input.fields['plugins']].flat().entries()) {
    // The schema refuses anything but a list of names.
    if (typeof name !== 'string') continue;
    try {
      plugins.push(pluginPath(name, folder));
      kinds = withPlugins(plugins);
    } catch (error) {
      const at = { path: ['plugins', n], field: `plugins[${n}]`, value: JSON.stringify(name) };
      throw input.refusal({ code: 'invalid_value', ...at, fix: messageOf(error) });
    }
  }
  return { input, folder, plugins, kinds };
}

/** `campaign schema`; for a file, the schema includes the kinds of its plug-ins. */
export const printSchema = (file?: string): string =>
  JSON.stringify(file === undefined ? openJsonSchema() : campaignJsonSchema(openFile(file).kinds), null, 2);

/** Fields of a language model that do not change its answers. */
const ENDPOINT_FIELDS = ['url', 'apiKeyEnv', 'concurrency', 'timeoutSeconds', 'price'];

/**
 * Digest of the fields that can change a campaign's results, to distinguish two campaigns of one name. `sent`: the campaign as sent to workers, which names
 * files by their contents. Fields about places, speed, spending and approvals are left out.
 */
export function configDigest(sent: Campaign): string {
  const { policyServer, rollouts, trainer, training } = sent;
  const { kind } = policyServer;
  return digest({
    ...(modelsWithout(ENDPOINT_FIELDS, sent) as Campaign),
    ...{ parts: undefined, plugins: undefined, workers: undefined, budget: undefined, approval: undefined },
    trainer: trainer.kind === 'tinker' ? { kind: trainer.kind, model: trainer.model } : undefined,
    policyServer: kind === 'vllm' ? { kind, contextTokens: policyServer.contextTokens } : { kind },
    rollouts: { ...rollouts, concurrency: undefined, maxAttempts: undefined, maxBrokenShare: undefined },
    training: { ...training, reportTo: undefined },
  });
}

/** Digest of the fields that may change under one name: budget, approvals, and the share of rollouts that may fail. */
export const termsDigest = ({ budget, approval, rollouts }: Campaign): string =>
  digest({ budget, approval, maxBrokenShare: rollouts.maxBrokenShare });

/** Returns the overrides with the name they give the campaign. Overriding the training seed by its present value changes nothing. */
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

/** An option that is a path. */
interface PathOption {
  /** The object that has it under `name`. */
  options: Fields;
  name: string;
  path: string;
  /** The files at the path that go into the store. */
  given?: Given | undefined;
}

/** Returns the options of a part that its kind calls paths. */
export const pathOptions = (spec: KindSpec, { paths, given }: Pick<Kind<unknown>, 'paths' | 'given'>): PathOption[] =>
  paths.flatMap((option) => {
    const [name = '', field] = option.split('.');
    const inner = spec[name];
    if (field === undefined)
      return typeof inner === 'string' ? [{ options: spec, name, path: inner, given: given[option] }] : [];
    const path = isFields(inner) && inner[field];
    return typeof path === 'string' ? [{ options: inner as Fields, name: field, path, given: given[option] }] : [];
  });

const pathsIn = (campaign: Campaign, registry: Registry): PathOption[] =>
  partsOf(campaign, registry).flatMap(([spec, kind]) => pathOptions(spec, kind));

/**
 * Returns the campaign as workflows get it: files that it names are in the home's store, the base model is named by its id, and files of the project by
 * their path in it. A program elsewhere keeps its path and must exist on the workers' machines. `base`: the model's id.
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
  const places = new Map<string, string | Place>();
  for (const { path, given } of pathsIn(campaign, registry)) {
    if (given === undefined || places.has(path)) continue;
    const name = basename(path);
    const files = await filesAt(path, given).catch((error: unknown) => {
      // The files are not needed before the rollouts have ended.
      if (until === 'rollouts') return undefined;
      throw new UserError('unreadable_file', 'campaign file', messageOf(error));
    });
    places.set(path, files ? await give(store, { name, files }) : name);
  }
  const { path, hub, revision } = campaign.baseModel;
  const model = path === undefined ? { hub, revision } : { path: basename(path) };
  return { ...withPlaces(campaign, places), baseModel: { ...model, id: base }, plugins: [...registry.plugins] };
}

/** The campaign with places for its paths, and for words of commands that are paths into the project. `places`: those of paths in the store. @throws UserError */
export function withPlaces(campaign: Campaign, places = new Map<string, string | Place>()): Campaign {
  const [taken] = placesIn(campaign);
  if (taken) {
    const fix = 'campaigns name their paths so; call it otherwise';
    throw new UserError('invalid_value', 'campaign file', `${JSON.stringify(taken)}: ${fix}`);
  }
  const registry = withPlugins(campaign.plugins);
  const placed = structuredClone(campaign);
  const { target } = placed;
  for (const { options, name, path } of pathsIn(placed, registry)) options[name] = places.get(path) ?? placeOf(path);
  for (const option of kindOf(registry.environments, target).runs ?? []) {
    const words = target[option];
    if (Array.isArray(words)) target[option] = words.map((word) => (typeof word === 'string' ? placeOf(word) : word));
  }
  return placed;
}

async function filesAt(path: string, given: Given): Promise<Record<string, Uint8Array | string>> {
  if (typeof given === 'function') return given(path);
  const files = (await readdir(path)).filter((file) => file.endsWith(given));
  const bodies = await Promise.all(files.map((file) => readFile(join(path, file))));
  return Object.fromEntries(files.map((file, n) => [`${basename(path)}/${file}`, bodies[n]!]));
}

/**
 * Returns the id of the base model: computed from its folder if that is on this machine, else as in the file.
 * @throws UserError if the file names another id, or none is known.
 */
export async function baseIdOf({ baseModel }: Campaign, home: Home, signal?: AbortSignal): Promise<string> {
  const path = baseFolder(baseModel);
  const id = baseModel.id ?? hubId(baseModel);
  if (!existsSync(path)) {
    if (id !== undefined) return id;
    const byPath = { field: 'baseModel.path', fix: 'correct baseModel.path, or say in baseModel.id which model it is' };
    const byName = { field: 'baseModel.hub', fix: 'give baseModel.revision as a commit, to start without the model' };
    const reason = `is ${path}, which is not on this machine`;
    const named = baseModel.hub === undefined ? byPath : byName;
    throw new InputError({ code: 'invalid_value', value: baseModel.hub ?? path, reason, ...named });
  }
  const found = await baseModelId({ python: pythonPath(), home: home.root, model: path, ...(signal && { signal }) });
  if (id === undefined || hashOf(id) === hashOf(found)) return id ?? found;
  const fix = `baseModel.path ${path} is ${found}; correct one of them`;
  throw new InputError({ code: 'invalid_value', field: 'baseModel.id', value: id, fix });
}
