/** A proxy like those of real Temporal clusters: TLS with certificates of an authority of its own, client certificates, an API key. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect, constants, createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** Paths of `NAME.pem` and `NAME.key`, signed by `ca`, in a folder. */
export function makeCertificates(folder: string, ...names: string[]): (name: string) => { cert: string; key: string } {
  const of = (name: string) => ({ cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) });
  for (const name of ['ca', ...names]) {
    const { cert, key } = of(name);
    const signed = name === 'ca' ? [] : ['-CA', of('ca').cert, '-CAkey', of('ca').key];
    const own = ['-addext', 'subjectAltName=DNS:localhost', '-addext', 'basicConstraints=critical,CA:FALSE'];
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
        ...['-keyout', key, '-out', cert, '-subj', `/CN=${name}`, ...signed, ...(name === 'ca' ? [] : own)],
      ],
      { stdio: 'ignore' },
    );
  }
  return of;
}

interface ProxyOptions {
  /** The address of the server behind it. */
  address: string;
  server: { cert: string; key: string };
  /** The authority whose client certificates it requires. */
  clients?: string;
  apiKey?: string;
  /** Calls that only an operator may make. */
  refuses?: RegExp;
}

/** Passes gRPC on. `port`: on localhost. */
export async function startTemporalProxy({ address, server, clients, apiKey, refuses }: ProxyOptions) {
  // Each caller has a connection of its own behind: what one that was killed left unread would stand in the way of all others.
  const behind = new Map<object, ClientHttp2Session>();
  const connectionOf = (caller: object): ClientHttp2Session => {
    const known = behind.get(caller);
    if (known && !known.closed && !known.destroyed) return known;
    const own = connect(`http://${address}`);
    own.on('error', () => undefined);
    // Temporal takes no more on a connection that is five minutes old.
    own.on('goaway', () => {
      if (behind.get(caller) === own) behind.delete(caller);
      own.close();
    });
    behind.set(caller, own);
    return own;
  };
  const pass = (stream: ServerHttp2Stream, headers: Record<string, unknown>): void => {
    stream.on('error', () => undefined);
    const isKnown = apiKey === undefined || headers['authorization'] === `Bearer ${apiKey}`;
    if (!isKnown || refuses?.test(String(headers[':path']))) {
      const refusal = { 'grpc-status': '16', 'grpc-message': 'Request unauthorized.' };
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...refusal }, { endStream: true });
      return;
    }
    const caller = stream.session;
    if (!caller) return;
    const request = connectionOf(caller).request({ ...headers, ':authority': address, ':scheme': 'http' });
    let trailers = {};
    request.on('error', () => undefined);
    request.on('close', () => {
      // Without a whole answer it ends as it does behind, and never as if all were well: a caller would miss the status.
      if (!stream.writableEnded) stream.close(request.rstCode || constants.NGHTTP2_INTERNAL_ERROR);
    });
    stream.on('close', () => request.close(constants.NGHTTP2_CANCEL));
    request.on('trailers', (told) => (trailers = told));
    request.on('response', (answer, flags) => {
      if (stream.closed) return;
      // A refusal is headers alone: nothing comes after them, no trailers either.
      if (flags & constants.NGHTTP2_FLAG_END_STREAM) return stream.respond(answer, { endStream: true });
      stream.on('wantTrailers', () => stream.sendTrailers(trailers));
      stream.respond(answer, { waitForTrailers: true });
      request.pipe(stream);
    });
    stream.pipe(request);
  };
  const proxy = createSecureServer({
    cert: readFileSync(server.cert),
    key: readFileSync(server.key),
    ...(clients !== undefined && { ca: readFileSync(clients), requestCert: true, rejectUnauthorized: true }),
  });
  const sessions = new Set<{ destroy(): void }>();
  proxy.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => {
      sessions.delete(session);
      behind.get(session)?.destroy();
      behind.delete(session);
    });
  });
  for (const event of ['tlsClientError', 'sessionError']) proxy.on(event, () => undefined);
  proxy.on('stream', pass);
  await new Promise<void>((resolve) => proxy.listen(0, 'localhost', resolve));
  return {
    address: `localhost:${(proxy.address() as AddressInfo).port}`,
    close: () => {
      for (const session of sessions) session.destroy();
      proxy.close();
    },
  };
}
