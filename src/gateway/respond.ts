/** Sends answers in OpenAI's form: whole, or as the events of a stream once they are complete. */
import type { Context } from 'hono';
import { randomUUID } from 'node:crypto';
import { callsOf } from '../policy/wire';
import type { Answer } from './answer';
import type { ChatRequest } from './request';

const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };

export function sendAnswer(
  c: Context,
  { request, version }: { request: ChatRequest; version: string },
  { message, finish: end, usage }: Answer,
): Response {
  const calls = callsOf(message);
  const content = message.content === '' && calls.length > 0 ? null : message.content;
  // A call that can't be read is a part of the text.
  const finish = end === 'tool_calls' && calls.length === 0 ? 'stop' : end;
  const head = {
    id: `chatcmpl-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: request.model,
    system_fingerprint: version,
  };
  if (!request.stream) {
    const said = { role: 'assistant', content, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) };
    const choices = [{ index: 0, message: said, logprobs: null, finish_reason: finish }];
    return c.json({ ...head, object: 'chat.completion', choices, ...(usage && { usage }) });
  }
  const withUsage = Boolean(request.stream_options?.include_usage);
  const chunk = (choices: object[], counted: Answer['usage'] | null = null) => ({
    ...{ ...head, object: 'chat.completion.chunk', choices },
    ...(withUsage && { usage: counted }),
  });
  const part = (delta: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }]);
  const events = [
    part({ role: 'assistant', content: '', refusal: null }),
    ...(content ? [part({ content })] : []),
    ...calls.map((call, index) => part({ tool_calls: [{ index, ...call }] })),
    part({}, finish),
    ...(withUsage ? [chunk([], usage)] : []),
  ];
  const lines = [...events.map((event) => JSON.stringify(event)), '[DONE]'];
  return c.body(lines.map((line) => `data: ${line}\n\n`).join(''), 200, HEADERS);
}
