/**
 * A small HTTP server of the policy dialect (docs/policy-server.md), for tests of the client: models and adapters are real state,
 * completions are what the test says. Its answers have the form of vLLM's, which `make test-vllm` records.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { startLoopback } from './loopback';

/** Answers of vLLM, by what they are answers to. */
export type Recorded = Record<string, { status: number; body: unknown }>;
export const bodiesFile = join(__dirname, '..', 'fixtures', 'vllm.json');
const recorded = JSON.parse(readFileSync(bodiesFile, 'utf8')) as Recorded;
/** The fields of a body that tests read. */
interface VllmBody {
  error?: { message: string };
  detail?: string;
  data?: object[];
  choices?: { message: object; logprobs: { content: object[] } }[];
}
/** A recorded answer of vLLM. */
export const vllmAnswer = (to: string) => recorded[to] as { status: number; body: VllmBody };

export interface DialectServer {
  url: string;
  /** The requests in order: `POST /v1/...` with its body. */
  requests: { call: string; body: Record<string, unknown> }[];
  adapters: Map<string, string>;
  /** Sockets that were opened. */
  connections: () => number;
  /** The base model that it claims to serve; undefined: none. */
  root: string | undefined;
  /** Answers the next requests to score ids: the log-prob of each but the first; what it throws is refused. */
  score: (ids: readonly number[]) => number[];
  /** Answers the next completions; may be asynchronous. */
  complete: (body: Record<string, unknown>, response: ServerResponse) => unknown;
  /** Answers the next requests to load an adapter in place of the server, if it is there. */
  load?: (body: Record<string, unknown>, response: ServerResponse) => unknown;
  /** It takes from somewhere, under its name, what it is asked for and has not loaded. */
  fetches: boolean;
  /** The status of /health. */
  health: number;
  close(): Promise<void>;
}

/** A base model's id. */
export const BASE = 'base@0123456789ab';

/** vLLM's answer to a chat request with this message, of two tokens. */
export function completion(message: object, finish_reason = 'stop') {
  const { choices, ...rest } = vllmAnswer('chat').body;
  const [choice] = choices!;
  const content = [-0.5, -0.25].map((logprob) => ({ ...choice!.logprobs.content[0], logprob }));
  const said = { ...choice!.message, ...message };
  return {
    ...rest,
    choices: [{ ...choice, message: said, finish_reason, token_ids: [5, 6], logprobs: { content } }],
    prompt_token_ids: [1, 2, 3],
  };
}

export async function startDialectServer({ port = 0 } = {}): Promise<DialectServer> {
  let connections = 0;
  const { url, server, close } = await startLoopback((request, response) => void handle(request, response), port);
  server.on('connection', () => connections++);
  const self: DialectServer = {
    url,
    requests: [],
    adapters: new Map(),
    connections: () => connections,
    root: BASE,
    fetches: false,
    score: (ids) => ids.slice(1).map(() => -1),
    complete: () => completion({ role: 'assistant', content: 'hello' }),
    health: 200,
    close,
  };

  const send = (response: ServerResponse, { status, body }: { status: number; body: unknown }) =>
    typeof body === 'string'
      ? response.writeHead(status).end(body)
      : response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const [base, adapter] = vllmAnswer('models').body.data!;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse((await text(request)) || '{}') as Record<string, unknown>;
    const name = String(body['lora_name']);
    self.requests.push({ call: `${request.method} ${request.url}`, body });
    switch (request.url) {
      case '/health':
        return void response.writeHead(self.health).end();
      case '/v1/models': {
        const adapters = [...self.adapters].map(([id, root]) => ({ ...adapter, id, root, parent: 'base' }));
        const data = [{ ...base, id: 'base', root: self.root, max_model_len: undefined }, ...adapters];
        return void send(response, { status: 200, body: { data } });
      }
      case '/v1/load_lora_adapter':
        if (self.load) return void self.load(body, response);
        if (self.adapters.has(name)) return void send(response, vllmAnswer('loaded already'));
        self.adapters.set(name, String(body['lora_path']));
        return void send(response, vllmAnswer('loaded'));
      case '/v1/unload_lora_adapter':
        return void send(response, vllmAnswer(self.adapters.delete(name) ? 'unloaded' : 'nothing to unload'));
      case '/v1/chat/completions': {
        const model = String(body['model']);
        if (model !== 'base' && self.fetches) self.adapters.set(model, 'fetched');
        if (model !== 'base' && !self.adapters.has(model)) return void send(response, vllmAnswer('unknown model'));
        const answer = await self.complete(body, response);
        return answer === undefined ? undefined : void send(response, { status: 200, body: answer });
      }
      case '/v1/completions': {
        const ids = body['prompt'] as number[];
        try {
          const scores = self.score(ids).map((logprob, n) => ({ [ids[n + 1]!]: { logprob } }));
          return void send(response, { status: 200, body: { choices: [{ prompt_logprobs: [null, ...scores] }] } });
        } catch (refused) {
          return void refuse(400, { message: (refused as Error).message })({}, response);
        }
      }
      default:
        return void send(response, vllmAnswer('no such path'));
    }
  }

  return self;
}

/** Answers with an error, as the policy server words it. */
export const refuse =
  (status: number, error: object): DialectServer['complete'] =>
  (_, response) => {
    const whole = { ...vllmAnswer('unknown model').body.error, param: null, code: status, ...error };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: whole }));
  };
