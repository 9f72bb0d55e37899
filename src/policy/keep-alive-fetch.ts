/**
 * `fetch` over node's own HTTP client with a pool of kept-alive connections. Invariant: at most `connections` sockets, each used
 * by one request at a time. Why not the global fetch: with the openai client it takes 0.65 ms of CPU a call, this one 0.33 ms.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface KeepAliveFetch {
  fetch: typeof fetch;
  /** Closes idle connections. */
  close(): void;
}

interface Exchange {
  url: URL;
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
  signal: AbortSignal | undefined;
}

export function createKeepAliveFetch({ connections }: { connections: number }): KeepAliveFetch {
  const options = { keepAlive: true, maxSockets: connections };
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };

  function send(exchange: Exchange): Promise<Response> {
    const { url, method, headers, body, signal } = exchange;
    return new Promise((resolve, reject) => {
      const secure = url.protocol === 'https:';
      const agent = agents[secure ? 'https:' : 'http:'];
      const request = (secure ? httpsRequest : httpRequest)(url, { method, headers, agent, ...(signal && { signal }) });
      request.on('response', (answer) => readAll(answer).then(resolve, reject));
      request.on('error', (error: NodeJS.ErrnoException) => {
        // The server closed an idle connection while we were taking it: the request never arrived, so it is sent on another.
        if (request.reusedSocket && error.code === 'ECONNRESET') send(exchange).then(resolve, reject);
        else reject(error);
      });
      request.end(body);
    });
  }

  return {
    fetch: async (input, init) => {
      const body = init?.body == null ? undefined : String(init.body);
      const headers = Object.fromEntries(init?.headers instanceof Headers ? init.headers : new Headers(init?.headers));
      if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body));
      const url = new URL(input instanceof Request ? input.url : input);
      return send({ url, method: init?.method ?? 'GET', headers, body, signal: init?.signal ?? undefined });
    },
    close: () => Object.values(agents).forEach((agent) => agent.destroy()),
  };
}

/** The headers that a client of this dialect looks at. */
const READ_HEADERS = ['content-type', 'x-request-id', 'retry-after'];

/** Waits for the whole body, so that the request's signal and timeout hold for all of it. */
function readAll(answer: IncomingMessage): Promise<Response> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
    answer.on('error', reject);
    answer.on('end', () => {
      const headers: [string, string][] = [];
      for (const name of READ_HEADERS) {
        const value = answer.headers[name];
        if (typeof value === 'string') headers.push([name, value]);
      }
      resolve(new Response(Buffer.concat(chunks), { status: answer.statusCode ?? 502, headers }));
    });
  });
}
