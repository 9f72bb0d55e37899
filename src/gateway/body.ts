/** Bodies of requests. Invariant: whatever is sent, little of it is held, and nobody else is kept waiting while it is read. */
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import type { z } from 'zod';
import { DEEPEST, isTooDeep } from '../domain/messages';
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

/** Of a body, nested ones too: what is done with each of more would keep all others waiting. */
const MOST_VALUES = 100_000;
const valuesIn = (value: unknown): number =>
  typeof value === 'object' && value !== null ? Object.values(value).reduce((n, one) => n + valuesIn(one), 1) : 1;

function checkSize(body: unknown): void {
  if (typeof body !== 'object' || Array.isArray(body)) return; // which is no request
  let values = 0;
  for (const [name, value] of Object.entries(body ?? {})) {
    const field = name.slice(0, 100);
    if (isTooDeep(value)) throw badRequest(`${field}: it has over ${DEEPEST} levels; send a flatter one`, field);
    values += valuesIn(value);
    if (values > MOST_VALUES)
      throw badRequest(`${field}: the body has over ${MOST_VALUES} values here; send fewer`, field);
  }
}

/** Throws GatewayError, which names the first bad field. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw badRequest('the body is no JSON');
  }
  checkSize(body);
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = issue?.path.join('.') || null;
  throw badRequest(`${param ?? 'body'}: ${issue?.message ?? 'it can not be read'}`, param);
}
