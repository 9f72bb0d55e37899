/** Samples turns of a policy, whatever adapters it has. A turn holds the sampled ids and log-probs; nothing is tokenized again. */
import type { ArtifactStore } from '../store/store';
import { ONE_SERVER } from '../domain/endpoints';
import { isFailure } from '../domain/failures';
import type { Message } from '../domain/messages';
import type { FixedPolicy } from '../domain/rollout';
import { createAdapters } from './adapters';
import { keptAdapter } from './base-model';
import type { Merge } from './merge';
import { createProbe, type ProbedServer } from './probe';
import { openPolicyServer, type PolicyServerOptions } from './server';
import { createTurns } from './turns';
import { likeliestBody, type LikelyToken, ONE_TOKEN, parseLikeliest, type Turn, type TurnRequest } from './wire';

export type PolicyClient = ReturnType<typeof createPolicyClient>;

interface CompletionRequest extends Pick<TurnRequest, 'policy' | 'signal'> {
  body: object;
}

interface PolicyClientOptions extends PolicyServerOptions, Omit<ProbedServer, 'url' | 'server'> {
  merge: Merge;
}

/** Returns a client that checks, before and after each answer, that the server serves the policy's base. */
export function createPolicyClient(o: PolicyClientOptions) {
  const { store, merge, url, baseId, fingerprint } = o;
  if (url.includes(',')) throw new Error(`POLICY_SERVER_URL has a comma; it must be ${ONE_SERVER}`);
  const server = openPolicyServer(o);
  const turn = createTurns(server);
  const probe = createProbe({ url, server, store, baseId, fingerprint });
  const adapters = createAdapters({ server, store, merge });

  async function answered<Answer>(policy: FixedPolicy, work: (model: string) => Promise<Answer>): Promise<Answer> {
    await probe(policy.base);
    try {
      const answer = await adapters.withModel(policy, work);
      await probe(policy.base);
      return answer;
    } catch (error) {
      // The end of the context is a regular end of a rollout, so the server must be the right one.
      if (isFailure(error, 'ContextLengthExceeded')) await probe(policy.base);
      throw error;
    }
  }

  return {
    /** Samples the policy's next message. Throws an OutsideFailure. */
    sample: ({ policy, signal, ...asked }: TurnRequest): Promise<Turn> =>
      answered(policy, (model) => turn({ model, ...asked }, signal)),
    /** Returns the server's answer to a chat completion, for which it sets `model`. Throws an OutsideFailure. */
    complete: ({ policy, body, signal }: CompletionRequest): Promise<unknown> =>
      answered(policy, (model) => server.complete({ ...body, model }, signal)),
    /** Returns the likeliest first tokens of the policy's next message, at most 20 in descending order. Throws an OutsideFailure. */
    likeliest: (o: { policy: FixedPolicy; messages: Message[]; signal: AbortSignal }): Promise<LikelyToken[]> =>
      answered(o.policy, async (model) =>
        parseLikeliest(await server.complete(likeliestBody(model, o.messages), o.signal)),
      ),
    unload: adapters.unload,
    reachable: server.reachable,
    close: server.close,
  };
}

/** Loads an adapter that changes nothing from the store, samples a token from it and unloads it. Throws AdapterRefused. */
export async function tryAdapter(o: {
  store: ArtifactStore;
  client: Pick<PolicyClient, 'sample' | 'unload'>;
  python: string;
  base: string;
  model: string;
  targetModules: readonly string[];
  rank: number;
  signal?: AbortSignal;
}): Promise<void> {
  const { client, ...asked } = o;
  const { base } = asked;
  const ref = await keptAdapter(asked);
  const policy = { base, adapters: [{ ref, weight: 1 }] };
  const messages = [{ role: 'user' as const, content: 'hello' }];
  try {
    await client.sample({
      policy,
      messages,
      tools: [],
      sampling: ONE_TOKEN,
      seed: 0,
      ...(o.signal && { signal: o.signal }),
    });
  } finally {
    await client.unload(policy);
  }
}
