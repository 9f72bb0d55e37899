/** The base model's folder, its chat template, and the policy server that serves it. No weights are read. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { openStore } from '../../store/open-store';
import { type CheckItem, MissingRequirement } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { jsonText } from '../../domain/messages';
import { loraModules, servedBase } from '../../policy/base-model';
import { createPolicyClient, tryAdapter } from '../../policy/client';
import { createMerger } from '../../policy/merge';
import { openPolicyServer } from '../../policy/server';
import { messageOf } from '../errors';
import { baseIdOf } from '../campaign-file';
import { type Home, pythonPath } from '../project';

const CORRECT = 'correct baseModel.path in the campaign file';
/** The checks that must pass before the trainer's Python is asked about the base model. */
const askable = ['base model', 'Python', 'Python packages'];

export function modelChecks(campaign: Campaign, python = pythonPath(), home?: string): CheckItem[] {
  const { baseModel, policyServer, training } = campaign;
  const { path } = baseModel;
  const isVllm = policyServer.kind === 'vllm';
  const get = isVllm ? 'put the folder of the model that vLLM serves there' : 'make one with `make base-model`';
  const { targetModules } = training.lora;
  return [
    {
      name: 'base model',
      fix: `${get}, or ${CORRECT}`,
      run() {
        if (!existsSync(path)) throw new MissingRequirement(`there is no folder ${path}`, hubFix(path));
        const files = readdirSync(path);
        const parts = {
          'config.json': /^config\.json$/,
          'weights (*.safetensors)': /\.(safetensors|bin)$/,
          'a tokenizer': /^tokenizer/,
        };
        const missing = Object.entries(parts).filter(([, pattern]) => !files.some((file) => pattern.test(file)));
        if (missing.length === 0) return path;
        throw new MissingRequirement(`${path} lacks ${missing.map(([part]) => part).join(', ')}`);
      },
    },
    {
      // A LoRA on modules that a base does not have would be refused by the trainer, once the base rollouts are spent.
      name: 'LoRA modules',
      needs: askable,
      fix: `or ${CORRECT}`,
      async run() {
        const { modules, unknown, choices } = await loraModules({ python, model: path, targetModules, home });
        if (unknown.length === 0)
          return expertsText(campaign, { has: modules.some(({ experts }) => experts > 1) }) ?? targetModules.join(', ');
        const has = `${path} has no module ${unknown.join(', ')} that a LoRA can train`;
        throw new MissingRequirement(
          `training.lora.targetModules: ${has}`,
          `name modules of this base: ${choices.join(', ')}`,
        );
      },
    },
    {
      name: 'policy server',
      run: () => (isVllm ? servedText(policyServer) : 'embedded, started with the campaign'),
    },
  ];
}

/** Checks campaign and server for an adapter that changes experts in one parameter; undefined for other adapters. */
function expertsText({ training, policyServer }: Campaign, { has }: { has: boolean }): string | undefined {
  if (!has) return undefined;
  const { r, dropout, targetModules } = training.lora;
  const attention = 'name q_proj, k_proj, v_proj, o_proj alone (preset attention-only)';
  if (dropout > 0)
    throw new MissingRequirement(`training.lora.dropout is ${dropout}, and experts take none`, 'set it to 0');
  if (policyServer.kind === 'embedded')
    throw new MissingRequirement(
      'the embedded policy server runs experts without adapters',
      `${attention}, or serve it with vLLM`,
    );
  return `${targetModules.join(', ')}; vLLM needs --enable-mixed-moe-lora-format, and --max-lora-rank of ${r} for each capability in a sum`;
}

/** Returns a fix if the path seems to be a model's name on the Hugging Face hub. */
function hubFix(path: string): string | undefined {
  const [owner, model] = [basename(dirname(path)), basename(path)];
  if (existsSync(dirname(path)) || !existsSync(dirname(dirname(path))) || owner === 'models') return undefined;
  return (
    `if ${owner}/${model} is its name on the Hugging Face hub, download it with ` +
    `\`.venv/bin/hf download ${owner}/${model} --local-dir models/${model}\` and name that folder in baseModel.path`
  );
}

/** Compares the tools of the target with the base's chat template. */
export function templateCheck(
  { baseModel: { path }, policyServer }: Campaign,
  describe: () => Promise<EnvironmentDescription | undefined>,
): CheckItem {
  return {
    name: 'chat template',
    async run() {
      const description = await describe();
      // vLLM may have been given a chat template that is not the folder's.
      if (!description || policyServer.kind !== 'embedded' || !existsSync(join(path, 'config.json'))) return undefined;
      return templateText(path, description.tools.length);
    },
  };
}

