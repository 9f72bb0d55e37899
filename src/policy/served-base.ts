/**
 * Whether a policy server serves the base model that a policy is of, and samples from all of its distribution. Invariant: nothing that another base has
 * answered leaves the client: the server is asked before the first request, and again, before an answer is handed on, where another one may have
 * taken its place.
 */
import type { ArtifactStore } from '../artifacts/store';
import { isFailure, OutsideFailure } from '../domain/failures';
import type { Adapters } from './adapters';
import { hashOf, modelOf, readFingerprint } from './base-model';
import type { PolicyServer } from './server';
import { checkSampling } from './truncation';
import { parseScores, scoreBody } from './wire';

/**
 * Of the log-probs of a fingerprint's ids, in nats and in the median, which few experts that rounding chooses otherwise don't move. On a model
 * of 135 M parameters bfloat16 is off by 0.05, rows of int8 by 0.08, 1% of noise on all weights by 0.15, 3% by 0.4; random weights by several.
 */
const FARTHEST = 0.25;

interface ServedBase {
  url: string;
  server: PolicyServer;
  store: ArtifactStore;
  /** What the operator says that the server serves, where it does not say so itself. */
  baseId?: string | undefined;
}

/** Throws WrongBaseModel unless the server serves this base, PolicyServerWrong if it samples otherwise than it is asked to. Costs nothing as long as the server stays the one that was asked. */
export function createProof({ url, server, store, baseId }: ServedBase): (base: string) => Promise<void> {
  const proofs = new Map<string, { losses: number; proof: Promise<void> }>();
  /** How often it had been away when it was seen to sample as it should: that costs some thousand tokens. */
  let sampledAt: number | undefined;

  async function prove(wanted: string): Promise<void> {
    const served = await server.models();
    await proveBase(wanted, served);
    const absences = server.absences();
    if (isId(served.root) || sampledAt === absences) return;
    await checkSampling({ url, server, model: served.base });
    sampledAt = absences;
  }

  async function proveBase(wanted: string, { base, root }: Awaited<ReturnType<PolicyServer['models']>>): Promise<void> {
    const model = modelOf(wanted);
    const wrong = (serves: string) =>
      new OutsideFailure(
        'WrongBaseModel',
        `policy server ${url} serves ${serves}, and the campaign wants ${model}: start the server with that model, or the worker with the ` +
          'POLICY_SERVER_URL of a server that has it',
      );
    const told = isId(root) ? root : baseId;
    if (told !== undefined) {
      if (hashOf(told) !== hashOf(model)) throw wrong(isId(root) ? told : `${told} (CAMPAIGN_BASE_ID)`);
      return;
    }
    const fingerprint = await readFingerprint(store, model);
    if (!fingerprint)
      throw wrong(
        `${base}, does not say which model that is, and nothing is known to hold it against (or set CAMPAIGN_BASE_ID)`,
      );
    const { ids, logprobs } = fingerprint;
    const another = (how: string) => wrong(`another model as ${base} (${how})`);
    const answer = await server.score(scoreBody({ model: base, ids })).catch((error: unknown) => {
      // Of a smaller vocabulary.
      throw isFailure(error, 'PolicyRequestRejected') ? another(error.message) : error;
    });
    const scores = parseScores(answer, ids);
    const far = median(scores.map((score, n) => Math.abs(score - logprobs[n]!)));
    if (!(far <= FARTHEST))
      throw another(`log-probs of ${scores.length} tokens are off by ${far.toFixed(2)} nats in the median`);
  }

  return (base) => {
    const losses = server.losses();
    const known = proofs.get(base);
    if (known?.losses === losses) return known.proof;
    const proof = prove(base);
    const made = { losses, proof };
    proof.catch(() => proofs.get(base) === made && proofs.delete(base));
    proofs.set(base, made);
    return proof;
  };
}

/** The embedded server says it, and samples as it is tested to; vLLM says a path or a name of its own. */
const isId = (root: string | undefined): root is string => root !== undefined && /@[0-9a-f]{12}$/.test(root);

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;

/** Adapters of a server that has proven, before and after each work, that it serves the policy's base. */
export const proven = (adapters: Adapters, prove: (base: string) => Promise<void>): Adapters => ({
  unload: adapters.unload,
  async ensurePolicy(policy) {
    await prove(policy.base);
    return adapters.ensurePolicy(policy);
  },
  async withModel(policy, work, onWork) {
    await prove(policy.base);
    try {
      const answer = await adapters.withModel(policy, work, onWork);
      await prove(policy.base);
      return answer;
    } catch (error) {
      // The end of the context ends a rollout well.
      if (isFailure(error, 'ContextLengthExceeded')) await prove(policy.base);
      throw error;
    }
  },
});
