/**
 * The policy client: turns of a policy, whatever adapters it is made of. Invariant: a turn holds the very ids and log-probs that
 * were sampled; nothing is re-tokenized.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { AssistantMessage, Message, ToolSchema } from '../domain/messages';
import type { Policy, Sampling } from '../domain/rollout';
import { createAdapters } from './adapters';
import { openPolicyServer, type PolicyServerOptions } from './server';
import { completionBody, parseTurn } from './wire';

/** One answer of a policy. */
export interface Turn {
  message: AssistantMessage;
  /** `length`: cut off by the sampling's maxTokens or the end of the context. */
  finishReason: 'stop' | 'tool_calls' | 'length';
  promptIds: number[];
  /** The sampled ids, end of turn included. */
  tokenIds: number[];
  /** Of the sampled ids, at temperature 1, in nats. */
  logprobs: number[];
}

export interface TurnRequest {
  policy: Policy;
  messages: Message[];
  tools: ToolSchema[];
  sampling: Sampling;
  seed: number;
  signal?: AbortSignal;
}

export interface PolicyClient {
  /** Makes the policy servable (loads its adapters); the model name that serves it. */
  ensurePolicy(policy: Policy): Promise<string>;
  /** The policy's next message. Throws an OutsideFailure. */
  sample(request: TurnRequest): Promise<Turn>;
  /** Whether the server answers at all. */
  reachable(): Promise<boolean>;
  close(): void;
}

/** A client of one policy server; adapters come from the store's folders, which the server must be able to read. */
export function createPolicyClient({
  store,
  maxLoadedAdapters,
  ...options
}: PolicyServerOptions & { store: ArtifactStore; maxLoadedAdapters?: number }): PolicyClient {
  const server = openPolicyServer(options);
  const adapters = createAdapters({ server, store, ...(maxLoadedAdapters && { capacity: maxLoadedAdapters }) });

  return {
    ensurePolicy: adapters.ensurePolicy,
    sample: ({ policy, messages, tools, sampling, seed, signal }) =>
      adapters.withModel(policy, async (model) => {
        const body = completionBody({ model, messages, tools, sampling, seed });
        return parseTurn(await server.complete(body, signal));
      }),
    reachable: server.reachable,
    close: server.close,
  };
}
