/** The forms in which clients ask, by their paths, and where their keys are. */
import type { Context } from 'hono';
import { chat, type Form } from './dialect';
import { MESSAGES_PATH } from './errors';
import { messages } from './messages';

export const forms: readonly [path: string, form: Form][] = [
  ['/v1/chat/completions', chat],
  [MESSAGES_PATH, messages],
];

/** A bearer token, and what Anthropic's clients send in its place. */
export const keysIn = (c: Context): string[] =>
  [/^Bearer (.*)$/i.exec(c.req.header('authorization') ?? '')?.[1], c.req.header('x-api-key')].flatMap(
    (key) => key ?? [],
  );