const tokenizerConfigSchema = jsonText.pipe(
  z.object({ chat_template: z.union([z.string(), z.array(z.object({ template: z.string() }))]) }),
);

function templateText(path: string, tools: number): string {
  const file = join(path, 'chat_template.jinja');
  const read = (from: string) => (existsSync(from) ? readFileSync(from, 'utf8') : undefined);
  const configured = tokenizerConfigSchema.safeParse(read(join(path, 'tokenizer_config.json'))).data?.chat_template;
  const template =
    read(file) ?? (Array.isArray(configured) ? configured.map((one) => one.template).join('\n') : configured);
  if (template === undefined) throw new MissingRequirement(`${path} has none`, `write ${file} (docs/models.md)`);
  if (tools === 0) return 'the target has no tools to show';
  // A template can use nothing but what it names.
  if (/\btools\b/.test(template)) return 'shows tools';
  throw new MissingRequirement(
    `that of ${path} does not show tools, and the target has ${tools}: no rollout could call one`,
    `let ${file} show them in a format that the base was trained with, or name another base (docs/models.md)`,
  );
}

const connection = (url: string, concurrency: number) => {
  const apiKey = process.env['POLICY_SERVER_API_KEY'];
  return { url, concurrency, ...(apiKey && { apiKey }) };
};

async function servedText({
  url,
  model,
  contextTokens,
}: Extract<Campaign['policyServer'], { kind: 'vllm' }>): Promise<string> {
  const server = openPolicyServer(connection(url, 1));
  try {
    await server.health();
    const served = await server.models();
    if (model !== undefined && served.base !== model)
      throw new MissingRequirement(
        `${url}: it serves ${served.base}, not ${model}`,
        'serve the base model, or correct policyServer.model',
      );
    if (served.contextTokens && served.contextTokens !== contextTokens)
      throw new MissingRequirement(
        `${url}: its context is ${served.contextTokens} tokens, not ${contextTokens}`,
        `start it with --max-model-len ${contextTokens}, or correct policyServer.contextTokens`,
      );
    return `${url} serves ${served.base}`;
  } catch (error) {
    if (!isFailure(error, 'PolicyServerUnavailable', 'PolicyServerTimeout')) throw error;
    throw new MissingRequirement(messageOf(error), 'start it, or correct policyServer.url in the campaign file');
  } finally {
    server.close();
  }
}

/** The sum of all adapters is tried; how many there are is known after the selection. So many had the published runs. */
const LIKELY_SUMMED = 4;

/** Checks that load something: the base model's id, and adapters on a vLLM. */
export function serverTrials(campaign: Campaign, home: Home, python = pythonPath()): CheckItem[] {
  const { policyServer } = campaign;
  const id: CheckItem = { name: 'base model id', needs: askable, run: () => baseIdOf(campaign, home) };
  if (policyServer.kind !== 'vllm') return [id];
  const { url } = policyServer;
  const run = () => withClient({ campaign, home, url, python }, adaptersText);
  return [id, { name: 'adapters', needs: [...askable, 'LoRA modules', 'policy server', 'store'], run }];
}

/** Opens a client of the policy server at `url`, as the campaign's workers do, while `work` runs. */
export async function withClient<Result>(
  o: { campaign: Campaign; home: Home; url: string; python?: string },
  work: (trial: Parameters<typeof tryAdapter>[0]) => Promise<Result>,
): Promise<Result> {
  const { campaign, home, url, python = pythonPath() } = o;
  const { path: model } = campaign.baseModel;
  const store = await openStore(home.root);
  const baseId = await baseIdOf(campaign, home);
  const merge = createMerger({ store, python });
  const client = createPolicyClient({ ...connection(url, 32), store, merge, baseId });
  const { r: rank, targetModules } = campaign.training.lora;
  try {
    return await work({ client, store, python, model, base: servedBase(baseId, campaign), targetModules, rank });
  } finally {
    client.close();
  }
}

/** Tries an adapter and a merged one. */
async function adaptersText(trial: Parameters<typeof tryAdapter>[0]) {
  const { rank } = trial;
  await tryAdapter(trial);
  return await tryAdapter({ ...trial, rank: LIKELY_SUMMED * rank }).then(
    () => `of rank ${rank}, and sums of ${LIKELY_SUMMED} of them, are taken`,
    (error: unknown) => ({
      warning: `of rank ${rank} are taken, sums of ${LIKELY_SUMMED} of them are not: ${messageOf(error)}`,
    }),
  );
}
