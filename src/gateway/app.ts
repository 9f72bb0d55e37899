/**
 * The gateway over HTTP. Invariants: every failure is an error object of OpenAI's form; a request whose client disconnects is cancelled at the policy
 * server too. For the open internet it needs a reverse proxy in front.
 */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono, type Context } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { timingSafeEqual } from 'hono/utils/buffer';
import type { ArtifactStore } from '../store/store';
import { orAborted } from '../domain/concurrency';
import { OutsideFailure, reasonOf } from '../domain/failures';
import type { PolicyClient } from '../policy/client';
import { createResolver } from '../rollout/resolve';
import type { RouterKind } from '../routing/router';
import { type Answer, readAnswer, partReader } from './answer';
import { type Conversation, createConversations, labelOf } from './conversations';
import { answerError, ClientGone, GatewayError, toClientError } from './errors';
import { createMetrics } from './metrics';
import { isLoopback, namesThisMachine } from './listen';
import { bearerKey, bodyFor, CHAT_PATH, type ChatRequest, notFound, parseRequest } from './request';
import { openStream, sendAnswer } from './respond';
import type { Served } from './served';

const CONVERSATION_HEADER = 'x-conversation-id';
/** Headers of an answer: the policy that plays the conversation, and its campaign. */
const POLICY_HEADER = 'x-campaign-policy';
const VERSION_HEADER = 'x-campaign-version';

export interface GatewayLimits {
  bodyBytes: number;
  /** Completions at once; requests over the limit get 429. */
  concurrency: number;
  /** Seconds from the whole request to the whole answer. */
  seconds: number;
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
  /** Required as a bearer token by all paths under /v1, and beyond loopback by metrics. */
  apiKey?: string;
  /** Logs failures for the operator, without texts of conversations. */
  log?: (line: string) => void;
}

