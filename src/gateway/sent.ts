/**
 * How an answer goes out. Invariant: what goes wrong before a stream's first event is an error like any other, and afterwards it is the stream's last
 * event. What a slow client has not read is kept, as a whole answer would be: the policy server does not wait for it.
 */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { ServerResponse } from 'node:http';
import { type Answer, type ChatRequest, type Form, headOf, type Part, type StreamEvent } from './dialect';
import { errorEvent, type GatewayError } from './errors';

const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };

const textOf = (events: readonly StreamEvent[]): string =>
  events
    .map(({ name, data }) => {
      const line = `data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`;
      return name ? `event: ${name}\n${line}` : line;
    })
    .join('');

interface Asked {
  form: Form;
  request: ChatRequest;
  version: string;
}

/** An answer that is there already: whole, or as the events of a stream. */
export function sendAnswer(c: Context, { form, request, version, answer }: Asked & { answer: Answer }): Response {
  const head = headOf(request.model, version);
  if (!request.stream) return c.json(form.whole(head, answer));
  const teller = form.teller(head, request);
  return c.body(textOf([...teller.begin(), ...teller.part(answer), ...teller.end()]), 200, HEADERS);
}

/** One that is sent part by part. */
export function openStream(
  { outgoing, headers, path }: { outgoing: ServerResponse; headers: Record<string, string>; path: string },
  { form, request, version }: Asked,
) {
  const teller = form.teller(headOf(request.model, version), request);
  let begun = false;
  return {
    isBegun: () => begun,
    part(part: Part): void {
      const first = begun ? [] : teller.begin();
      if (!begun) outgoing.writeHead(200, { ...HEADERS, ...headers });
      begun = true;
      const text = textOf([...first, ...teller.part(part)]);
      if (text !== '' && !outgoing.destroyed) outgoing.write(text);
    },
    end(): Response {
      outgoing.end(textOf(teller.end()));
      return RESPONSE_ALREADY_SENT;
    },
    fail(error: GatewayError): void {
      if (!outgoing.destroyed) outgoing.end(textOf([errorEvent(path, error)]));
    },
  };
}
