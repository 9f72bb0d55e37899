/**
 * `campaign codec-server`: decrypts payloads for Temporal's UI, by the protocol of https://docs.temporal.io/codec-server. Invariant: it listens on
 * loopback alone, and answers no page but the UI's.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { json as jsonOf } from 'node:stream/consumers';
import { temporal } from '@temporalio/proto';
import { encryption, encryptionKeys } from '../temporal/codec';
import { messageOf, UserError } from './errors';
import type { CommonOptions } from './options';

export interface CodecServerOptions extends CommonOptions {
  port: number;
  /** Origin of the UI's pages. */
  ui: string;
}

const { Payloads } = temporal.api.common.v1;

/** Until it is interrupted. @throws UserError if there is no key, or the port is taken. */
export async function serveCodec({ port, ui, json }: CodecServerOptions): Promise<void> {
  const keys = encryptionKeys();
  if (keys.length === 0) throw new UserError('CAMPAIGN_ENCRYPTION_KEY is not set: set it to the key of the workers');
  const codec = encryption(keys);

  async function answer(request: IncomingMessage): Promise<{ status: number; body?: object }> {
    const { origin } = request.headers;
    if (origin !== undefined && origin !== ui)
      return refusal(403, `pages of ${origin} are refused; --ui names its own`);
    if (request.method === 'OPTIONS') return { status: 204 };
    if (request.method !== 'POST' || !request.url?.endsWith('/decode')) return refusal(404, 'there is POST /decode');
    try {
      const { payloads } = Payloads.fromObject((await jsonOf(request)) as object);
      const decoded = Payloads.fromObject({ payloads: await codec.decode(payloads) });
      return { status: 200, body: Payloads.toObject(decoded, { bytes: String }) };
    } catch (error) {
      return refusal(400, messageOf(error));
    }
  }
  const refusal = (status: number, message: string) => ({ status, body: { message } });
  const headers = {
    'access-control-allow-origin': ui,
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'content-type, x-namespace, authorization',
    'content-type': 'application/json',
    vary: 'origin',
  };
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    void answer(request).then(({ status, body }) =>
      response.writeHead(status, headers).end(body && JSON.stringify(body)),
    );
  });
  const listening = once(server, 'listening');
  server.listen(port, '127.0.0.1');
  await listening.catch((error: unknown) => {
    throw new UserError(`nothing can listen on port ${port} (${messageOf(error)}); choose another with --port`);
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : port}`;
  console.log(
    json ? JSON.stringify({ url }) : `${url} decrypts for ${ui}: name it as the UI's codec server; Ctrl-C ends it`,
  );
  await Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  server.close();
}
