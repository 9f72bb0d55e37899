/**
 * What the folder of a base model has to hold for a campaign. Invariant: names in it are read, weights are not; what a folder does not tell
 * is not held against it.
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Campaign } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { failed, passed, type Check } from './check';

const NAME = 'base model';
const MAX_HEADER_BYTES = 64 * 1024 * 1024;
const weightMapSchema = z.object({ weight_map: z.record(z.string(), z.string()) });
const matrixSchema = z.object({ shape: z.tuple([z.number(), z.number()]) });
const templatesSchema = z.object({
  chat_template: z.union([z.string(), z.array(z.object({ template: z.string() }))]).optional(),
});

export function checkModel({ baseModel, policyServer, training }: Campaign): Check {
  const { path } = baseModel;
  const get =
    policyServer.kind === 'vllm'
      ? 'put the folder of the model that vLLM serves there'
      : 'make one with `make base-model` or `make real-model`';
  const fix = `${get}, or correct baseModel.path in the campaign file`;
  if (!existsSync(path)) return failed(NAME, `there is no folder ${path}`, fix);
  const files = readdirSync(path);
  const missing = [
    ...(files.includes('config.json') ? [] : ['config.json']),
    ...(files.some((file) => /\.(safetensors|bin)$/.test(file)) ? [] : ['weights (*.safetensors)']),
    ...(files.some((file) => /^tokenizer/.test(file)) ? [] : ['a tokenizer']),
  ];
  if (missing.length > 0) return failed(NAME, `${path} lacks ${missing.join(', ')}`, fix);
  return checkModules(path, training.lora.targetModules) ?? passed(NAME, path);
}

/** A LoRA on modules that a base does not have would be refused by the trainer, once the base rollouts are spent. */
function checkModules(path: string, wanted: readonly string[]): Check | undefined {
  const modules = weightNames(path).flatMap((name) => /^(.+)\.weight$/.exec(name)?.[1] ?? []);
  const foreign = wanted.filter((one) => !modules.some((name) => `.${name}`.endsWith(`.${one}`)));
  if (modules.length === 0 || foreign.length === 0) return undefined;
  // Modules of numbered layers that are no norms.
  const own = new Set(modules.flatMap((name) => /\.\d+\.(?:.*\.)?((?!.*norm)[^.]+)$/.exec(name)?.[1] ?? []));
  return failed(
    NAME,
    `training.lora.targetModules: ${path} has no module ${foreign.join(', ')}`,
    `name modules of this base: ${[...own].sort().join(', ')}`,
  );
}

function weightNames(path: string): string[] {
  try {
    const index = join(path, 'model.safetensors.index.json');
    if (existsSync(index))
      return Object.keys(weightMapSchema.parse(JSON.parse(readFileSync(index, 'utf8'))).weight_map);
    return readdirSync(path)
      .filter((file) => file.endsWith('.safetensors'))
      .flatMap((file) => Object.keys(JSON.parse(headerOf(join(path, file))) as object));
  } catch {
    return []; // whoever loads it says what is wrong
  }
}

/** The matrices of a base model, by the module that they are the weight of; none where the folder does not tell. */
export function weightShapes(path: string): { module: string; shape: [number, number] }[] {
  try {
    return readdirSync(path)
      .filter((file) => file.endsWith('.safetensors'))
      .flatMap((file) => Object.entries(JSON.parse(headerOf(join(path, file))) as Record<string, unknown>))
      .flatMap(([name, tensor]) => {
        const { data } = matrixSchema.safeParse(tensor);
        const module = /^(.+)\.weight$/.exec(name)?.[1];
        return data && module ? [{ module, shape: data.shape }] : [];
      });
  } catch {
    return []; // whoever loads it says what is wrong
  }
}

/** The JSON at the beginning of a safetensors file, after its length in 8 bytes. */
function headerOf(file: string): string {
  const handle = openSync(file, 'r');
  try {
    const size = Buffer.alloc(8);
    readSync(handle, size, 0, 8, 0);
    const header = Buffer.alloc(Number(size.readBigUInt64LE()) % MAX_HEADER_BYTES);
    readSync(handle, header, 0, header.length, 8);
    return header.toString('utf8');
  } finally {
    closeSync(handle);
  }
}

/** Whether the base can be shown what the target says. vLLM may have been given a chat template that is not the folder's. */
export function checkTemplate(campaign: Campaign, { tools }: EnvironmentDescription): Check | undefined {
  const { path } = campaign.baseModel;
  if (campaign.policyServer.kind !== 'embedded' || !existsSync(join(path, 'config.json'))) return undefined;
  const template = templateOf(path);
  const name = 'chat template';
  const file = join(path, 'chat_template.jinja');
  if (template === undefined) return failed(name, `${path} has none`, `write ${file} (docs/models.md)`);
  if (tools.length === 0) return passed(name, 'the target has no tools to show');
  // A template can use nothing but what it names.
  return /\btools\b/.test(template)
    ? passed(name, 'shows tools')
    : failed(
        name,
        `that of ${path} does not show tools, and the target has ${tools.length}: no rollout could call one`,
        `let ${file} show them in a format that the base was trained with, or name another base (docs/models.md)`,
      );
}

function templateOf(path: string): string | undefined {
  const file = join(path, 'chat_template.jinja');
  if (existsSync(file)) return readFileSync(file, 'utf8');
  try {
    const { chat_template: found } = templatesSchema.parse(
      JSON.parse(readFileSync(join(path, 'tokenizer_config.json'), 'utf8')),
    );
    return Array.isArray(found) ? found.map(({ template }) => template).join('\n') : found;
  } catch {
    return undefined;
  }
}
