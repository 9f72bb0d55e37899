/** The HTTP client of one policy server (docs/policy-server.md). One call is one request, and every failure is thrown as an OutsideFailure. */
import { errors, Pool } from 'undici';
import { z } from 'zod';
import { type FailureType, isFailure, OutsideFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { ApiError, openHttpServer } from './http';
import { tokenBody } from './wire';

export interface PolicyServerOptions {
  /** Without /v1, e.g. http://127.0.0.1:8000. */
  url: string;
  concurrency: number;
  /** The deadline of one completion, from sending to the last byte. */
  requestTimeoutMs?: number;
  apiKey?: string;
}

/** Returns the settings of a client of the server at an address, with the key of this process's environment. */
export const clientSettings = (url: string, concurrency: number): PolicyServerOptions => {
  const { POLICY_SERVER_API_KEY: apiKey } = process.env;
  return { url, concurrency, ...(apiKey && { apiKey }) };
};

/** Loading an adapter reads files and may wait for the running batch, which takes seconds. */
const ADMIN_TIMEOUT_MS = 60_000;
const HEALTH_TIMEOUT_MS = 5_000;

const modelSchema = z.object({
  id: z.string(),
  root: z.string().nullish(),
  parent: z.string().nullish(),
  max_model_len: z.number().nullish(),
});
export const refusedField = (body: string): string | undefined => refusedSchema.safeParse(body).data?.error.param;
const refusedSchema = jsonText.pipe(z.object({ error: z.object({ param: z.string() }) }));
const modelsSchema = z.object({ data: z.array(modelSchema) });

/** Opens a pool of connections of its own, whose ends show that the server may have been replaced. */
export function openPolicyServer(options: PolicyServerOptions) {
  const { apiKey, concurrency, requestTimeoutMs = 300_000 } = options;
  const url = options.url.replace(/\/+$/, '');
  // One connection more than asked for: a health check must not wait behind completions.
  const pool = new Pool(new URL(url).origin, { connections: concurrency + 1 });
  const endpoint = openHttpServer({ url, key: apiKey, dispatcher: pool });
  let losses = 0;
  pool.on('disconnect', (_origin, _targets, error) => {
    // Closing an idle connection is no sign of a replaced server as long as another connection is open.
    if (!(error instanceof errors.InformationalError) || pool.stats.connected === 0) losses++;
  });

  /** Returns a handler that throws the error of a request to this path as an OutsideFailure. */
  const failing =
    (path: string) =>
    (error: unknown): never => {
      if (!(error instanceof ApiError)) throw error;
      const failure = failureOf({ url, path, error });
      if (failure.retryable) losses++;
      throw failure;
    };
  const post = (path: string, body: object, timeoutMs: number, signal?: AbortSignal): Promise<unknown> =>
    endpoint.json({ path, body, timeoutMs, signal }).catch(failing(path));
  const manage = async (path: string, body: object): Promise<void> =>
    void (await endpoint.text({ path, body, timeoutMs: ADMIN_TIMEOUT_MS }).catch(failing(path)));
  const get = (path: string, timeoutMs: number): Promise<string> =>
    endpoint.text({ method: 'GET', path, timeoutMs }).catch(failing(path));
  const health = async (): Promise<void> => void (await get('/health', HEALTH_TIMEOUT_MS));
  const reachable = (): Promise<boolean> =>
    health().then(
      () => true,
      () => false,
    );

  return {
    complete: (body: object, signal?: AbortSignal) => post(CHAT, body, requestTimeoutMs, signal),
    /** Returns the body that samples the answer to a chat request, unchecked; undefined if the server has no such route. */
    render: (body: object, signal?: AbortSignal): Promise<unknown> =>
      post(`${CHAT}/render`, body, requestTimeoutMs, signal).catch((error: unknown) => {
        const answer = error instanceof OutsideFailure && error.cause instanceof ApiError ? error.cause : undefined;
        const { status, body = '' } = answer ?? {};
        if (status === 403 || status === 405 || (status === 404 && !body.includes('"error"'))) return undefined;
        throw error;
      }),
    generate: (body: object, signal?: AbortSignal) => post('/inference/v1/generate', body, requestTimeoutMs, signal),
    /** Returns the chat completion of sampled ids, unchecked. */
    derender: (body: object, signal?: AbortSignal) => post(`${CHAT}/derender`, body, requestTimeoutMs, signal),
    /** Returns the answer with the log-probs of given ids, unchecked. */
    score: (body: object) => post('/v1/completions', body, ADMIN_TIMEOUT_MS),

    /** Returns the base model's name, its root and context length if the server states them, and the names of the loaded adapters. */
    async models() {
      const text = await get(MODELS, ADMIN_TIMEOUT_MS);
      const models = jsonText.pipe(modelsSchema).safeParse(text).data?.data ?? [];
      const base = models.find(({ parent }) => !parent);
      if (!base) throw noPolicyServer(url, text);
      const adapters = new Set(models.flatMap(({ id, parent }) => (parent ? [id] : [])));
      return { base: base.id, root: base.root ?? undefined, contextTokens: base.max_model_len ?? undefined, adapters };
    },

    /** Throws AdapterRefused if the server does not take it, also because it has the name already. */
    loadAdapter: ({ name, path }: { name: string; path: string }): Promise<void> =>
      manage(LOAD, { lora_name: name, lora_path: path }).catch(async (error: unknown) => {
        throw await adapterRefusal(error, reachable);
      }),
    /**
     * Returns whether the server has the adapter or fetches it by name. It samples one token, which loads the adapter. Throws AdapterRefused if the
     * server fetches it and does not take it.
     */
    async fetchAdapter(name: string): Promise<boolean> {
      try {
        await post(CHAT, tokenBody(name), requestTimeoutMs);
        return true;
      } catch (error) {
        if (isFailure(error, 'PolicyNotLoaded')) return false;
        throw await adapterRefusal(error, reachable);
      }
    },
    unloadAdapter: (name: string) => manage(UNLOAD, { lora_name: name }),
    /** Returns how many connections and requests have failed: after each, another server may have taken its place. */
    losses: () => losses,
    health,
    reachable,
    close: () => void pool.destroy(),
  };
}

export type PolicyServer = ReturnType<typeof openPolicyServer>;

const MODELS = '/v1/models';
const CHAT = '/v1/chat/completions';
const LOAD = '/v1/load_lora_adapter';
const UNLOAD = '/v1/unload_lora_adapter';

/** vLLM has no code for it; it uses the last words if the prompt just fills the context. */
const CONTEXT_LENGTH = /maximum (context|model) length|context_length_exceeded|max_tokens must be at least 1, got/i;

function failureOf(o: { url: string; path: string; error: ApiError }): OutsideFailure {
  const { url, path, error } = o;
  const { status, body, message: reason } = error;
  const fail = (type: FailureType, message: string) =>
    new OutsideFailure(type, `policy server ${url}: ${message}`, error);
  if (status === undefined) {
    const isLate = error.cause instanceof errors.HeadersTimeoutError || error.cause instanceof errors.BodyTimeoutError;
    return isLate ? fail('PolicyServerTimeout', 'no answer in time') : fail('PolicyServerUnavailable', reason);
  }
  const message = `${path} answers ${reason}`;
  // An answer without JSON is a gateway's page while the server behind it is unavailable.
  if (status < 300) return fail('PolicyServerError', message);
  if (status === 401 || status === 403)
    return fail('PolicyServerWrong', `${message}; set POLICY_SERVER_API_KEY to its key`);
  if (status === 404 && path === MODELS) return noPolicyServer(url, reason);
  if (status >= 500) return fail('PolicyServerError', message);
  if (status === 429) return fail('PolicyServerBusy', message);
  if (status === 404 && /completions|generate/.test(path)) return fail('PolicyNotLoaded', message);
  return fail(CONTEXT_LENGTH.test(body) ? 'ContextLengthExceeded' : 'PolicyRequestRejected', message);
}

/** The failure of a request to /v1/models, which is the first. */
const noPolicyServer = (url: string, answer: string): OutsideFailure =>
  new OutsideFailure(
    'PolicyServerWrong',
    `policy server ${url}: no policy server answers there: ${MODELS} says ${answer.slice(0, 500)}; ` +
      'name the address of vLLM itself, without /v1 (policyServer.url, POLICY_SERVER_URL)',
  );

const VLLM_RANKS = [1, 8, 16, 32, 64, 128, 256, 320, 512];

/** Returns the smallest --max-lora-rank of vLLM that holds this rank. */
export const rankFor = (rank: number): number | undefined => VLLM_RANKS.find((one) => one >= rank);

const ADAPTER_FIX =
  'vLLM needs --enable-lora, VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, a --max-lora-rank of at least the rank, and the home folder (CAMPAIGN_HOME) ' +
  'under the same path or CAMPAIGN_STORE; see docs/gpu.md';

/** vLLM's message about an adapter in an answer with status 500; all others are about the server. */
const OF_THE_ADAPTER = /Call to add_lora method failed(?!.*out of memory)/is;

/** Returns AdapterRefused for a failed request to load an adapter, unless the server itself has failed (`works`). */
async function adapterRefusal(error: unknown, works: () => Promise<boolean>): Promise<unknown> {
  const { type, message, cause } = error as OutsideFailure;
  const words = `${message} ${cause instanceof ApiError ? cause.body : ''}`;
  const refused =
    type === 'PolicyRequestRejected' || (type === 'PolicyServerError' && OF_THE_ADAPTER.test(words) && (await works()));
  if (!refused) return error;
  return new OutsideFailure('AdapterRefused', `${message}; ${ADAPTER_FIX}`, error);
}
