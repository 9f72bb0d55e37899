/**
 * The endpoint for agents' programs, in OpenAI's form, on the loopback interface. Invariants: a request's key alone names its rollout, whose policy answers
 * with the rollout's own sampling; a request whose client has gone is refused. The requests of a rollout are read one at a time, each after the answer to
 * the one before, which bounds memory. A rollout is notified of every error that its program gets.
 */
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { type Context as Call, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sha256 } from '../../store/hash';
import { createTurns } from '../../domain/concurrency';
import type { Context, Sampled } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import type { Answer } from '../../gateway/answer';
import { answerError, GatewayError, toClientError } from '../../gateway/errors';
import { bearerKey, CHAT_PATH, notFound, parseRequest } from '../../gateway/request';
import { sendAnswer } from '../../gateway/respond';

/** One request of a program to the model. */
export interface Asked {
  context: Context;
  /** Equal of requests that ask the same. */
  digest: string;
  /** Returns whether the program no longer waits for it. */
  isGone(): boolean;
  answer(message: AssistantMessage, sampled: Sampled): void;
  refuse(error: GatewayError): void;
}

/** A rollout that is being played. */
interface Player {
  onAsked(asked: Asked): void;
  /** Called when a request of its program is answered with an error. */
  onError(error: GatewayError, request: string): void;
}

export interface Endpoint {
  /** Returns the address without the `/v1` that OpenAI's clients want in it. */
  url(): Promise<string>;
  /** Sends requests with this key to the player until the returned function is called. */
  expect(key: string, player: Player): () => void;
  close(): Promise<void>;
}

/** The limit of a request. A conversation of a million tokens takes half of it. */
const MOST_BYTES = 16 * 1024 * 1024;
const HEADERS_MS = 60_000;
export const MODEL = 'trace';
/** The beginning of every rollout's key. */
export const KEY = 'rollout-';

export function openEndpoint(): Endpoint {
  const playing = new Map<string, Player>();
  const inTurn = createTurns();
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.onError((error, c) => refuse(c, toClientError(error)));
  app.notFound((c) => refuse(c, notFound(c)));
  app.get('/v1/models', (c) => c.json({ object: 'list', data: [modelOf(MODEL)] }));
  app.get('/v1/models/:name', (c) => c.json(modelOf(c.req.param('name'))));
  const limit = bodyLimit({
    maxSize: MOST_BYTES,
    onError: () => {
      throw new GatewayError(413, `body: it has more than ${MOST_BYTES} bytes; send a shorter conversation`);
    },
  });
  /** The one place that answers with an error. */
  function refuse(c: Call<{ Bindings: HttpBindings }>, error: GatewayError): Response {
    const { path, method } = c.req;
    // Probes for optional routes are no error of the agent, and a client that has disconnected does not read the answer.
    const isProbe = /^(GET|HEAD|OPTIONS)$/.test(method) && path !== CHAT_PATH;
    if (!isProbe && !c.env.outgoing.destroyed)
      for (const { onError } of sendersOf(c)) onError(error, `${method} ${path.slice(0, 200)}`);
    return answerError(c, error);
  }
  /** Returns the rollout that a request's key names. A key that never belonged to a rollout is an error of the program, so all running rollouts are returned. */
  function sendersOf(c: Call): Player[] {
    const key = bearerKey(c) ?? '';
    const own = playing.get(key);
    if (own) return [own];
    return key.startsWith(KEY) ? [] : [...playing.values()];
  }
  /** Throws where it names no rollout that is being played. */
  const keyOf = (c: Call): string => {
    const key = bearerKey(c);
    if (key !== undefined && playing.has(key)) return key;
    const problem = 'authorization: it is the key of no rollout that is being played';
    throw new GatewayError(401, problem, { code: 'invalid_api_key' });
  };
  app.post(
    CHAT_PATH,
    (c, next) => inTurn(keyOf(c), next),
    limit,
    async (c) => {
      const text = await c.req.text();
      const request = parseRequest(text);
      const { onAsked } = playing.get(keyOf(c))!;
      const { outgoing } = c.env;
      const answer = await new Promise<Answer>((resolve, refuse) =>
        onAsked({
          ...{ context: { messages: request.messages, tools: request.tools }, digest: sha256(text), refuse },
          isGone: () => outgoing.destroyed,
          answer: (message, sampled) => resolve(answerOf(message, sampled)),
        }),
      );
      return sendAnswer(c, { request, version: 'campaign' }, answer);
    },
  );

  let listening: Promise<Server> | undefined;
  async function listen(): Promise<Server> {
    // A body is read when it is its turn, however long that takes.
    const serverOptions = { requestTimeout: 0, headersTimeout: HEADERS_MS };
    const server = createAdaptorServer({ fetch: app.fetch, serverOptions }) as Server;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }

  return {
    async url() {
      const { port } = (await (listening ??= listen())).address() as AddressInfo;
      return `http://127.0.0.1:${port}`;
    },
    expect(key, player) {
      playing.set(key, player);
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

const modelOf = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'campaign' });

const answerOf = (message: AssistantMessage, { finishReason, promptTokens, completionTokens }: Sampled): Answer => ({
  message,
  finish: finishReason,
  usage: {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  },
});
