/**
 * Checks that a policy server serves the base model of a policy. It compares the id that the server or the operator states; without one it compares the
 * log-probs of fixed token ids with those that the trainer computed from the base model's files.
 */
import type { ArtifactStore } from '../store/store';
import { isFailure, OutsideFailure } from '../domain/failures';
import { type Fingerprint, hashOf, modelOf, readFingerprint } from './base-model';
import type { PolicyServer } from './server';
import { parseScores, scoreBody } from './wire';

/** A balancer may change the server behind an address while connections stay open. */
const KEPT_MS = 60_000;

/**
 * The largest median difference of log-probs, in nats. On a model of 135 M parameters bfloat16 differs by 0.05, rows of int8 by 0.08, 1% of noise on all
 * weights by 0.15, 3% by 0.4; random weights by several. The median is insensitive to the few tokens for which rounding selects another expert.
 */
const MAX_MEDIAN_GAP = 0.25;

export interface ProbedServer {
  url: string;
  server: PolicyServer;
  store: ArtifactStore;
  /** The base model that the operator states (CAMPAIGN_BASE_ID), for a server that states none. */
  baseId?: string | undefined;
  fingerprint?: Fingerprint | undefined;
}

/** Returns a function that throws WrongBaseModel unless the server serves this base. It asks again after 60 s, and after a lost connection. */
export function createProbe(o: ProbedServer): (base: string) => Promise<void> {
  const { url, server, store, baseId, fingerprint } = o;
  const probes = new Map<string, { losses: number; startedAt: number; result: Promise<void> }>();

  async function probe(base: string): Promise<void> {
    const model = modelOf(base);
    const wrong = (serves: string) =>
      new OutsideFailure(
        'WrongBaseModel',
        `policy server ${url} serves ${serves}, and the campaign wants ${model}: start the server with that model, or the worker with the POLICY_SERVER_URL of a server that has it`,
      );
    const served = await server.models();
    const isId = served.root !== undefined && /@[0-9a-f]{12}$/.test(served.root);
    const stated = isId ? served.root : baseId;
    if (stated !== undefined) {
      if (hashOf(stated) !== hashOf(model)) throw wrong(isId ? stated : `${stated} (CAMPAIGN_BASE_ID)`);
      return;
    }
    const known = (await readFingerprint(store, model)) ?? fingerprint;
    if (!known)
      throw wrong(
        `${served.base}, does not say which model that is, and no log-probs of the model are stored (or set CAMPAIGN_BASE_ID)`,
      );
    const { ids, logprobs } = known;
    const answer = await server.score(scoreBody({ model: served.base, ids })).catch((error: unknown) => {
      // A server with a smaller vocabulary rejects the ids.
      throw isFailure(error, 'PolicyRequestRejected')
        ? wrong(`another model as ${served.base} (${error.message})`)
        : error;
    });
    const gaps = parseScores(answer, ids).map((score, n) => Math.abs(score - logprobs[n]!));
    const gap = gaps.sort((a, b) => a - b)[gaps.length >> 1] ?? NaN;
    const problem = `log-probs of ${gaps.length} tokens are off by ${gap.toFixed(2)} nats in the median`;
    if (!(gap <= MAX_MEDIAN_GAP)) throw wrong(`another model as ${served.base} (${problem})`);
  }

  return (base) => {
    const losses = server.losses();
    const now = performance.now();
    const last = probes.get(base);
    if (last?.losses === losses && now - last.startedAt < KEPT_MS) return last.result;
    const next = { losses, startedAt: now, result: probe(base) };
    next.result.catch(() => probes.get(base) === next && probes.delete(base));
    probes.set(base, next);
    return next.result;
  };
}