export function createGateway(o: GatewayOptions) {
  const { client, store, routers, python, limits, apiKey, log = () => undefined } = o;
  let served = o.served;
  const stops = new Set<AbortController>();
  let draining = false;
  let running = 0;
  const conversations = createConversations({
    served: () => served,
    resolve: createResolver({ store, routers, context: { python, client } }),
    onRouted: (policy, seconds) => {
      metrics.routed.inc({ policy });
      metrics.routingSeconds.observe(seconds);
    },
  });
  const metrics = createMetrics(conversations.size);
  const created = Math.floor(Date.now() / 1000);

  const app = new Hono<Bindings>();
  app.onError((error, c) => {
    const told = toClientError(c.env.outgoing.destroyed ? new ClientGone() : error);
    if (told.status >= 500) log(reasonOf(error));
    return c.env.outgoing.headersSent ? RESPONSE_ALREADY_SENT : answerError(c, told);
  });
  app.notFound((c) => answerError(c, notFound(c)));
  const hasKey = async (c: Context): Promise<boolean> =>
    apiKey !== undefined && timingSafeEqual(bearerKey(c) ?? '', apiKey);
  /** A page of a browser on this machine can come from loopback under a name of its own. */
  const isLocal = (c: Context<Bindings>): boolean =>
    namesThisMachine(c.req.header('host')) && isLoopback(c.env.incoming.socket.remoteAddress);
  const requireKey = () => {
    throw new GatewayError(401, 'authorization: it is not the key of this gateway', { code: 'invalid_api_key' });
  };
  app.use(async (c, next) => {
    if (apiKey === undefined && !namesThisMachine(c.req.header('host')))
      throw new GatewayError(403, 'host: without a key only localhost and 127.0.0.1 are answered', { code: 'host' });
    await next();
  });
  app.get('/healthz', async (c) => {
    const ok = !draining && (await client.reachable());
    return c.json({ status: draining ? 'draining' : ok ? 'ok' : 'unavailable' }, ok ? 200 : 503);
  });
  app.get('/metrics', async (c) => {
    if (!isLocal(c) && !(await hasKey(c))) requireKey();
    return c.text(await metrics.registry.metrics(), 200, { 'content-type': metrics.registry.contentType });
  });
  app.use('/v1/*', async (c, next) => {
    if (apiKey !== undefined && !(await hasKey(c))) requireKey();
    await next();
  });
  app.get('/v1/models', (c) => c.json({ object: 'list', data: [...served.policies.keys()].map(modelOf) }));
  app.get('/v1/models/:name', (c) => {
    const name = c.req.param('name');
    if (served.policies.has(name)) return c.json(modelOf(name));
    throw new GatewayError(404, `model ${JSON.stringify(name.slice(0, 100))} is not served`, {
      code: 'model_not_found',
    });
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
    return counted(request, () => complete(c, request));
  });

  const modelOf = (id: string) => ({ id, object: 'model', created, owned_by: served.name });

  /** Runs a request within the limit of concurrent ones, and counts it by status. */
  async function counted(request: ChatRequest, work: () => Promise<Response>): Promise<Response> {
    const count = (status: number) =>
      metrics.requests.inc({ model: labelOf(request.model, served), status: String(status) });
    try {
      if (draining) throw new GatewayError(503, 'the gateway is going down', { retryAfterSeconds: 1 });
      if (running >= limits.concurrency)
        throw new GatewayError(429, `${limits.concurrency} requests are being answered; try again`, {
          code: 'rate_limit_exceeded',
          retryAfterSeconds: 1,
        });
      metrics.running.set(++running);
      try {
        const answer = await work();
        count(answer.status);
        return answer;
      } finally {
        metrics.running.set(--running);
      }
    } catch (error) {
      count(error instanceof ClientGone ? 499 : toClientError(error).status);
      throw error;
    }
  }

  async function complete(c: Context<Bindings>, request: ChatRequest): Promise<Response> {
    const begun = performance.now();
    return withEnd(c, async (signal) => {
      const conversation = await orAborted(
        conversations.of(request, c.req.header(CONVERSATION_HEADER)?.trim() || undefined),
        signal,
      );
      const { chosen: policy, served: now } = conversation;
      const headers = { [POLICY_HEADER]: encodeURI(policy), [VERSION_HEADER]: encodeURI(now.version) };
      const asked = { request, version: now.version };
      const count = (usage: Answer['usage']) => {
        metrics.seconds.observe({ policy }, (performance.now() - begun) / 1000);
        metrics.tokens.inc({ policy, kind: 'prompt' }, usage?.prompt_tokens ?? 0);
        metrics.tokens.inc({ policy, kind: 'completion' }, usage?.completion_tokens ?? 0);
      };
      const stream = openStream(c.env.outgoing, headers, asked);
      const read = partReader(request);
      let last: Pick<Answer, 'usage'> & { finish?: string } = {};
      try {
        const value = await answerOf(request, conversation, signal, (event) => {
          if (signal.aborted) return;
          const part = read(event);
          last = { ...last, ...part };
          stream.part(part);
        });
        if (!stream.isBegun()) {
          const answer = readAnswer(value, request);
          count(answer.usage);
          for (const [name, text] of Object.entries(headers)) c.header(name, text);
          return sendAnswer(c, asked, answer);
        }
        if (last.finish === undefined)
          throw new OutsideFailure('PolicyServerError', 'policy server: its stream broke off');
        count(last.usage);
        return stream.end();
      } catch (error) {
        if (stream.isBegun()) stream.fail(toClientError(signal.aborted ? signal.reason : error));
        throw error;
      }
    });
  }

  /** Cancels `work` when the client disconnects, the time is over, or the gateway ends. (AbortSignal.any and a Request's own signal are slow.) */
  async function withEnd(c: Context<Bindings>, work: (signal: AbortSignal) => Promise<Response>): Promise<Response> {
    const { outgoing } = c.env;
    const end = new AbortController();
    const gone = () => end.abort(new ClientGone());
    const late = () =>
      end.abort(
        new GatewayError(504, `no answer within ${limits.seconds} s; ask for fewer tokens`, { code: 'timeout' }),
      );
    if (outgoing.destroyed) gone();
    outgoing.once('close', gone);
    const timer = setTimeout(late, limits.seconds * 1000);
    stops.add(end);
    try {
      return await work(end.signal);
    } catch (error) {
      const told: unknown = end.signal.aborted ? end.signal.reason : error;
      // Events that still come are dropped.
      end.abort(told);
      throw told;
    } finally {
      clearTimeout(timer);
      outgoing.off('close', gone);
      stops.delete(end);
    }
  }

  /** Returns the whole answer, or calls `onEvent` for each event of a stream. */
  async function answerOf(
    request: ChatRequest,
    conversation: Conversation,
    signal: AbortSignal,
    onEvent: (event: unknown) => void,
  ): Promise<unknown> {
    const { policy, served } = conversation;
    const body = bodyFor(request, policy.prompt, served.sampling);
    // An adapter's loading goes on when one request is cancelled: others may wait for it.
    return orAborted(client.complete({ policy, body, signal, ...(request.stream && { onEvent }) }), signal);
  }

  return {
    app,
    /** Conversations that have begun keep their policy. */
    reload(newer: Served): void {
      served = newer;
      metrics.reloads.inc();
    },
    drain: () => void (draining = true),
    stop(): void {
      for (const end of stops) end.abort(new GatewayError(503, 'the gateway went down', { retryAfterSeconds: 1 }));
    },
  };
}

type Bindings = { Bindings: HttpBindings };
