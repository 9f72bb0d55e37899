/** Bodies of requests. Invariant: whatever is sent, little of it is held, and nobody else is kept waiting while it is read. */
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import type { z } from 'zod';
import { type JsonBounds, measureJson } from '../domain/json-size';
import { DEEPEST } from '../domain/messages';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../domain/plain-text';
import { badRequest, GatewayError } from './errors';

/** Its answer is read by nobody. */
export class ClientGone extends GatewayError {
  constructor() {
    super(408, 'the client has gone');
  }
}

/** Bodies that are being read hold no more than so many of the largest. */
const BODIES = 16;
/** What keeping a part costs beside its bytes: some send them one by one. */
const PART_BYTES = 128;

/** Of requests, their texts. Where they hold too much together, who has been sending longest is refused: those who send slowly keep nobody out. */
export function bodyReader({
  bodyBytes,
}: {
  bodyBytes: number;
}): (c: Context<{ Bindings: HttpBindings }>) => Promise<string> {
  const most = BODIES * bodyBytes;
  const reading = new Set<{ cost: number; refuse: (error: GatewayError) => void }>();
  let held = 0;
  return (c) =>
    new Promise((resolve, reject) => {
      const { incoming } = c.env;
      const parts: Buffer[] = [];
      let bytes = 0;
      const one = {
        cost: 0,
        refuse(error: GatewayError) {
          // Nothing more is read of it.
          incoming.off('data', take).pause();
          c.header('connection', 'close');
          end();
          reject(error);
        },
      };
      const end = () => void (reading.delete(one) && (held -= one.cost));
      const tooLarge = () => new GatewayError(413, `the body is over ${bodyBytes} bytes`, { code: 'body_too_large' });
      function take(part: Buffer): void {
        parts.push(part);
        bytes += part.length;
        one.cost += part.length + PART_BYTES;
        held += part.length + PART_BYTES;
        if (bytes > bodyBytes) one.refuse(tooLarge());
        for (const oldest of reading) {
          if (held <= most) break;
          oldest.refuse(
            new GatewayError(429, 'too much is being sent at once; send it again', {
              code: 'rate_limit_exceeded',
              retryAfterSeconds: 1,
            }),
          );
        }
      }
      reading.add(one);
      if (Number(c.req.header('content-length') ?? 0) > bodyBytes) return one.refuse(tooLarge());
      incoming
        .on('data', take)
        .on('error', () => undefined)
        .once('end', () => {
          end();
          resolve(Buffer.concat(parts).toString('utf8'));
        })
        .once('close', () => {
          end();
          reject(new ClientGone());
        });
    });
}

/** Bounds on a body. They are checked before it is parsed, which would keep all others waiting. */
export const BODY: JsonBounds = { values: 100_000, levels: DEEPEST };

/** Throws GatewayError, which names the first bad field and its value. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  const { exceeded, field } = measureJson(text, BODY);
  if (exceeded)
    throw badRequest(`${field ?? 'body'}: the body has over ${BODY[exceeded]} ${exceeded} here; send fewer`, field);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw badRequest(`the body is no JSON: ${shown(text)}`);
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) {
    const half = findHalfCharacter(parsed.data)?.join('.');
    if (half !== undefined) throw badRequest(`${half} ${HALF_CHARACTER_PROBLEM}`, half);
    return parsed.data;
  }
  const { path, message } = parsed.error.issues[0]!;
  const value = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key], body);
  const isMissing = value === undefined;
  const param = path.join('.') || null;
  throw badRequest(`${param ?? 'body'} is ${isMissing ? 'missing' : shown(JSON.stringify(value))}: ${message}`, param);
}

const shown = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}...` : text);
