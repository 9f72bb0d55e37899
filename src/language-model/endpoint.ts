/**
 * The one client of the OpenAI dialect, for language models, simulated users, judges and policy servers. It sends one request and repeats nothing:
 * whoever asks knows whether to ask again (domain/failures.ts). No error that leaves it holds the key.
 */
import { createParser } from 'eventsource-parser';
import { Agent, type Dispatcher } from 'undici';
import { checkVariable } from '../domain/allowed';
import { type FailureType, OutsideFailure, reasonOf } from '../domain/failures';
import { plainLine } from '../domain/plain-text';
import { limited } from '../domain/concurrency';

/** Timeouts and conflicts of the endpoint's own, rate limits, and servers that are starting or going down. */
const TEMPORARY = new Set([408, 409, 425, 429, 502, 503, 504]);
const CROWDED = new Set([429, 503]);
/** A limit that waiting does not lift. */
const QUOTA = /insufficient_quota/;

/** A request that brought no answer, or none that can be read: then the status is 200. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** Private, so that no log shows it with the error: it may repeat what was asked. */
  readonly #body: string;
  /** Undefined where no answer came. */
  readonly status: number | undefined;
  /** When to ask again, where the endpoint says so. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    o: { status?: number; body?: string; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: o.cause });
    this.status = o.status;
    this.#body = o.body ?? '';
    this.retryAfterMs = o.retryAfterMs;
  }

  get body(): string {
    return this.#body;
  }

  /** No connection, no capacity, or a 4xx that says nothing of the request. */
  get isUnavailable(): boolean {
    return this.status === undefined || (TEMPORARY.has(this.status) && !QUOTA.test(this.body));
  }

  /** The endpoint says that more is asked of it at once than it can do. */
  get isCrowded(): boolean {
    return CROWDED.has(this.status ?? 0);
  }

  get retryable(): boolean {
    const { status = 0 } = this;
    return this.isUnavailable || status < 300 || status >= 500;
  }
}

