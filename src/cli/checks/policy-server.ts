/** A policy server that is not ours: reachable, with the base model and the context that the campaign names. */
import type { Campaign } from '../../domain/campaign';
import { isFailure } from '../../domain/failures';
import { openPolicyServer } from '../../policy/server';
import { messageOf } from '../errors';
import { failed, passed, type Check } from './check';

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
