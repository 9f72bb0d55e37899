/**
 * A client of an OpenAI-compatible endpoint, and what its errors say. Invariants: it retries nothing and has no deadline of its own, which are
 * its user's; no text that it gives holds the key; a refusal names the field that mends it.
 */
import OpenAI, { APIConnectionError, APIError } from 'openai';
import { Agent, fetch } from 'undici';
import { type FailureType, OutsideFailure, reasonOf } from '../domain/failures';

/** The longest that a timer takes. */
const NEVER_MS = 2 ** 31 - 1;

/** Parts open their clients anew for every step: connections are the process's. */
const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

export function openClient({ url, key }: { url: string; key: string | undefined }): OpenAI {
  return new OpenAI({
    apiKey: key ?? 'none',
    baseURL: url.replace(/\/+$/, ''),
    maxRetries: 0,
    timeout: NEVER_MS,
    logLevel: 'off',
    fetch: fetch as unknown as typeof globalThis.fetch,
    fetchOptions: { dispatcher },
  });
}

/** The key in the environment variable that `field` names. Throws BadInput if there is none that can be sent. */
export function keyOf(field: string, variable: string | undefined): string | undefined {
  if (variable === undefined) return undefined;
  const key = process.env[variable]?.trim();
  const wrong = (problem: string) =>
    new OutsideFailure(
      'BadInput',
      `${field} is ${variable}, and this variable ${problem}; set it to the endpoint's key`,
    );
  if (!key) throw wrong('is not set');
  if (!/^[\x21-\x7e]+$/.test(key)) throw wrong('holds characters that no key has');
  return key;
}

const withoutKey = (text: string, key: string | undefined): string =>
  key === undefined ? text : text.replaceAll(key, '(key)');

/** What a request ended in, where it brought no answer. */
export interface ApiError {
  /** `unavailable`: no connection, no capacity, or a 4xx that says nothing of the request. `rejected`: it would be refused again. */
  kind: 'unavailable' | 'failed' | 'rejected';
  status?: number;
  reason: string;
  /** When to ask again, where the endpoint says so. */
  retryAfterMs?: number;
  /** The endpoint says that more is asked of it at once than it can do. */
  isCrowded: boolean;
}

/** Timeouts and conflicts of the endpoint's own, rate limits, and servers that are starting or going down. */
const UNAVAILABLE = new Set([408, 409, 425, 429, 502, 503, 504]);
const CROWDED = new Set([429, 503]);

/** `key`: stands in no reason, whatever the endpoint says. */
export function apiErrorOf(error: unknown, key: string | undefined): ApiError {
  const shown = (text: string) => oneLine(withoutKey(text, key));
  if (error instanceof APIConnectionError)
    return { kind: 'unavailable', reason: shown(reasonOf(rootOf(error))), isCrowded: false };
  const status = error instanceof APIError ? statusOf(error) : undefined;
  if (status === undefined) return { kind: 'failed', reason: shown(reasonOf(error)), isCrowded: false };
  const { headers, code, type, message } = error as APIError;
  // A limit that waiting does not lift.
  const spent = status === 429 && [code, type].includes('insufficient_quota');
  const retryAfterMs = headers && retryAfter(headers);
  return {
    kind: spent ? 'rejected' : kindOf(status),
    status,
    reason: shown(message),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    isCrowded: CROWDED.has(status),
  };
}

/** Some endpoints answer with 200 and say in the body what is wrong. */
function statusOf({ status, code }: APIError): number | undefined {
  const told = status ?? Number(code);
  return told >= 400 && told < 600 ? told : undefined;
}

function kindOf(status: number): ApiError['kind'] {
  if (UNAVAILABLE.has(status)) return 'unavailable';
  return status >= 500 ? 'failed' : 'rejected';
}

/** fetch says "fetch failed", and why it did in its cause. */
function rootOf(error: Error): unknown {
  let root: unknown = error;
  while (typeof root === 'object' && root !== null && 'cause' in root && root.cause !== undefined) root = root.cause;
  return root;
}

/** Milliseconds, seconds, or a date. */
function retryAfter(headers: Headers): number | undefined {
  const milliseconds = headers.get('retry-after-ms');
  const seconds = headers.get('retry-after');
  const told = [
    ...(milliseconds ? [Number(milliseconds)] : []),
    ...(seconds ? [Number(seconds) * 1000, Date.parse(seconds) - Date.now()] : []),
  ].find(Number.isFinite);
  return told === undefined ? undefined : Math.max(0, Math.round(told));
}

const SHOWN = 500;

/** One line; of a page, what it is. */
function oneLine(text: string): string {
  const page = /<(?:!doctype html|html)\b/i.test(text);
  const title = /<title[^>]*>([^<]*)/i.exec(text)?.[1]?.trim();
  const [status = ''] = /^\d{3} /.exec(text) ?? [];
  const words = page ? `${status}an HTML page${title ? ` ("${title}")` : ''} and no chat completion` : text;
  const line = words.replace(/\s+/g, ' ').trim();
  return line.length > SHOWN ? `${line.slice(0, SHOWN)} ...` : line;
}

/** Who asks an endpoint: as errors name it, and what its errors are for the campaign. */
export interface Caller {
  /** Of the campaign file, such as `analyst`. */
  field: string;
  spec: { model: string; url: string; apiKeyEnv?: string | undefined };
  key: string | undefined;
  failures: Record<ApiError['kind'], FailureType>;
  /** What mends a request that is rejected for what it asks. */
  remedy?: (error: ApiError) => string;
}

export const callerFailure = (
  { field, spec }: Pick<Caller, 'field' | 'spec'>,
  failure: { type: FailureType; problem: string; retryAfterMs?: number | undefined },
): OutsideFailure => {
  const { type, problem, retryAfterMs } = failure;
  return new OutsideFailure(type, `${field} (${spec.model} at ${spec.url}): ${problem}`, undefined, retryAfterMs);
};

/** The one mapping from what an endpoint does to failure types. No cause is passed on: what a client's error holds beside its message may be anything. */
export function endpointFailure(caller: Caller, error: unknown): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  const failed = apiErrorOf(error, caller.key);
  const { kind, reason, retryAfterMs } = failed;
  const fix = fixOf(caller, failed);
  const problem = fix === undefined ? reason : `${reason}; ${fix}`;
  return callerFailure(caller, { type: caller.failures[kind], problem, retryAfterMs });
}

function fixOf({ field, spec, remedy }: Caller, error: ApiError): string | undefined {
  const { kind, status, reason } = error;
  if (kind === 'failed' && /an HTML page/.test(reason))
    return `if it goes on, correct ${field}.url: the API's own, such as https://HOST/v1`;
  if (kind !== 'rejected') return undefined;
  if (status === 404) return `correct ${field}.model or ${field}.url`;
  if (status === 402 || status === 429) return 'add credit to its account';
  if (status !== 401 && status !== 403) return remedy?.(error);
  return spec.apiKeyEnv === undefined
    ? `name the variable that holds its key in ${field}.apiKeyEnv`
    : `put a key that is valid there into ${spec.apiKeyEnv}`;
}
