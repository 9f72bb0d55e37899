/**
 * The endpoint that agents' programs ask, in OpenAI's form or in Anthropic's, on the loopback interface. Invariant: who plays is known by its key alone, and a request
 * is answered by whoever plays that rollout, with the rollout's own sampling; a request that nobody waits for any more is refused.
 */
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { type Context as Call, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sha256 } from '../../artifacts/hash';
import type { Context, Sampled } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { type Answer, type ChatRequest, contextIn } from '../../gateway/dialect';
import { answerError, GatewayError, toldOf } from '../../gateway/errors';
import { forms, keysIn } from '../../gateway/messages';
import { sendAnswer } from '../../gateway/sent';
import { callsOf } from '../../policy/wire';

/** What a program asks of the model, once. */
export interface Asked {
  context: Context;
  request: ChatRequest;
  /** Equal of requests that ask the same. */
  digest: string;
  /** The program no longer waits for it. */
  readonly gone: boolean;
  answer(message: AssistantMessage, sampled: Sampled): void;
  refuse(error: GatewayError): void;
}

export interface Endpoint {
  /** Without the `/v1` that OpenAI's clients want in it. */
  url(): Promise<string>;
  /** Requests with this key are given to `onAsked`, until what is returned is called. */
  expect(key: string, onAsked: (asked: Asked) => void): () => void;
  close(): Promise<void>;
}

/** Of a request: a conversation of the longest context that there is. */
const MOST_BYTES = 64 * 1024 * 1024;
export const MODEL = 'trace';

export function openEndpoint(): Endpoint {
  const playing = new Map<string, (asked: Asked) => void>();
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.onError((error, c) => answerError(c, toldOf(error)));
  app.notFound((c) => {
    const fix = `the program has to ask ${forms.map(([path]) => `POST ${path}`).join(' or ')}`;
    return answerError(c, new GatewayError(404, `there is no ${c.req.method} ${c.req.path.slice(0, 200)}; ${fix}`));
  });
  app.use(bodyLimit({ maxSize: MOST_BYTES }));
  app.get('/v1/models', (c) =>
    c.json({ object: 'list', data: [{ id: MODEL, object: 'model', created: 0, owned_by: 'campaign' }] }),
  );
  for (const [path, form] of forms)
    app.post(path, async (c) => {
      const onAsked = keysIn(c).flatMap((key) => playing.get(key) ?? [])[0];
      if (!onAsked)
        throw new GatewayError(401, 'authorization: it is the key of no rollout that is being played', {
          code: 'invalid_api_key',
        });
      const text = await c.req.text();
      const request = form.read(text, c);
      const { message, sampled } = await answerTo(c, { request, digest: sha256(text) }, onAsked);
      return sendAnswer(c, { form, request, answer: answerOf(message, sampled), version: 'campaign' });
    });

  let listening: Promise<Server> | undefined;
  async function listen(): Promise<Server> {
    const server = createAdaptorServer({ fetch: app.fetch }) as Server;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }

  return {
    async url() {
      const { port } = (await (listening ??= listen())).address() as AddressInfo;
      return `http://127.0.0.1:${port}`;
    },
    expect(key, onAsked) {
      playing.set(key, onAsked);
      return () => void playing.delete(key);
    },
    async close() {
      const server = await listening;
      listening = undefined;
      server?.close();
      server?.closeAllConnections();
    },
  };
}

interface Told {
  message: AssistantMessage;
  sampled: Sampled;
}

const answerTo = (
  { env: { outgoing } }: Call<{ Bindings: HttpBindings }>,
  { request, digest }: Pick<Asked, 'request' | 'digest'>,
  onAsked: (asked: Asked) => void,
): Promise<Told> =>
  new Promise((answer, refuse) =>
    onAsked({
      context: contextIn(request),
      request,
      digest,
      get gone() {
        return outgoing.destroyed;
      },
      answer: (message, sampled) => answer({ message, sampled }),
      refuse,
    }),
  );

const answerOf = (message: AssistantMessage, { finishReason, promptTokens, completionTokens }: Sampled): Answer => {
  const calls = callsOf(message);
  return {
    content: message.content === '' && calls.length > 0 ? null : message.content,
    calls,
    finish: finishReason,
    logprobs: null,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
};
