/** A small HTTP server of the OpenAI dialect that plays recorded replies: the simulated user or the judge of a test. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { startLoopback } from './loopback';

export type Body = { messages: { role: string; content: string }[] } & Record<string, unknown>;
/** A message for the answer, or the whole answer by hand (then nothing is returned). */
export type Play = (body: Body, response: ServerResponse) => object | undefined | Promise<object | undefined>;

export interface ChatServer {
  /** The API's address, with /v1. */
  url: string;
  requests: { body: Body; authorization: string | undefined; headers: IncomingHttpHeaders }[];
  /** Requests that were open side by side. */
  atOnce: number;
  play: Play;
  /** The `usage` of every answer. */
  usage?: object;
  close(): Promise<void>;
}

export const say = (content: string) => ({ role: 'assistant', content });
export const call = (name: string, values: object | string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [
    {
      id: 'call_0',
      type: 'function',
      function: { name, arguments: typeof values === 'string' ? values : JSON.stringify(values) },
    },
  ],
});

/** Plays `replies` one after the other, the last of them for ever. */
export const recorded = (...replies: object[]): Play => {
  let n = 0;
  return () => replies[Math.min(n++, replies.length - 1)];
};

export const refuse =
  (status: number, message: string): Play =>
  (_, response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message } })) as undefined;

export async function startChatServer(play: Play = recorded(say('hello'))): Promise<ChatServer> {
  let open = 0;
  const { url, close } = await startLoopback((request, response) => void handle(request, response));
  const self: ChatServer = {
    url: `${url}/v1`,
    requests: [],
    atOnce: 0,
    play,
    close,
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    self.atOnce = Math.max(self.atOnce, ++open);
    response.on('close', () => open--);
    if (request.method === 'GET') return void response.writeHead(404).end();
    const body = (await json(request)) as Body;
    const { headers } = request;
    self.requests.push({ body, authorization: headers.authorization, headers });
    const message = await self.play(body, response);
    if (message === undefined) return;
    const finish_reason = 'tool_calls' in message ? 'tool_calls' : 'stop';
    const answer = { object: 'chat.completion', choices: [{ index: 0, finish_reason, message }], usage: self.usage };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }

  return self;
}
