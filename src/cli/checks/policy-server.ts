/** A policy server that is not ours: reachable, with the base model and the context that the campaign names. */
import { join } from 'node:path';
import { openFolderStore } from '../../artifacts/folder-store';
import type { Campaign } from '../../domain/campaign';
import { isFailure } from '../../domain/failures';
import { ALL_SUMS_OF } from '../../domain/policies';
import { baseModelId, servedBase } from '../../policy/base-model';
import { createPolicyClient } from '../../policy/client';
import { openPolicyServer } from '../../policy/server';
import { tryAdapter } from '../../policy/try-adapter';
import { messageOf } from '../errors';
import type { Home } from '../project';
import { failed, passed, warned, type Check } from './check';

const NAME = 'policy server';

export async function checkPolicyServer({ policyServer }: Campaign): Promise<Check> {
  if (policyServer.kind === 'embedded') return passed(NAME, 'embedded, started with the campaign');
  const { url, model, contextTokens } = policyServer;
  const apiKey = process.env['POLICY_SERVER_API_KEY'];
  const server = openPolicyServer({ url, concurrency: 1, ...(apiKey && { apiKey }) });
  const wrong = (detail: string, fix: string) => failed(NAME, `${url}: ${detail}`, fix);
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
    return passed(NAME, `${url} serves ${served.base}`);
  } catch (error) {
    const away = isFailure(error, 'PolicyServerUnavailable', 'PolicyServerTimeout');
    return failed(
      NAME,
      messageOf(error),
      away ? 'start it, or correct policyServer.url in the campaign file' : undefined,
    );
  } finally {
    server.close();
  }
}

/** Of so many adapters all sums are tried, whatever the analyst finds; of more, some. */
const LIKELY_SUMMED = ALL_SUMS_OF;

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
