/**
 * One policy server over HTTP: docs/policy-server.md. Invariant: one call, one request; nothing is retried here, and every
 * failure leaves as an OutsideFailure.
 */
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import { errors, Pool } from 'undici';
import { z } from 'zod';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { jsonText } from '../domain/messages';
import type { ScoreBody } from './wire';

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
  /** The body of a completion that only scores the ids that it is given, unchecked. */
  score(body: ScoreBody): Promise<unknown>;
  /** Names of the base model and of what is loaded; the base's root and the context where it tells them. */
  models(): Promise<{
    base: string;
    root?: string | undefined;
    contextTokens?: number | undefined;
    adapters: string[];
  }>;
  /** Throws AdapterRefused for one that it does not take, of a name that it has already too. */
  loadAdapter(adapter: { name: string; path: string }): Promise<void>;
  unloadAdapter(name: string): Promise<void>;
  /** How often a connection ended or an exchange failed by now: each time another server may have taken its place. */
  losses(): number;
  /** How often nobody was there by now: each time it may have been started otherwise. */
  absences(): number;
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
    data: z.array(
      z.object({
        id: z.string(),
        root: z.string().nullish(),
        parent: z.string().nullish(),
        max_model_len: z.number().nullish(),
      }),
    ),
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
 * taken from a policy server on the same machine (docs/decisions.md).
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
  let losses = 0;
  let absences = 0;
  pool.on('disconnect', (_origin, _targets, error) => {
    // One that we closed since it was idle says nothing as long as another one is open: that would have ended with the server.
    if (!(error instanceof errors.InformationalError) || pool.stats.connected === 0) losses++;
  });
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
      const failure = failedExchange({ url, error });
      if (failure.retryable) losses++;
      if (failure.type === 'PolicyServerUnavailable') absences++;
      throw failure;
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

    score: (body) => ask({ method: 'POST', path: '/v1/completions', body, timeoutMs: ADMIN_TIMEOUT_MS }),

    async models() {
      const text = await call({ method: 'GET', path: '/v1/models', timeoutMs: ADMIN_TIMEOUT_MS });
      const models = modelsAnswer.safeParse(text).data?.data ?? [];
      const base = models.find(({ parent }) => !parent);
      if (!base) throw noPolicyServer({ url, text });
      const adapters = models.flatMap(({ id, parent }) => (parent ? [id] : []));
      return { base: base.id, root: base.root ?? undefined, contextTokens: base.max_model_len ?? undefined, adapters };
    },

    loadAdapter: ({ name, path }) =>
      post('/v1/load_lora_adapter', { lora_name: name, lora_path: path }).catch(async (error: unknown) => {
        throw await adapterRefusal(error, reachable);
      }),
    unloadAdapter: (name) => post('/v1/unload_lora_adapter', { lora_name: name }),
    losses: () => losses,
    absences: () => absences,

    health,
    reachable,
    close: () => void pool.destroy(),
  };
}

/** vLLM tells it in words only; the last ones where the prompt just fills the context. */
const CONTEXT_LENGTH = /maximum context length|context_length_exceeded|max_tokens must be at least 1, got/i;
const MAX_TEXT = 500;

const errorSchema = z.object({ error: z.object({ message: z.string(), code: z.unknown().optional() }) });

/** An answer with a status other than 2xx; OpenAI's shape where it has it. */
export function refusal(answer: { url: string; path: string; status: number; text: string }): OutsideFailure {
  const { url, path, status, text } = answer;
  const { message: said, code } = errorOf(text);
  const message = `policy server ${url}: ${path} answers ${status} ${said}`;
  if (status === 401 || status === 403)
    return new OutsideFailure('PolicyServerWrong', `${message}; set POLICY_SERVER_API_KEY to its key`);
  if (status === 404 && path === '/v1/models') return noPolicyServer({ url, text });
  if (status >= 500) return new OutsideFailure('PolicyServerError', message);
  if (status === 429) return new OutsideFailure('PolicyServerBusy', message);
  if (status === 404 && path.endsWith('/completions')) return new OutsideFailure('PolicyNotLoaded', message);
  if (code === 'context_length_exceeded' || CONTEXT_LENGTH.test(said)) {
    return new OutsideFailure('ContextLengthExceeded', message);
  }
  return new OutsideFailure('PolicyRequestRejected', message);
}

function errorOf(text: string): { message: string; code?: unknown } {
  try {
    return errorSchema.parse(JSON.parse(text)).error;
  } catch {
    return { message: text.slice(0, MAX_TEXT) };
  }
}

/** No answer, or not all of it. */
function failedExchange({ url, error }: { url: string; error: unknown }): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
    return new OutsideFailure('PolicyServerTimeout', `policy server ${url}: no answer in time`, error);
  }
  return new OutsideFailure('PolicyServerUnavailable', `policy server ${url}: ${reasonOf(error)}`, error);
}

const invalidAnswer = ({ url, text }: { url: string; text: string }): OutsideFailure =>
  new OutsideFailure('PolicyAnswerInvalid', `policy server ${url}: the answer is no JSON: ${text.slice(0, MAX_TEXT)}`);

/** To /v1/models, which is asked first. */
const noPolicyServer = ({ url, text }: { url: string; text: string }): OutsideFailure =>
  new OutsideFailure(
    'PolicyServerWrong',
    `policy server ${url}: no policy server answers there: /v1/models says ${text.slice(0, MAX_TEXT)}; ` +
      'name the address of vLLM itself, without /v1 (policyServer.url, POLICY_SERVER_URL)',
  );

/** Ranks that vLLM can be started for. */
const VLLM_RANKS = [1, 8, 16, 32, 64, 128, 256, 320, 512];

/** How vLLM has to be started to take adapters of this rank. */
function rankFix(rank: number): string {
  const enough = VLLM_RANKS.find((one) => one >= rank);
  return enough === undefined
    ? `vLLM takes no rank above ${VLLM_RANKS.at(-1)}: lower training.lora.r`
    : `start vLLM with --max-lora-rank ${enough}`;
}

/** vLLM's words, and what mends it. */
const ADAPTER_FIXES: [RegExp, (...found: string[]) => string][] = [
  [/LoRA rank (\d+) is greater than max_lora_rank/, (rank) => rankFix(Number(rank))],
  [/No adapter found for/, () => 'the server has to see the home folder (CAMPAIGN_HOME) under the same path'],
  [/expected target modules in/, () => 'correct training.lora.targetModules, or --lora-target-modules of vLLM'],
  [/LoRA is not enabled/i, () => 'start vLLM with --enable-lora'],
  [
    / answers 40[45] /,
    () => 'start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True --enable-lora, or correct policyServer.url',
  ],
];

/** How vLLM begins what its engine says of an adapter; what else is a 500 is about the server. */
const OF_THE_ADAPTER = /Call to add_lora method failed(?!.*out of memory)/is;

/** Of a request to load an adapter. A server that has broken down is no refusal, and `works` asks it. */
async function adapterRefusal(error: unknown, works: () => Promise<boolean>): Promise<unknown> {
  const { type, message } = error as OutsideFailure;
  const refused =
    type === 'PolicyRequestRejected' ||
    (type === 'PolicyServerError' && OF_THE_ADAPTER.test(message) && (await works()));
  if (!refused) return error;
  const fixes = ADAPTER_FIXES.flatMap(([words, fix]) => {
    const found = words.exec(message);
    return found ? [fix(...found.slice(1))] : [];
  });
  return new OutsideFailure('AdapterRefused', [message, ...fixes.slice(0, 1)].join('; '), error);
}
