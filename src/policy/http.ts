/** HTTP of the policy server through undici. It sends one request and repeats nothing, and no error holds the key. */
import { Readable } from 'node:stream';
import { APIError } from 'openai';
import { Stream } from 'openai/core/streaming';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { quoteLine } from '../domain/plain-text';

/** A request that brought no answer, or one that can't be read: then the status is 200. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** Private, so that no log shows it with the error: it may repeat the request. */
  readonly #body: string;
  readonly status: number | undefined;

  constructor(message: string, o: { status?: number; body?: string; cause?: unknown } = {}) {
    super(message, { cause: o.cause });
    this.status = o.status;
    this.#body = o.body ?? '';
  }

  get body(): string {
    return this.#body;
  }
}

interface Request {
  method?: 'GET' | 'POST';
  path: string;
  body?: object;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/** Paths of requests follow that of `url`. */
export function openHttpServer(o: { url: string; key?: string | undefined; dispatcher: Dispatcher }) {
  const { key, dispatcher } = o;
  const { origin, pathname } = new URL(o.url);
  const prefix = pathname.replace(/\/+$/, '');
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key ?? 'none'}` };
  const shown = (text: string): string => quoteLine(text, key);

  async function send({ method = 'POST', path, body, timeoutMs, signal }: Request) {
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
    throw refusal(answer.statusCode, await answer.body.text());
  }

  const refusal = (status: number, body: string): ApiError =>
    new ApiError(shown(`${status} ${wordsOf(body)}`), { status, body });

  /** Errors of `work` become ApiErrors, but for those of the caller. */
  async function exchange<Result>(signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof ApiError || error instanceof OutsideFailure) throw error;
      // The body of an event says what is wrong.
      if (error instanceof APIError) throw refusal(statusIn(error.code), JSON.stringify({ error: error.error }));
      const isMalformed = error instanceof SyntaxError;
      throw new ApiError(shown(reasonOf(rootOf(error))), { cause: error, ...(isMalformed && { status: 200 }) });
    }
  }

  /** Some servers answer with 200 and put the error into the body. */
  function parse(text: string): unknown {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw new ApiError(shown(`the answer is no JSON (${reasonOf(error)}): ${text}`), { status: 200, body: text });
    }
    const told = (value as { error?: { code?: unknown } } | null)?.error;
    if (told) throw refusal(statusIn(told.code), text);
    return value;
  }

  const text = (request: Request): Promise<string> =>
    exchange(request.signal, async () => (await send(request)).body.text());

  return {
    /** Returns the text of an answer with a 2xx status. Throws ApiError, or the reason of the abort. */
    text,
    json: async (request: Request): Promise<unknown> => parse(await text(request)),
    /** Calls `onEvent` for each event of a stream and returns undefined; returns the value of an answer that is no stream. */
    async stream(request: Request, onEvent: (event: unknown) => void): Promise<unknown> {
      const { signal } = request;
      const { headers: from, body } = await exchange(signal, () => send(request));
      if (!/event-stream/i.test(String(from['content-type']))) return parse(await exchange(signal, () => body.text()));
      const response = new Response(Readable.toWeb(body) as ReadableStream);
      await exchange(signal, async () => {
        for await (const event of Stream.fromSSEResponse(response, new AbortController())) onEvent(event);
      });
      // An aborted stream ends without an error.
      signal?.throwIfAborted();
      return undefined;
    },
  };
}

function statusIn(code: unknown): number {
  const status = Number(code);
  return status >= 400 && status < 600 ? status : 200;
}

/** "fetch failed" has its reason in its cause. */
function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof Error && root.cause !== undefined) root = root.cause;
  return root;
}

const errorSchema = jsonText.pipe(z.object({ error: z.object({ message: z.string() }) }));

/** Returns the message of an error of OpenAI's shape, else the text. */
const wordsOf = (body: string): string => errorSchema.safeParse(body).data?.error.message ?? body;
