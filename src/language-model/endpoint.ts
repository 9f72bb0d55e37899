/**
 * A client of an OpenAI-compatible endpoint, and what its errors say. Invariants: it retries nothing and has no deadline of its own, which are
 * its user's; no text that it gives holds the key; a refusal names the field that mends it.
 */
import OpenAI, { APIConnectionError, APIError } from 'openai';
import { Agent, fetch } from 'undici';
import type { LanguageModelSpec } from '../domain/endpoints';
import { type FailureType, isFailure, OutsideFailure, reasonOf } from '../domain/failures';

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

/** What went wrong with a request. */
export interface Trouble {
  /** `passing`: a 4xx that says nothing of the request. */
  what: 'no connection' | 'no capacity' | 'passing' | 'failed' | 'refused';
  status?: number;
  reason: string;
  /** When to ask again, where the endpoint says so. */
  retryAfterMs?: number;
}

/** Rate limits, and servers that are starting or going down. */
const NO_CAPACITY = new Set([429, 502, 503, 504]);
const PASSING = new Set([408, 409, 425]);

/** `key`: stands in no reason, whatever the endpoint says. */
export function troubleOf(error: unknown, key: string | undefined): Trouble {
  const shown = (text: string) => oneLine(withoutKey(text, key));
  if (error instanceof APIConnectionError) return { what: 'no connection', reason: shown(reasonOf(rootOf(error))) };
  const status = error instanceof APIError ? statusOf(error) : undefined;
  if (status === undefined) return { what: 'failed', reason: shown(reasonOf(error)) };
  const { headers, code, type, message } = error as APIError;
  // A limit that waiting does not lift.
  const spent = status === 429 && [code, type].includes('insufficient_quota');
  const retryAfterMs = headers && retryAfter(headers);
  return {
    what: spent ? 'refused' : whatOf(status),
    status,
    reason: shown(message),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

/** Whether the endpoint says that more is asked of it at once than it can do. */
export function isCrowded(error: unknown): boolean {
  if (!(error instanceof APIError)) return false;
  const status = statusOf(error);
  return status === 429 || status === 503;
}

/** Some endpoints answer with 200 and say in the body what is wrong. */
function statusOf({ status, code }: APIError): number | undefined {
  const said = status ?? Number(code);
  return said >= 400 && said < 600 ? said : undefined;
}

function whatOf(status: number): Trouble['what'] {
  if (NO_CAPACITY.has(status)) return 'no capacity';
  if (PASSING.has(status)) return 'passing';
  return status >= 500 ? 'failed' : 'refused';
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

/** What mends a refusal that says nothing of the question itself. */
export function remedyOf(o: { field: string; apiKeyEnv: string | undefined; status: number }): string | undefined {
  const { field, apiKeyEnv, status } = o;
  if (status === 404) return `correct ${field}.model or ${field}.url`;
  if (status === 402 || status === 429) return 'add credit to its account';
  if (status !== 401 && status !== 403) return undefined;
  return apiKeyEnv === undefined
    ? `name the variable that holds its key in ${field}.apiKeyEnv`
    : `put a key that is valid there into ${apiKeyEnv}`;
}

/** A model as errors name it: `field` is that of the campaign file, such as `analyst`. */
export interface Named {
  field: string;
  spec: LanguageModelSpec;
  key: string | undefined;
}

export const modelFailure = (
  { field, spec }: Pick<Named, 'field' | 'spec'>,
  failure: { type: FailureType; problem: string; retryAfterMs?: number | undefined },
): OutsideFailure => {
  const { type, problem, retryAfterMs } = failure;
  return new OutsideFailure(type, `${field} (${spec.model} at ${spec.url}): ${problem}`, undefined, retryAfterMs);
};

/** What every request would meet, as a refused key: it is about the campaign, and no capability's or pass's own. */
export function sentKeyOf(named: Pick<Named, 'field' | 'spec'>): string | undefined {
  const { field, spec } = named;
  try {
    return keyOf(`${field}.apiKeyEnv`, spec.apiKeyEnv);
  } catch (error) {
    if (!isFailure(error, 'BadInput')) throw error;
    throw modelFailure(named, { type: 'LanguageModelRejected', problem: error.message });
  }
}

/** No cause is passed on: what a client's error holds beside its message may be anything. */
export function failureOf(named: Named, error: unknown): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  const { what, status, reason, retryAfterMs } = troubleOf(error, named.key);
  if (what === 'no connection' || what === 'no capacity' || what === 'passing')
    return modelFailure(named, { type: 'LanguageModelUnavailable', problem: reason, retryAfterMs });
  if (what === 'failed' || status === undefined)
    return modelFailure(named, {
      type: 'LanguageModelFailed',
      problem: `${reason}${pageFix(named, reason)}`,
      retryAfterMs,
    });
  const problem = `${reason}; ${remedy(named, { status, reason })}`;
  return modelFailure(named, { type: 'LanguageModelRejected', problem });
}

const pageFix = ({ field }: Named, reason: string): string =>
  /an HTML page/.test(reason) ? `; if it goes on, correct ${field}.url: the API's own, such as https://HOST/v1` : '';

/** Each try is paid for. */
export const noMore = ({ field, spec }: Named, { failure, times }: { failure: OutsideFailure; times: number }) => {
  const fix = `raise ${field}.timeoutSeconds (${spec.timeoutSeconds}), lower ${field}.maxTokens (${spec.maxTokens}) or see to its endpoint`;
  const message = `${failure.message}; ${times} times in a row, so this question is not asked again: ${fix}, and run the same command`;
  return new OutsideFailure('RepliesLost', message);
};

export const silent = (named: Named): OutsideFailure => {
  const { timeoutSeconds } = named.spec;
  const problem = `no word of a reply for ${timeoutSeconds} s (${named.field}.timeoutSeconds)`;
  return modelFailure(named, { type: 'LanguageModelFailed', problem });
};

/** Fields of a request that not every model takes, and what is sent in their place. */
const REPLACED: Record<string, string> = { max_tokens: ', max_completion_tokens: N' };

function remedy({ field, spec }: Named, { status, reason }: { status: number; reason: string }): string {
  const known = remedyOf({ field, apiKeyEnv: spec.apiKeyEnv, status });
  if (known) return known;
  if (
    status === 413 ||
    /context.{0,20}(length|window|size)|(prompt|input|request).{0,20}too (long|large)/i.test(reason)
  )
    return `lower ${field}.contextTokens (${spec.contextTokens}), of which ${field}.maxTokens (${spec.maxTokens}) are the reply's`;
  const refused = [
    'max_tokens',
    'temperature',
    'seed',
    'stream_options',
    'stream',
    ...Object.keys(spec.parameters),
  ].find((name) => new RegExp(`\\b${name}\\b`).test(reason));
  return refused === undefined
    ? `correct ${field}.model or ${field}.parameters`
    : `if it does not take ${refused}, set ${field}.parameters: {${refused}: null${REPLACED[refused] ?? ''}}`;
}
