/**
 * The policy client: turns of a policy, whatever adapters it is made of. Invariant: a turn holds the very ids and log-probs that
 * were sampled; nothing is re-tokenized.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digest } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Message } from '../domain/messages';
import type { FixedPolicy } from '../domain/rollout';
import { createAdapters } from './adapters';
import { hashOf, modelOf, writeBlankAdapter } from './base-model';
import type { Merge } from './merge';
import { openPolicyServer, type PolicyServerOptions } from './server';
import { createProof, proven } from './server-proof';
import {
  completionBody,
  likeliestBody,
  type LikelyToken,
  parseLikeliest,
  parseTurn,
  type Turn,
  type TurnRequest,
} from './wire';

interface LikeliestRequest {
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
    sample: ({ policy, signal, ...asked }) =>
      adapters.withModel(policy, async (model) =>
        parseTurn(await server.complete(completionBody({ model, ...asked }), signal)),
      ),
    likeliest: ({ policy, messages, signal }) =>
      adapters.withModel(policy, async (model) => {
        const [first] = parseLikeliest(await server.complete(likeliestBody({ model, messages }), signal));
        return first!.likeliest;
      }),
    unload: adapters.unload,
    reachable: server.reachable,
    close: server.close,
  };
}

interface Trial {
  store: ArtifactStore;
  client: Pick<PolicyClient, 'sample' | 'unload'>;
  python: string;
  /** The base of the campaign's policies, and its folder. */
  base: string;
  model: string;
  targetModules: readonly string[];
  rank: number;
  signal?: AbortSignal;
}

/** Loads one from the store, samples a token from it and unloads it. Throws AdapterRefused. */
export async function tryAdapter({ client, signal, ...trial }: Trial): Promise<void> {
  const policy = {
    base: trial.base,
    adapters: [{ ref: await blankAdapter({ ...trial, ...(signal && { signal }) }), weight: 1 }],
  };
  const messages = [{ role: 'user' as const, content: 'hello' }];
  const sampling = { temperature: 0, topP: 1, maxTokens: 1 };
  try {
    await client.sample({ policy, messages, tools: [], sampling, seed: 0, ...(signal && { signal }) });
  } finally {
    await client.unload(policy);
  }
}

/** Kept, since the server has to see it where it sees all others. */
async function blankAdapter(o: Omit<Trial, 'client'>): Promise<ArtifactRef> {
  const { store, base, targetModules, rank, ...asked } = o;
  const key = `blank-adapter/${digest({ base: hashOf(modelOf(base)), targetModules, rank })}`;
  const known = await store.find(key);
  if (known) return known;
  const work = await mkdtemp(join(tmpdir(), 'adapter-'));
  try {
    const folder = join(work, 'blank');
    await writeBlankAdapter({ ...asked, targetModules, rank, folder });
    return await store.putFolder({ key, producer: 'try-adapter', inputs: [], folder });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
