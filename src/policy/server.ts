/**
 * One policy server over HTTP: docs/policy-server.md. Invariant: one call, one request; nothing is retried here, and every
 * failure leaves as an OutsideFailure.
 */
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import { Pool } from 'undici';
import { z } from 'zod';
import { jsonText } from '../domain/json-text';
import { adapterRefusal, failedExchange, invalidAnswer, noPolicyServer, refusal } from './errors';

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

export interface PolicyServer {
  /** The body of a chat completion, unchecked. */
  complete(body: ChatCompletionCreateParamsNonStreaming, signal?: AbortSignal): Promise<unknown>;
  /** Names of the base model and of what is loaded, and the context where it tells it. */
  models(): Promise<{ base: string; contextTokens?: number | undefined; adapters: string[] }>;
  /** Throws AdapterRefused for one that it does not take, of a name that it has already too. */
  loadAdapter(adapter: { name: string; path: string }): Promise<void>;
  unloadAdapter(name: string): Promise<void>;
  /** Throws where it is not well, or not there. */
  health(): Promise<void>;
  reachable(): Promise<boolean>;
  close(): void;
}

/** Loading an adapter reads files and may wait for the running batch; it takes seconds at most. */
const ADMIN_TIMEOUT_MS = 60_000;
const HEALTH_TIMEOUT_MS = 5_000;

const modelsAnswer = jsonText.pipe(
  z.object({
    data: z.array(z.object({ id: z.string(), parent: z.string().nullish(), max_model_len: z.number().nullish() })),
  }),
);

interface Call {
  method: 'GET' | 'POST';
  path: string;
  body?: object;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/**
 * undici's pool and not the openai client: a turn costs 72 us of CPU here and 240 us there, and what the rollout engine spends is
 * taken from a policy server on the same machine (docs/decisions/rollouts.md).
 */
export function openPolicyServer({
  apiKey,
  concurrency,
  requestTimeoutMs = 300_000,
  ...options
}: PolicyServerOptions): PolicyServer {
  const url = options.url.replace(/\/+$/, '');
  const { origin, pathname } = new URL(url);
  const prefix = pathname.replace(/\/+$/, '');
  // One connection more than asked for: a health check must not wait behind completions.
  const pool = new Pool(origin, { connections: concurrency + 1 });
  const headers = { 'content-type': 'application/json', ...(apiKey && { authorization: `Bearer ${apiKey}` }) };

  /** The text of an answer that is not a refusal. */
  async function call({ method, path, body, timeoutMs, signal }: Call): Promise<string> {
    try {
      const { statusCode, body: answer } = await pool.request({
        method,
        path: prefix + path,
        headers,
        body: body ? JSON.stringify(body) : null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        ...(signal && { signal }),
      });
      const text = await answer.text();
      if (statusCode >= 200 && statusCode < 300) return text;
      throw refusal({ url, path, status: statusCode, text });
    } catch (error) {
      signal?.throwIfAborted();
      throw failedExchange({ url, error });
    }
  }

  /** The JSON of an answer. */
  async function ask(request: Call): Promise<unknown> {
    const text = await call(request);
    try {
      return JSON.parse(text);
    } catch {
      throw invalidAnswer({ url, text });
    }
  }
  const health = async () => void (await call({ method: 'GET', path: '/health', timeoutMs: HEALTH_TIMEOUT_MS }));
  const reachable = () =>
    health().then(
      () => true,
      () => false,
    );
  const post = async (path: string, body: object) =>
    void (await call({ method: 'POST', path, body, timeoutMs: ADMIN_TIMEOUT_MS }));

  return {
    complete: (body, signal) =>
      ask({ method: 'POST', path: '/v1/chat/completions', body, timeoutMs: requestTimeoutMs, signal }),

    async models() {
      const text = await call({ method: 'GET', path: '/v1/models', timeoutMs: ADMIN_TIMEOUT_MS });
      const models = modelsAnswer.safeParse(text).data?.data ?? [];
      const base = models.find(({ parent }) => !parent);
      if (!base) throw noPolicyServer({ url, text });
      const adapters = models.flatMap(({ id, parent }) => (parent ? [id] : []));
      return { base: base.id, contextTokens: base.max_model_len ?? undefined, adapters };
    },

    loadAdapter: ({ name, path }) =>
      post('/v1/load_lora_adapter', { lora_name: name, lora_path: path }).catch(async (error: unknown) => {
        throw await adapterRefusal(error, reachable);
      }),
    unloadAdapter: (name) => post('/v1/unload_lora_adapter', { lora_name: name }),

    health,
    reachable,
    close: () => void pool.destroy(),
  };
}
