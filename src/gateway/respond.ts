/**
 * Sends answers in OpenAI's form. Invariant: an error before a stream's first event is an error like any other, and afterwards it is the stream's last
 * event. What a slow client has not read is kept, as a whole answer would be: the policy server does not wait for it.
 */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Answer, Part, Usage } from './answer';
import { errorBody, type GatewayError } from './errors';
import type { ChatRequest } from './request';

const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };
const DONE = 'data: [DONE]\n\n';

const toEvents = (values: readonly object[]): string =>
  values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join('');

interface Asked {
  request: ChatRequest;
  version: string;
}

const headOf = ({ request: { model }, version }: Asked) => ({
  id: `chatcmpl-${randomUUID()}`,
  created: Math.floor(Date.now() / 1000),
  model,
  system_fingerprint: version,
});

/** Sends an answer that is complete, whole or as the events of a stream. */
export function sendAnswer(c: Context, asked: Asked, answer: Answer): Response {
  if (asked.request.stream) {
    const chunks = createChunks(asked);
    return c.body(chunks.first() + chunks.next(answer) + chunks.last(), 200, HEADERS);
  }
  const { content, calls, finish, logprobs, usage } = answer;
  return c.json({
    ...headOf(asked),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) },
        logprobs,
        finish_reason: finish,
      },
    ],
    ...(usage && { usage }),
  });
}

export function openStream(outgoing: ServerResponse, headers: Record<string, string>, asked: Asked) {
  const chunks = createChunks(asked);
  let begun = false;
  return {
    isBegun: () => begun,
    part(part: Part): void {
      const first = begun ? '' : chunks.first();
      if (!begun) outgoing.writeHead(200, { ...HEADERS, ...headers });
      begun = true;
      const text = first + chunks.next(part);
      if (text !== '' && !outgoing.destroyed) outgoing.write(text);
    },
    end(): Response {
      outgoing.end(chunks.last());
      return RESPONSE_ALREADY_SENT;
    },
    fail(error: GatewayError): void {
      if (!outgoing.destroyed) outgoing.end(toEvents([errorBody(error)]));
    },
  };
}

/** Formats the events of a stream: the first one, those of a part, and the last ones. */
function createChunks(asked: Asked) {
  const withUsage = Boolean(asked.request.stream_options?.include_usage);
  const head = { ...headOf(asked), object: 'chat.completion.chunk' };
  const chunk = (delta: object, more: object = {}) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...more }],
    ...(withUsage && { usage: null }),
  });
  let usage: Usage | null = null;
  return {
    first: () => toEvents([chunk({ role: 'assistant', content: '', refusal: null })]),
    next({ content, calls = [], logprobs = null, finish, usage: newest }: Part): string {
      usage = newest ?? usage;
      return toEvents([
        ...(content || logprobs ? [chunk({ content: content ?? '' }, { logprobs })] : []),
        ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
        ...(finish ? [chunk({}, { finish_reason: finish })] : []),
      ]);
    },
    last: () => toEvents(withUsage ? [{ ...head, choices: [], usage }] : []) + DONE,
  };
}
