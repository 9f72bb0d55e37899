/** A policy server that is not ours: reachable, with the base model and the context that the campaign names, and open to adapters. */
import { z } from 'zod';
import type { Campaign } from '../../domain/campaign';
import { messageOf } from '../errors';
import { failed, passed, type Check } from './check';

const NAME = 'policy server';
const ANSWER_MS = 5000;
const modelsSchema = z.object({
  data: z.array(z.object({ id: z.string(), parent: z.string().nullish(), max_model_len: z.number().nullish() })),
});

export async function checkPolicyServer({ policyServer, training }: Campaign): Promise<Check> {
  if (policyServer.kind === 'embedded') return passed(NAME, 'embedded, started with the campaign');
  const { url, model, contextTokens } = policyServer;
  const wrong = (detail: string, fix: string) => failed(NAME, `${url}: ${detail}`, fix);
  try {
    const health = await ask(url, '/health');
    if (!health.ok) throw new Error(`GET /health answers ${health.status}`);
    const models = await ask(url, '/v1/models');
    if (models.status === 401 || models.status === 403)
      return wrong(`/v1/models answers ${models.status}`, 'set POLICY_SERVER_API_KEY to its key');
    const base = modelsSchema.parse(await models.json()).data.find(({ parent }) => !parent);
    if (!base) return wrong('it serves no base model', 'start it with the base model');
    if (model !== undefined && base.id !== model)
      return wrong(`it serves ${base.id}, not ${model}`, 'serve the base model, or correct policyServer.model');
    if (base.max_model_len && base.max_model_len !== contextTokens)
      return wrong(
        `its context is ${base.max_model_len} tokens, not ${contextTokens}`,
        `start it with --max-model-len ${contextTokens}, or correct policyServer.contextTokens`,
      );
    // An empty request changes nothing; where adapters can't be loaded while it runs, the address is not there.
    const load = await ask(url, '/v1/load_lora_adapter', {});
    if (load.status === 404 || load.status === 405)
      return wrong(
        'it does not let adapters be loaded',
        `start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True --enable-lora --max-lora-rank ${4 * training.lora.r} ` +
          '(lora.r times the number of capabilities, here for 4: a sum of adapters has the sum of their ranks)',
      );
    return passed(NAME, `${url} serves ${base.id}, lets adapters be loaded`);
  } catch (error) {
    const cause = error instanceof Error && error.cause ? messageOf(error.cause) : messageOf(error);
    return wrong(cause, 'start it, or correct policyServer.url in the campaign file');
  }
}

function ask(url: string, path: string, body?: object): Promise<Response> {
  const key = process.env['POLICY_SERVER_API_KEY'];
  return fetch(new URL(path, url), {
    signal: AbortSignal.timeout(ANSWER_MS),
    headers: { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
}
