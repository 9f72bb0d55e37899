/**
 * The base model: its folder, its tokenizer on the target's texts, and the policy server that serves it. Invariant: no weights are read here.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { openFolderStore } from '../../artifacts/folder-store';
import { isUnknown, TOKENS_FIX, tokensText } from '../../domain/base-check';
import type { Campaign } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { openingsOf } from '../../environments/open';
import { baseModelId, checkTokens as countTokens, loraModules, servedBase } from '../../policy/base-model';
import { createPolicyClient, tryAdapter } from '../../policy/client';
import { openPolicyServer } from '../../policy/server';
import { type Registry, registry as allKinds } from '../../registry';
import { messageOf } from '../errors';
import { taskIds, withTarget } from '../open-target';
import { type Home, pythonPath } from '../project';
import { type Check, failed, passed, warned } from '../../checks/check';

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

const TOKENIZER = 'base tokenizer';

/** Undefined where the target can't be opened: that is told by a check of its own. */
export async function checkTokens(o: {
  campaign: Campaign;
  home: Home;
  python?: string;
  registry?: Registry;
}): Promise<Check | undefined> {
  const { campaign, home, python = pythonPath(), registry = allKinds } = o;
  const texts = await textsOf(campaign, home, registry.environments).catch(() => undefined);
  if (!texts) return undefined;
  try {
    const tokens = await countTokens({ python, model: campaign.baseModel.path, texts });
    const text = tokensText(tokens);
    return isUnknown(tokens) ? failed(TOKENIZER, text, `${TOKENS_FIX}, or run with --force`) : passed(TOKENIZER, text);
  } catch (error) {
    return failed(TOKENIZER, messageOf(error), 'correct baseModel.path in the campaign file');
  }
}

async function textsOf(
  { target, seed }: Campaign,
  home: Home,
  kinds: Registry['environments'],
): Promise<readonly string[]> {
  return withTarget({ target, home, kinds }, async (environment) => {
    const { train } = await taskIds(environment);
    // Where a model plays the user there is nobody here to say its first words: the written policy has to do.
    const openings = openingsOf({ environment, tasks: train, seed }).catch(() =>
      openingsOf({ environment, tasks: [], seed }),
    );
    return (await openings).texts;
  });
}

const SERVER = 'policy server';

export async function checkPolicyServer({ policyServer }: Campaign): Promise<Check> {
  if (policyServer.kind === 'embedded') return passed(SERVER, 'embedded, started with the campaign');
  const { url, model, contextTokens } = policyServer;
  const apiKey = process.env['POLICY_SERVER_API_KEY'];
  const server = openPolicyServer({ url, concurrency: 1, ...(apiKey && { apiKey }) });
  const wrong = (detail: string, fix: string) => failed(SERVER, `${url}: ${detail}`, fix);
  try {
    await server.health();
    const served = await server.models();
    if (model !== undefined && served.base !== model)
      return wrong(`it serves ${served.base}, not ${model}`, 'serve the base model, or correct policyServer.model');
    if (served.contextTokens && served.contextTokens !== contextTokens)
      return wrong(
        `its context is ${served.contextTokens} tokens, not ${contextTokens}`,
        `start it with --max-model-len ${contextTokens}, or correct policyServer.contextTokens`,
      );
    return passed(SERVER, `${url} serves ${served.base}`);
  } catch (error) {
    const away = isFailure(error, 'PolicyServerUnavailable', 'PolicyServerTimeout');
    return failed(
      SERVER,
      messageOf(error),
      away ? 'start it, or correct policyServer.url in the campaign file' : undefined,
    );
  } finally {
    server.close();
  }
}

/** The sum of all adapters is tried; how many there are is known after the selection. So many had the published runs. */
const LIKELY_SUMMED = 4;

/** A vLLM that answers takes adapters as they will be trained, and their sum; it is asked the campaign's own way, from its home. */
export async function checkAdapters(o: { campaign: Campaign; home: Home; python: string }): Promise<Check | undefined> {
  const { campaign, home, python } = o;
  const { policyServer, baseModel, training } = campaign;
  if (policyServer.kind !== 'vllm') return undefined;
  const name = 'adapters';
  const { r, targetModules } = training.lora;
  const store = openFolderStore(join(home.root, 'artifacts'));
  const apiKey = process.env['POLICY_SERVER_API_KEY'];
  let close = (): void => undefined;
  let taken = false;
  try {
    // That it serves the base is held against the weights once a campaign has begun.
    const baseId = await baseModelId({ python, model: baseModel.path, home: home.root });
    const merge = () => Promise.reject(new Error('nothing is merged here'));
    const connection = { url: policyServer.url, concurrency: 32, ...(apiKey && { apiKey }) };
    const client = createPolicyClient({ ...connection, store, merge, baseId });
    close = client.close;
    const trial = { store, client, python, base: servedBase(baseId, campaign), model: baseModel.path, targetModules };
    await tryAdapter({ ...trial, rank: r });
    taken = true;
    await tryAdapter({ ...trial, rank: LIKELY_SUMMED * r });
    return passed(name, `of rank ${r}, and sums of ${LIKELY_SUMMED} of them, are taken`);
  } catch (error) {
    if (!taken) return failed(name, messageOf(error));
    return warned(name, `of rank ${r} are taken, sums of ${LIKELY_SUMMED} of them are not: ${messageOf(error)}`);
  } finally {
    close();
  }
}