interface Request {
  method?: 'GET' | 'POST';
  path: string;
  body?: object;
  /** Without it the request has no deadline but its signal's. */
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

interface Heard {
  /** What it throws ends the stream. */
  onEvent: (value: unknown) => void;
  /** Of an answer that is no stream, and at its beginning of one that is. */
  onBytes?: (bytes: number) => void;
}

export interface Endpoint {
  /** The text of an answer that is no refusal. Throws ApiError, or the reason of the abort. */
  text(request: Request): Promise<string>;
  /** What the answer's JSON holds. */
  json(request: Request): Promise<unknown>;
  /** The value of an answer that is no stream; of a stream `heard.onEvent` is told each value, and nothing is left to answer. */
  stream(request: Request, heard: Heard): Promise<unknown>;
}

/** Parts open their clients anew for every step: connections are the process's. */
const shared = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

/** `url`: of which paths are the rest. */
export function openEndpoint(o: { url: string; key?: string | undefined; dispatcher?: Dispatcher }): Endpoint {
  const { key, dispatcher = shared } = o;
  const { origin, pathname } = new URL(o.url);
  const prefix = pathname.replace(/\/+$/, '');
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key ?? 'none'}` };
  const shown = (text: string): string => oneLine(key === undefined ? text : text.replaceAll(key, '(key)'));
  const malformed = (problem: string, body: string) => new ApiError(shown(problem), { status: 200, body });

  async function send({ method = 'POST', path, body, timeoutMs = 0, signal }: Request) {
    try {
      const answer = await dispatcher.request({
        origin,
        path: prefix + path,
        method,
        headers,
        body: body ? JSON.stringify(body) : null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        ...(signal && { signal }),
      });
      if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
      throw refusal(answer.statusCode, await answer.body.text(), answer.headers);
    } catch (error) {
      throw exchangeError(error, signal);
    }
  }

  function exchangeError(error: unknown, signal: AbortSignal | undefined): unknown {
    if (error instanceof ApiError) return error;
    if (signal?.aborted) return signal.reason;
    return new ApiError(shown(reasonOf(rootOf(error))), { cause: error });
  }

  function refusal(status: number, body: string, from: Headers): ApiError {
    return new ApiError(shown(`${status} ${wordsOf(body)}`), { status, body, retryAfterMs: retryAfter(from) });
  }

  /** Some endpoints answer with 200 and say in the body what is wrong. */
  function parse(text: string, from: Headers): unknown {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      if (text.trim() === '') throw malformed('the answer is empty', text);
      throw malformed(`the answer is no JSON (${reasonOf(error)}): ${text}`, text);
    }
    const told = (value as { error?: { code?: unknown } } | null)?.error;
    if (!told) return value;
    const status = Number(told.code);
    throw refusal(status >= 400 && status < 600 ? status : 200, text, from);
  }

  async function text(request: Request): Promise<string> {
    const { body } = await send(request);
    return body.text().catch((error: unknown) => {
      throw exchangeError(error, request.signal);
    });
  }

  return {
    text: (request) => limited(text(request)),
    json: async (request) => parse(await limited(text(request)), {}),
    async stream(request, { onEvent, onBytes }) {
      const { headers: from, body } = await send(request);
      const decoder = new TextDecoder();
      let isEvents = /event-stream/i.test(String(from['content-type']));
      let isDone = false;
      let whole = '';
      const parser = createParser({
        onEvent({ data }) {
          isDone ||= data.startsWith('[DONE]');
          if (!isDone) onEvent(parse(data, from));
        },
      });
      function take(bytes: Buffer): void {
        whole += decoder.decode(bytes, { stream: true });
        isEvents ||= BEGINS_A_STREAM.test(whole);
        if (!isEvents) return onBytes?.(bytes.length);
        parser.feed(whole);
        whole = '';
      }
      onBytes?.(0);
      // Of an async iterator each event would cost as much as all else that is done with it.
      await new Promise<void>((resolve, reject) => {
        body
          .on('data', (bytes: Buffer) => {
            if (isDone) return;
            try {
              take(bytes);
            } catch (error) {
              reject(error as Error);
              body.destroy();
            }
            if (!isDone) return;
            resolve();
            // What comes behind the end is read, so that the connection can be used again, unless the endpoint leaves it open.
            const timer = setTimeout(() => body.destroy(), REST_MS).unref();
            body.once('close', () => clearTimeout(timer));
          })
          .once('end', resolve)
          .on('error', reject);
      });
      return isEvents ? undefined : parse(whole, from);
    },
  };
}

type Headers = Dispatcher.ResponseData['headers'];

const REST_MS = 1000;

/** Some call their streams plain text. */
const BEGINS_A_STREAM = /^\s*(data|event|id|retry)?:/;

/** Clients say "fetch failed", and why it did in its cause. */
function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof Error && root.cause !== undefined) root = root.cause;
  return root;
}

/** OpenAI's shape where it has it. */
function wordsOf(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: { message?: unknown } };
    if (typeof error?.message === 'string') return error.message;
  } catch {
    // Its text is shown.
  }
  return body;
}

/** Milliseconds, seconds, or a date. */
function retryAfter(headers: Headers): number | undefined {
  const [milliseconds, seconds] = [headers['retry-after-ms'], headers['retry-after']].map((value) => value?.toString());
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
  const line = plainLine(words.replace(/\s+/g, ' ')).trim();
  return line.length > SHOWN ? `${line.slice(0, SHOWN)} ...` : line;
}

/** The endpoint's key, from the environment variable that `field` names. Throws BadInput if there is none that can be sent, NotAllowed if this worker may not. */
export function keyOf(
  field: string,
  { url, apiKeyEnv: variable }: Pick<Caller['spec'], 'url' | 'apiKeyEnv'>,
): string | undefined {
  if (variable === undefined) return undefined;
  checkVariable(field, variable, url);
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

/** Who asks an endpoint: as errors name it, and what its errors are for the campaign. */
export interface Caller {
  /** Of the campaign file, such as `analyst`. */
  field: string;
  spec: { model: string; url: string; apiKeyEnv?: string | undefined };
  /** `unusable`: of an answer that is no completion, where it is another failure than a 5xx. */
  failures: Record<'unavailable' | 'failed' | 'rejected', FailureType> & { unusable?: FailureType };
  /** What mends a request that is rejected for what it asks. */
  remedy?: (error: ApiError) => string;
}

export const callerFailure = (
  { field, spec }: Pick<Caller, 'field' | 'spec'>,
  { type, problem, retryAfterMs }: { type: FailureType; problem: string; retryAfterMs?: number | undefined },
): OutsideFailure =>
  new OutsideFailure(type, `${field} (${spec.model} at ${spec.url}): ${problem}`, undefined, retryAfterMs);

/** The failure of a language model, a simulated user or a judge. */
export function endpointFailure(caller: Caller, error: unknown): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  const failed = error instanceof ApiError ? error : new ApiError(reasonOf(error), { status: 200 });
  const fix = fixOf(caller, failed);
  const problem = fix === undefined ? failed.message : `${failed.message}; ${fix}`;
  return callerFailure(caller, {
    type: failureType(caller.failures, failed),
    problem,
    retryAfterMs: failed.retryAfterMs,
  });
}

function failureType({ unavailable, failed, rejected, unusable = failed }: Caller['failures'], error: ApiError) {
  if (error.isUnavailable) return unavailable;
  if (!error.retryable) return rejected;
  return error.status! >= 500 ? failed : unusable;
}

function fixOf({ field, spec, remedy }: Caller, error: ApiError): string | undefined {
  const { status = 0, retryable, message } = error;
  if (status < 400 && /an HTML page/.test(message))
    return `if it goes on, correct ${field}.url: the API's own, such as https://HOST/v1`;
  if (retryable) return undefined;
  if (status === 404 || status < 400) return `correct ${field}.model or ${field}.url`;
  if (status === 402 || status === 429) return 'add credit to its account';
  if (status !== 401 && status !== 403) return remedy?.(error);
  return spec.apiKeyEnv === undefined
    ? `name the variable that holds its key in ${field}.apiKeyEnv`
    : `put a key that is valid there into ${spec.apiKeyEnv}`;
}
