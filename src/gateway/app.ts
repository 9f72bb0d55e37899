/**
 * The gateway over HTTP. Invariants: every failure is an error object of OpenAI's form; a request whose client disconnects is cancelled at the policy
 * server too. For the open internet it needs a reverse proxy in front.
 */
import type { HttpBindings } from '@hono/node-server';
import { Hono, type Context } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { timingSafeEqual } from 'hono/utils/buffer';
import type { ArtifactStore } from '../store/store';
import { orAborted } from '../domain/concurrency';
import { reasonOf } from '../domain/failures';
import type { PolicyClient } from '../policy/client';
import { createResolver } from '../rollout/resolve';
import type { RouterKind } from '../routing/router';
import { readAnswer } from './answer';
import { createConversations, unknownModel } from './conversations';
import { answerError, ClientGone, GatewayError, toClientError } from './errors';
import { namesThisMachine } from './listen';
import { bearerKey, bodyFor, CHAT_PATH, type ChatRequest, notFound, parseRequest } from './request';
import { sendAnswer } from './respond';
import type { Served } from './served';

const CONVERSATION_HEADER = 'x-conversation-id';
/** Header of an answer: the policy that plays the conversation. */
const POLICY_HEADER = 'x-campaign-policy';

export interface GatewayLimits {
  bodyBytes: number;
  /** Completions at once; requests over the limit get 429. */
  concurrency: number;
}

export interface GatewayOptions {
  served: Served;
  client: Pick<PolicyClient, 'complete' | 'reachable' | 'sample' | 'likeliest'>;
  /** Holds the router and its adapters. */
  store: ArtifactStore;
  routers: readonly RouterKind[];
  /** The Python interpreter of the trainer's virtual environment, for routers that ask it. */
  python: string;
  limits: GatewayLimits;
  /** Required as a bearer token by all paths under /v1. */
  apiKey?: string;
  /** Logs failures for the operator, without texts of conversations. */
  log?: (line: string) => void;
}

export function createGateway(o: GatewayOptions) {
  const { served, client, store, routers, python, limits, apiKey, log = () => undefined } = o;
  const running = new Set<AbortController>();
  let draining = false;
  const conversations = createConversations({
    served,
    resolve: createResolver({ store, routers, context: { python, client } }),
  });
  const created = Math.floor(Date.now() / 1000);

  const app = new Hono<Bindings>();
  app.onError((error, c) => {
    const told = toClientError(c.env.outgoing.destroyed ? new ClientGone() : error);
    if (told.status >= 500) log(reasonOf(error));
    return answerError(c, told);
  });
  app.notFound((c) => answerError(c, notFound(c)));
  app.use(async (c, next) => {
    if (apiKey === undefined && !namesThisMachine(c.req.header('host')))
      throw new GatewayError(403, 'host: without a key only localhost and 127.0.0.1 are answered', { code: 'host' });
    await next();
  });
  app.get('/healthz', async (c) => {
    const ok = !draining && (await client.reachable());
    return c.json({ status: draining ? 'draining' : ok ? 'ok' : 'unavailable' }, ok ? 200 : 503);
  });
  app.use('/v1/*', async (c, next) => {
    if (apiKey !== undefined && !(await timingSafeEqual(bearerKey(c) ?? '', apiKey)))
      throw new GatewayError(401, 'authorization: it is not the key of this gateway', { code: 'invalid_api_key' });
    await next();
  });
  app.get('/v1/models', (c) => c.json({ object: 'list', data: [...served.policies.keys()].map(modelOf) }));
  app.get('/v1/models/:name', (c) => {
    const name = c.req.param('name');
    if (served.policies.has(name)) return c.json(modelOf(name));
    throw unknownModel(name, served);
  });
  const limit = bodyLimit({
    maxSize: limits.bodyBytes,
    onError: () => {
      throw new GatewayError(413, `the body is over ${limits.bodyBytes} bytes`, { code: 'body_too_large' });
    },
  });
  app.post(CHAT_PATH, limit, async (c) => {
    // A page of a browser can't send this without being allowed to first.
    if (!/^application\/json\b/i.test(c.req.header('content-type') ?? ''))
      throw new GatewayError(415, 'content-type: send application/json');
    const request = parseRequest(await c.req.text());
    return complete(c, request);
  });

  const modelOf = (id: string) => ({ id, object: 'model', created, owned_by: served.name });

  /** Answers within the limits; cancels when the client disconnects or the gateway ends. (AbortSignal.any and a Request's own signal are slow.) */
  async function complete(c: Context<Bindings>, request: ChatRequest): Promise<Response> {
    if (draining) throw new GatewayError(503, 'the gateway is going down', { retryAfterSeconds: 1 });
    if (running.size >= limits.concurrency)
      throw new GatewayError(429, `${limits.concurrency} requests are being answered; try again`, {
        code: 'rate_limit_exceeded',
        retryAfterSeconds: 1,
      });
    const { outgoing } = c.env;
    const end = new AbortController();
    const { signal } = end;
    const gone = () => end.abort(new ClientGone());
    if (outgoing.destroyed) gone();
    outgoing.once('close', gone);
    running.add(end);
    try {
      const id = c.req.header(CONVERSATION_HEADER)?.trim() || undefined;
      const { policy, chosen } = await orAborted(conversations.of(request, id), signal);
      const body = bodyFor(request, policy.prompt, served.sampling);
      // An adapter continues to load when one request is cancelled, because others may wait for it.
      const value = await orAborted(client.complete({ policy, body, signal }), signal);
      c.header(POLICY_HEADER, encodeURI(chosen));
      return sendAnswer(c, { request, version: served.version }, readAnswer(value, request));
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      outgoing.off('close', gone);
      running.delete(end);
    }
  }

  return {
    app,
    drain: () => void (draining = true),
    stop(): void {
      for (const end of running) end.abort(new GatewayError(503, 'the gateway went down', { retryAfterSeconds: 1 }));
    },
  };
}

type Bindings = { Bindings: HttpBindings };
