/**
 * A small HTTP server of the policy dialect (docs/policy-server.md), for tests of the client: models and adapters are real state,
 * completions are what the test says.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface DialectServer {
  url: string;
  /** What was asked, in order: `POST /v1/...` with its body. */
  requests: { call: string; body: Record<string, unknown> }[];
  adapters: Map<string, string>;
  /** Sockets that were opened. */
  connections: () => number;
  /** What it says which base model it serves; undefined: nothing. */
  root: string | undefined;
  /** Answers the next requests to score ids: the log-prob of each but the first; what it throws is refused. */
  score: (ids: readonly number[]) => number[];
  /** Answers the next completions; may be asynchronous. */
  complete: (body: Record<string, unknown>, response: ServerResponse) => unknown;
  /** Answers the next requests to load an adapter in place of the server, if it is there. */
  load?: (body: Record<string, unknown>, response: ServerResponse) => unknown;
  /** It takes from somewhere, under its name, what it is asked for and has not loaded. */
  fetches: boolean;
  /** Answers the requests that tell how a server samples: by itself as one that samples from all of its distribution. */
  probe: (body: Record<string, unknown>) => unknown;
  /** What /health answers. */
  health: number;
  close(): Promise<void>;
}

/** A base model's id. */
export const BASE = 'base@0123456789ab';

export const completion = (message: object, finish_reason = 'stop') => ({
  choices: [
    { message, finish_reason, token_ids: [5, 6], logprobs: { content: [{ logprob: -0.5 }, { logprob: -0.25 }] } },
  ],
  prompt_token_ids: [1, 2, 3],
});

/** A completion of tokens of which half the probability has the likeliest one; each is that one, or one that is not told otherwise. */
export function drawn(isLikeliest: readonly boolean[]): unknown {
  const likeliest = Array.from({ length: 20 }, (_, n) => ({ token: `t${n}`, logprob: n === 0 ? Math.log(0.5) : -12 }));
  const content = isLikeliest.map((first) => ({
    ...(first ? likeliest[0]! : { token: 'x', logprob: -13 }),
    top_logprobs: likeliest,
  }));
  const choice = { message: { content: 'x' }, finish_reason: 'length', token_ids: content.map(() => 5) };
  return { choices: [{ ...choice, logprobs: { content } }], prompt_token_ids: [1] };
}

export async function startDialectServer({ port = 0 } = {}): Promise<DialectServer> {
  let connections = 0;
  const server: Server = createServer((request, response) => void handle(request, response));
  server.on('connection', () => connections++);
  const self: DialectServer = {
    url: '',
    requests: [],
    adapters: new Map(),
    connections: () => connections,
    root: BASE,
    fetches: false,
    score: (ids) => ids.slice(1).map(() => -1),
    complete: () => completion({ role: 'assistant', content: 'hello' }),
    probe: ({ seed, max_tokens: tokens }) =>
      drawn(Array.from({ length: Number(tokens) }, () => Number(seed) % 2 === 0)),
    health: 200,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };

  const error = (response: ServerResponse, status: number, message: string, code: string | null = null) =>
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message, type: 'Error', param: null, code } }));

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Record<string, unknown>;
    const name = String(body['lora_name']);
    self.requests.push({ call: `${request.method} ${request.url}`, body });
    switch (request.url) {
      case '/health':
        return void response.writeHead(self.health).end();
      case '/v1/models': {
        const data = [
          { id: 'base', root: self.root },
          ...[...self.adapters.keys()].map((id) => ({ id, parent: 'base' })),
        ];
        return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
      }
      case '/v1/load_lora_adapter':
        if (self.load) return void self.load(body, response);
        if (self.adapters.has(name)) return void error(response, 400, `${name} has already been loaded`);
        self.adapters.set(name, String(body['lora_path']));
        return void response.end('ok');
      case '/v1/unload_lora_adapter':
        return void (self.adapters.delete(name) ? response.end('ok') : error(response, 404, 'unknown'));
      case '/v1/chat/completions': {
        const model = String(body['model']);
        if (model !== 'base' && self.fetches) self.adapters.set(model, 'fetched');
        if (model !== 'base' && !self.adapters.has(model)) return void error(response, 404, `no model ${model}`);
        const isProbe = body['top_logprobs'] !== undefined && Number(body['max_tokens']) > 1;
        const answer = await (isProbe ? self.probe(body) : self.complete(body, response));
        if (answer === undefined) return;
        return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      }
      case '/v1/completions': {
        const ids = body['prompt'] as number[];
        try {
          const scores = self.score(ids).map((logprob, n) => ({ [ids[n + 1]!]: { logprob } }));
          const answer = { choices: [{ prompt_logprobs: [null, ...scores] }] };
          return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
        } catch (refused) {
          return void error(response, 400, (refused as Error).message);
        }
      }
      default:
        return void error(response, 404, 'Not Found');
    }
  }

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  self.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return self;
}

/** Answers with an error, as the policy server words it. */
export const refuse =
  (status: number, error: object): DialectServer['complete'] =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
