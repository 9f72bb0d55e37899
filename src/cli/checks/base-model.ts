/** What the folder of a base model has to hold for a campaign. Invariant: its weights are not read. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import type { Campaign } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { loraModules } from '../../policy/base-model';
import { messageOf } from '../errors';
import { failed, passed, type Check } from './check';

const NAME = 'base model';
const templatesSchema = z.object({
  chat_template: z.union([z.string(), z.array(z.object({ template: z.string() }))]).optional(),
});

/** Without a Python that runs, files alone are looked at. */
export async function checkModel(campaign: Campaign, python?: string): Promise<Check> {
  const { baseModel, policyServer } = campaign;
  const { path } = baseModel;
  const get =
    policyServer.kind === 'vllm'
      ? 'put the folder of the model that vLLM serves there'
      : 'make one with `make base-model` or `make real-model`';
  const fix = `${get}, or correct baseModel.path in the campaign file`;
  if (!existsSync(path)) return failed(NAME, `there is no folder ${path}`, hubFix(path) ?? fix);
  const files = readdirSync(path);
  const missing = [
    ...(files.includes('config.json') ? [] : ['config.json']),
    ...(files.some((file) => /\.(safetensors|bin)$/.test(file)) ? [] : ['weights (*.safetensors)']),
    ...(files.some((file) => /^tokenizer/.test(file)) ? [] : ['a tokenizer']),
  ];
  if (missing.length > 0) return failed(NAME, `${path} lacks ${missing.join(', ')}`, fix);
  return python === undefined ? passed(NAME, path) : checkModules(python, campaign);
}

/** What is no path, but a model's name on the Hugging Face hub: its first part would be a folder beside the campaign file. */
function hubFix(path: string): string | undefined {
  const [owner, model] = [basename(dirname(path)), basename(path)];
  if (existsSync(dirname(path)) || !existsSync(dirname(dirname(path))) || owner === 'models') return undefined;
  return (
    `if ${owner}/${model} is its name on the Hugging Face hub, download it with ` +
    `\`.venv/bin/hf download ${owner}/${model} --local-dir models/${model}\` and name that folder in baseModel.path`
  );
}

/** A LoRA on modules that a base does not have would be refused by the trainer, once the base rollouts are spent. */
async function checkModules(python: string, { baseModel, training }: Campaign): Promise<Check> {
  const { path } = baseModel;
  const { targetModules } = training.lora;
  try {
    const { unknown, choices } = await loraModules({ python, model: path, targetModules });
    return unknown.length === 0
      ? passed(NAME, path)
      : failed(
          NAME,
          `training.lora.targetModules: ${path} has no module ${unknown.join(', ')} that a LoRA can train`,
          `name modules of this base: ${choices.join(', ')}`,
        );
  } catch (error) {
    return failed(NAME, messageOf(error), 'or correct baseModel.path in the campaign file');
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
