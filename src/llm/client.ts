/**
 * The client of language models, simulated users and judges: `openai`, one for each endpoint. It sends a request once, and every request has a deadline.
 * Its errors become failures of the campaign here. No failure and no reply holds the key.
 */
import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionCreateParams } from 'openai/resources';
import { Agent, fetch, type Response } from 'undici';
import { z } from 'zod';
import { checkVariable } from '../domain/allowed';
import { modelUsageSchema, type ModelUsage, tokensOf } from '../domain/endpoints';
import { badInput, type FailureType, OutsideFailure, reasonOf } from '../domain/failures';
import { getOrMake } from '../domain/maps';
import { quoteLine, toWellFormed } from '../domain/plain-text';
import { callSchema } from '../policy/wire';

/** A model that the campaign asks: its field of the campaign file, and the failure for each way in which a request may end. */
export interface Caller {
  field: string;
  spec: {
    model: string;
    url: string;
    apiKeyEnv?: string | undefined;
    timeoutSeconds: number;
    /** Further fields of the request, where the file may set them. */
    parameters?: object;
  };
  failures: {
    /** No connection, no capacity, or an error of the server's own: the request is free. */
    unavailable: FailureType;
    late: FailureType;
    lost: FailureType;
    unusable: FailureType;
    rejected: FailureType;
  };
  /** Limit of a whole answer; `timeoutSeconds` limits each wait for data. */
  totalSeconds: number;
}

export interface Answer {
  text: string;
  refusal: string;
  calls: z.infer<typeof callSchema>[];
  /** `stop`, `length`, `content_filter`, `tool_calls` or another word of the endpoint. */
  finish: string;
  /** Estimated where the endpoint does not report it. */
  usage: ModelUsage;
}

interface AskOptions {
  signal?: AbortSignal | undefined;
  /** Called with the estimated usage of a request that is billed and brought no answer. */
  onLost?: ((usage: ModelUsage) => Promise<void> | void) | undefined;
}

const REACHABLE_MS = 5_000;

export type ModelClient = ReturnType<typeof openModelClient>;

/** Throws BadInput where the key's variable is not set, NotAllowed where this worker may not read it. */
export function openModelClient(caller: Caller) {
  const { field, spec, failures, totalSeconds } = caller;
  const key = keyOf(`${field}.apiKeyEnv`, spec);
  const client = openClient(spec, key, totalSeconds);

  const fail = (type: FailureType, problem: string, retryAfterMs?: number): OutsideFailure =>
    new OutsideFailure(type, `${field} (${spec.model} at ${spec.url}): ${problem}`, undefined, retryAfterMs);
  const shown = (text: string): string => quoteLine(text, key);

  function failureFor(error: unknown, isOverdue: boolean): OutsideFailure {
    if (isOverdue || isTimeout(error)) {
      const problem = isOverdue
        ? `no complete answer within ${totalSeconds} s`
        : `no data for ${spec.timeoutSeconds} s`;
      return fail(failures.late, `${problem}; raise ${field}.timeoutSeconds or lower ${field}.maxTokens`);
    }
    if (error instanceof APIConnectionError) return fail(failures.unavailable, shown(rootReason(error)));
    if (error instanceof NoCompletion || error instanceof SyntaxError) {
      const fix =
        `correct ${field}.url (the API's own, such as https://HOST/v1), or, for an endpoint that cannot stream, set ` +
        `${field}.parameters to { stream: null, stream_options: null }`;
      return fail(failures.unusable, `${shown(error.message)}; ${fix}`);
    }
    const status = statusOf(error);
    if (!(error instanceof APIError) || status === undefined) return fail(failures.lost, shown(rootReason(error)));
    const problem = shown(error.message);
    if (isRetryable(status, error)) return fail(failures.unavailable, problem, retryAfterMs(error.headers));
    const fix = fixFor(caller, status);
    return fail(failures.rejected, fix === undefined ? problem : `${problem}; ${fix}`);
  }

  return {
    fail,

    /** Returns whether the endpoint, and not a gateway in its place, answers a request that costs nothing. */
    async reachable(): Promise<boolean> {
      try {
        const url = `${spec.url.replace(/\/+$/, '')}/models`;
        const { status, body } = await fetch(url, { signal: AbortSignal.timeout(REACHABLE_MS), redirect: 'manual' });
        await body?.cancel();
        return status < 502 || status > 504;
      } catch {
        return false;
      }
    },

    /** Sends one request. Throws an OutsideFailure, or the reason of the abort. */
    async ask(body: object, { signal, onLost }: AskOptions = {}): Promise<Answer> {
      signal?.throwIfAborted();
      const overdue = AbortSignal.timeout(totalSeconds * 1000);
      const ends = AbortSignal.any([overdue, ...(signal ? [signal] : [])]);
      const answer: PartialAnswer = { text: '', refusal: '', thought: '', calls: [] };
      try {
        const parts = await client.chat.completions.create(body as ChatCompletionCreateParams, { signal: ends });
        for await (const part of partsOf(parts)) add(answer, part);
        // The client ends an aborted stream without an error.
        ends.throwIfAborted();
        if (answer.finish === undefined)
          throw new NoCompletion(`the answer broke off after ${answer.text.length} characters`);
      } catch (error) {
        // An answer with a reason for its end is complete, even if the connection broke or stayed open after it.
        if (answer.finish === undefined || signal?.aborted) {
          const isBilled = answer.isBegun || ends.aborted || isTimeout(error);
          if (isBilled) await onLost?.(usageOf(body, answer));
          signal?.throwIfAborted();
          throw failureFor(error, overdue.aborted);
        }
      }
      return {
        text: withoutKey(toWellFormed(answer.text), key),
        refusal: withoutKey(toWellFormed(answer.refusal), key),
        calls: answer.calls,
        finish: answer.finish,
        usage: answer.usage ?? usageOf(body, answer),
      };
    },
  };
}

