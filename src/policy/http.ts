/** HTTP of the policy server through undici. It sends one request and repeats nothing, and no error holds the key. */
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import { reasonOf } from '../domain/failures';
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

  /** Returns the text of an answer with a 2xx status. Throws ApiError, or the reason of the abort. */
  async function text({ method = 'POST', path, body, timeoutMs, signal }: Request): Promise<string> {
    let status: number;
    let answer: string;
    try {
      const response = await dispatcher.request({
        origin,
        path: prefix + path,
        method,
        headers,
        body: body ? JSON.stringify(body) : null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        ...(signal && { signal }),
      });
      status = response.statusCode;
      answer = await response.body.text();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw new ApiError(shown(reasonOf(error)), { cause: error });
    }
    if (status >= 200 && status < 300) return answer;
    throw new ApiError(shown(`${status} ${wordsOf(answer)}`), { status, body: answer });
  }

  async function json(request: Request): Promise<unknown> {
    const body = await text(request);
    try {
      return JSON.parse(body);
    } catch (error) {
      throw new ApiError(shown(`the answer is no JSON (${reasonOf(error)}): ${body}`), { status: 200, body });
    }
  }

  return { text, json };
}

const errorSchema = jsonText.pipe(z.object({ error: z.object({ message: z.string() }) }));

/** Returns the message of an error of OpenAI's shape, else the text. */
const wordsOf = (body: string): string => errorSchema.safeParse(body).data?.error.message ?? body;
