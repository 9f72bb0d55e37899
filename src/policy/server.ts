/**
 * One policy server over HTTP: docs/policy-server.md. Invariant: one call, one request; nothing is retried here, and every
 * failure leaves as an OutsideFailure.
 */
import OpenAI from 'openai';
import { z } from 'zod';
import { createKeepAliveFetch } from './keep-alive-fetch';
import { policyFailure } from './errors';
import { withOwnSignal } from './own-signal';

export interface PolicyServerOptions {
  /** Without /v1, e.g. http://127.0.0.1:8000. */
  url: string;
  /** Requests at once: the number of connections kept. */
  concurrency: number;
  /** For one completion, from sending to the last byte. */
  requestTimeoutMs?: number;
  /** Sent as a bearer token; taken from the environment by the caller. */
  apiKey?: string;
}

export interface WeightedName {
  lora_name: string;
  weight: number;
}

export interface PolicyServer {
  /** The body of a chat completion, unchecked. */
  complete(body: OpenAI.ChatCompletionCreateParamsNonStreaming, signal?: AbortSignal): Promise<unknown>;
  /** Names of the base model and of what is loaded. */
  models(): Promise<{ base: string; adapters: string[] }>;
  loadAdapter(adapter: { name: string; path: string }): Promise<void>;
  unloadAdapter(name: string): Promise<void>;
  mergeAdapters(merge: { name: string; adapters: WeightedName[] }): Promise<void>;
  reachable(): Promise<boolean>;
  close(): void;
}

/** Loading an adapter reads files and may wait for the running batch; it takes seconds at most. */
const ADMIN_TIMEOUT_MS = 60_000;
const HEALTH_TIMEOUT_MS = 5_000;

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string(), parent: z.string().nullish() })) });

export function openPolicyServer(options: PolicyServerOptions): PolicyServer {
  const url = options.url.replace(/\/+$/, '');
  // One connection more than asked for: a health check must not wait behind completions.
  const { fetch, close } = createKeepAliveFetch({ connections: options.concurrency + 1 });
  const openai = new OpenAI({
    apiKey: options.apiKey ?? 'none',
    baseURL: `${url}/v1`,
    maxRetries: 0,
    timeout: options.requestTimeoutMs ?? 300_000,
    logLevel: 'off',
    fetch,
  });

  async function call<Answer>(work: () => PromiseLike<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      throw policyFailure({ error, url });
    }
  }
  const post = (path: string, body: object) => call(() => openai.post(path, { body, timeout: ADMIN_TIMEOUT_MS }));

  return {
    complete: (body, signal) =>
      call(() => withOwnSignal(signal, (own) => openai.chat.completions.create(body, { signal: own }))),

    async models() {
      const answer = await call(() => openai.get('/models', { timeout: ADMIN_TIMEOUT_MS }));
      const { data } = modelsSchema.parse(answer);
      const base = data.find((model) => !model.parent);
      if (!base) throw new Error(`policy server ${url}: /v1/models names no base model`);
      return { base: base.id, adapters: data.filter((model) => model.parent).map((model) => model.id) };
    },

    loadAdapter: async ({ name, path }) =>
      void (await post('/load_lora_adapter', { lora_name: name, lora_path: path })),
    unloadAdapter: async (name) => void (await post('/unload_lora_adapter', { lora_name: name })),
    mergeAdapters: async ({ name, adapters }) =>
      void (await post('/merge_lora_adapters', { lora_name: name, adapters })),

    reachable: () =>
      fetch(`${url}/health`, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS) }).then(
        (response) => response.ok,
        () => false,
      ),
    close,
  };
}
