/**
 * A client of an OpenAI-compatible endpoint, and what its errors say. Invariants: it retries nothing and has no deadline of its own, which are
 * its user's; no text that it gives holds the key.
 */
import OpenAI, { APIConnectionError, APIError } from 'openai';
import { Agent, fetch } from 'undici';
import { OutsideFailure, reasonOf } from '../domain/failures';

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