/** Connections are kept for the next clients: each step opens its own. */
const agents = new Map<number, Agent>();

/** Returns connections whose requests end after so many milliseconds without data. */
const agentFor = (silenceMs: number): Agent =>
  getOrMake(agents, silenceMs, () => new Agent({ headersTimeout: silenceMs, bodyTimeout: silenceMs }));

function openClient(spec: Caller['spec'], key: string | undefined, totalSeconds: number): OpenAI {
  const { origin, pathname } = new URL(spec.url);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key ?? 'none'}` };
  const dispatcher = agentFor(spec.timeoutSeconds * 1000);
  async function send(input: string, init: object): Promise<Response> {
    // These headers replace the client's, which name the machine and take more values from OPENAI_* variables.
    return fetch(input, { ...init, headers, dispatcher, redirect: 'manual' }).catch((error: unknown) => {
      // The client takes the words of this error for an overdue answer.
      throw codeOf(error) === 'UND_ERR_CONNECT_TIMEOUT' ? new Error('no connection in time') : error;
    });
  }
  return new OpenAI({
    baseURL: origin + pathname.replace(/\/+$/, ''),
    apiKey: 'set by send()',
    maxRetries: 0,
    timeout: totalSeconds * 1000,
    logLevel: 'off',
    fetch: send as unknown as typeof globalThis.fetch,
  });
}

/** A message is an answer in one part. */
const saidSchema = z.object({
  content: z.string().nullish(),
  refusal: z.string().nullish(),
  /** Reasoning before the answer, under two names. */
  reasoning_content: z.string().nullish().catch(null),
  reasoning: z.string().nullish().catch(null),
});
const partSchema = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        delta: saidSchema.nullish(),
        message: saidSchema.extend({ tool_calls: z.array(callSchema).nullish() }).optional(),
      }),
    )
    .default([]),
  usage: z.unknown().optional(),
});
const usageSchema = z
  .object({
    prompt_tokens: z.number(),
    completion_tokens: z.number(),
    prompt_tokens_details: z.object({ cached_tokens: z.number().nullish() }).nullish().catch(null),
  })
  .transform((usage) => ({
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    completionTokens: usage.completion_tokens,
  }))
  .pipe(modelUsageSchema);

class NoCompletion extends Error {}

/** Maximum characters of an answer. Parsing a longer one would block the process. */
const LONGEST = 4_000_000;

async function* partsOf(answer: AsyncIterable<ChatCompletionChunk> | ChatCompletion): AsyncGenerator<unknown> {
  if (typeof answer === 'object' && Symbol.asyncIterator in answer) yield* answer;
  else yield answer;
}

interface PartialAnswer extends Pick<Answer, 'text' | 'refusal' | 'calls'> {
  thought: string;
  /** The endpoint has begun to answer: from here on the request is billed. */
  isBegun?: boolean;
  finish?: string;
  usage?: ModelUsage | undefined;
}

function add(answer: PartialAnswer, value: unknown): void {
  answer.isBegun = true;
  const part = partSchema.safeParse(value);
  if (!part.success) {
    const [issue] = part.error.issues;
    throw new NoCompletion(`the answer is no chat completion: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const { choices, usage } = part.data;
  const [{ delta, message, finish_reason: finish } = {} as Partial<(typeof choices)[0]>] = choices;
  const { content, refusal, reasoning_content, reasoning } = message ?? delta ?? {};
  answer.text += content ?? '';
  answer.refusal += refusal ?? '';
  answer.thought += reasoning_content ?? reasoning ?? '';
  answer.calls.push(...(message?.tool_calls ?? []));
  if (answer.text.length + answer.thought.length > LONGEST)
    throw new NoCompletion(`the answer is longer than ${LONGEST / 1e6} MB`);
  const ended = finish ?? (message && 'stop');
  if (ended) answer.finish = ended;
  answer.usage = usageSchema.safeParse(usage).data ?? answer.usage;
}

