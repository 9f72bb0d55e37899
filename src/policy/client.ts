/**
 * The policy client: turns of a policy, whatever adapters it is made of. Invariant: a turn holds the very ids and log-probs that
 * were sampled; nothing is re-tokenized.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { Message } from '../domain/messages';
import type { FixedPolicy } from '../domain/rollout';
import { createAdapters } from './adapters';
import type { Merge } from './merge';
import { createProof, proven } from './served-base';
import { openPolicyServer, type PolicyServerOptions } from './server';
import type { Turn, TurnRequest } from './turn';
import { likeliestBody, parseLikeliest, type LikelyToken } from './likeliest';
import { completionBody, parseTurn } from './wire';

export interface LikeliestRequest {
  policy: FixedPolicy;
  messages: Message[];
  signal: AbortSignal;
}

export interface PolicyClient {
  /** Makes the policy servable (loads its adapters); the model name that serves it. */
  ensurePolicy(policy: FixedPolicy): Promise<string>;
  /** The policy's next message. Throws an OutsideFailure. */
  sample(request: TurnRequest): Promise<Turn>;
  /** The tokens that the policy's next message most likely begins with, the likeliest first, at most 20. Throws an OutsideFailure. */
  likeliest(request: LikeliestRequest): Promise<LikelyToken[]>;
  /** Takes its adapters off the server, as far as that can be done. */
  unload(policy: FixedPolicy): Promise<void>;
  /** Whether the server answers at all. */
  reachable(): Promise<boolean>;
  close(): void;
}

/** A client of one policy server, which proves that it serves a policy's base before it is asked; adapters come from the store's folders, which the server must be able to read. */
export function createPolicyClient({
  store,
  merge,
  maxLoadedAdapters,
  baseId,
  ...options
}: PolicyServerOptions & {
  store: ArtifactStore;
  merge: Merge;
  maxLoadedAdapters?: number;
  /** What the operator says that the server serves. */
  baseId?: string | undefined;
}): PolicyClient {
  const server = openPolicyServer(options);
  const capacity = maxLoadedAdapters && { capacity: maxLoadedAdapters };
  const prove = createProof({ url: options.url, server, store, baseId });
  const adapters = proven(createAdapters({ server, store, merge, ...capacity }), prove);

  return {
    ensurePolicy: adapters.ensurePolicy,
    sample: ({ policy, messages, tools, sampling, seed, signal, onWork }) =>
      adapters.withModel(
        policy,
        async (model) => {
          const body = completionBody({ model, messages, tools, sampling, seed });
          return parseTurn(await server.complete(body, signal));
        },
        onWork,
      ),
    likeliest: ({ policy, messages, signal }) =>
      adapters.withModel(
        policy,
        async (model) =>
          parseLikeliest(await server.complete(likeliestBody({ model, messages }), signal))[0]!.likeliest,
      ),
    unload: adapters.unload,
    reachable: server.reachable,
    close: server.close,
  };
}
