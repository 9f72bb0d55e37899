/** The base model's folder, and the policy server that serves it. No weights are read. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckItem, MissingRequirement } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { isFailure } from '../../domain/failures';
import { loraModules } from '../../policy/base-model';
import { clientSettings, openPolicyServer } from '../../policy/server';
import { askHub, baseFolder, isToDownload } from '../../policy/hub';
import { messageOf } from '../errors';
import { pythonPath } from '../project';

const CORRECT = 'correct baseModel.path in the campaign file';

export function modelChecks(campaign: Campaign, python = pythonPath(), home?: string): CheckItem[] {
  const { baseModel, policyServer, training } = campaign;
  const path = baseFolder(baseModel);
  const isVllm = policyServer.kind === 'vllm';
  const get = isVllm ? 'put the folder of the model that vLLM serves there' : 'make one with `make base-model`';
  const { targetModules } = training.lora;
  return [
    {
      name: 'base model',
      fix: `${get}, or ${CORRECT}`,
      async run() {
        if (isToDownload(baseModel)) return downloadText(baseModel, python);
        if (!existsSync(path)) throw new MissingRequirement(`there is no folder ${path}`);
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
      fix: `or ${CORRECT}`,
      async run() {
        // Other checks report a base model or a Python that is missing.
        if (isToDownload(baseModel) || !existsSync(join(path, 'config.json')) || !existsSync(python)) return undefined;
        const { unknown, choices } = await loraModules({ python, model: path, targetModules, home });
        if (unknown.length === 0) return targetModules.join(', ');
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

/** Returns size and licence of a model that is not on this machine yet. */
async function downloadText(baseModel: Campaign['baseModel'], python: string): Promise<string> {
  const { commit, bytes, license } = await askHub({ baseModel, download: false, python });
  const megabytes = Math.ceil(bytes / 1e6);
  return `${baseModel.hub}@${commit}: ${megabytes} MB, licence ${license ?? 'not named'}; campaign run downloads it to ${baseFolder({ ...baseModel, revision: commit })}`;
}

async function servedText(o: Extract<Campaign['policyServer'], { kind: 'vllm' }>): Promise<string> {
  const { url, model, contextTokens } = o;
  const server = openPolicyServer(clientSettings(url, 1));
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