function usageOf(body: object, { text, refusal, thought, calls }: PartialAnswer): ModelUsage {
  const { messages, tools } = body as { messages: { content?: string }[]; tools?: object[] };
  const offered = tools ? JSON.stringify(tools).length : 0;
  const asked = messages.reduce((sum, { content = '' }) => sum + content.length, offered);
  const called = calls.length > 0 ? JSON.stringify(calls).length : 0;
  const completionTokens = tokensOf(text.length + refusal.length + thought.length + called);
  return { promptTokens: tokensOf(asked), cachedTokens: 0, completionTokens };
}

/** Shorter keys are not replaced in texts, because they may be ordinary words, such as `none` for servers that accept any key. */
const SHORTEST_KEY = 16;

/** Removes the key from a text: an endpoint may echo the request. */
const withoutKey = (text: string, key: string | undefined): string =>
  key === undefined || key.length < SHORTEST_KEY ? text : text.replaceAll(key, '(key)');

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}
const codeOf = (error: unknown): string | undefined => (rootOf(error) as NodeJS.ErrnoException).code;
/** Names of several addresses have errors without a message. */
const rootReason = (error: unknown): string => reasonOf(rootOf(error)) || (codeOf(error) ?? 'no connection');

const isTimeout = (error: unknown): boolean =>
  error instanceof APIConnectionTimeoutError || codeOf(error) === 'UND_ERR_BODY_TIMEOUT';

/** Some endpoints answer with 200 and put the status into the body. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof APIError)) return undefined;
  const status = Number(error.status ?? error.code);
  return status >= 300 && status < 600 ? status : undefined;
}

/** Timeouts and conflicts of the endpoint's own, and rate limits. */
const TEMPORARY = new Set([408, 409, 425, 429]);

function isRetryable(status: number, { code, type }: APIError): boolean {
  const isQuota = code === 'insufficient_quota' || type === 'insufficient_quota';
  return !isQuota && (TEMPORARY.has(status) || status >= 500);
}

function retryAfterMs(headers: Headers | undefined): number | undefined {
  const after = headers?.get('retry-after') ?? '';
  const milliseconds =
    after.trim() === '' || isNaN(Number(after)) ? Date.parse(after) - Date.now() : Number(after) * 1000;
  return Number.isFinite(milliseconds) ? Math.max(0, Math.round(milliseconds)) : undefined;
}

function fixFor({ field, spec }: Caller, status: number): string | undefined {
  if (status === 404 || status < 400) return `correct ${field}.model or ${field}.url`;
  if (status === 402 || status === 429) return 'add credit to its account';
  if (status === 401 || status === 403)
    return spec.apiKeyEnv === undefined
      ? `name the variable that holds its key in ${field}.apiKeyEnv`
      : `put a key that is valid there into ${spec.apiKeyEnv}`;
  return (
    spec.parameters &&
    `correct ${field}.model; lower ${field}.contextTokens if the request is too long; or set ${field}.parameters, where null ` +
      'leaves a field out: {max_tokens: null, max_completion_tokens: N}'
  );
}

/** Returns the endpoint's key from the environment variable that `field` names. Throws BadInput if there is none that can be sent, NotAllowed if this worker may not read it. */
export function keyOf(
  field: string,
  { url, apiKeyEnv: variable }: Pick<Caller['spec'], 'url' | 'apiKeyEnv'>,
): string | undefined {
  if (variable === undefined) return undefined;
  checkVariable(field, variable, url);
  const key = process.env[variable]?.trim();
  const wrong = (problem: string) =>
    badInput(`${field} is ${variable}, and this variable ${problem}; set it to the endpoint's key`);
  if (!key) throw wrong('is not set');
  if (!/^[\x21-\x7e]+$/.test(key)) throw wrong('holds characters that no key has');
  return key;
}
