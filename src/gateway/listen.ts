/** An HTTP server of the gateway, or of the view. Invariant: a client that sends slowly, or nothing, or that reads nothing, is cut off; at the end what is being answered is answered first. */
import { createAdaptorServer } from '@hono/node-server';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Whether a Host header names this machine itself. Any page can have a name of its own lead here (DNS rebinding): who demands no key answers to these names alone. */
export const namesThisMachine = (host = ''): boolean => /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(host);

/** Whether a client's address is of this machine; a socket that listens for IPv6 writes those of IPv4 in its own form. */
export const isLoopback = (address = ''): boolean => address === '::1' || /^(::ffff:)?127\./.test(address);

/** For the head of a request, and for all of it. */
const HEAD_MS = 10_000;
const REQUEST_MS = 30_000;
/** Without a byte that is taken of an answer that is there. */
const UNREAD_MS = 60_000;
const MOST_CONNECTIONS = 16_384;
/** Connections that may wait until this process has time for them: by itself Node lets 511 wait, and of a larger crowd some are reset. */
const BACKLOG = 4096;
/** Of the files that this process may open: what is left for the store and the policy server. */
const OTHER_FILES = 512;
const LOOK_MS = 20;
const TELL_MS = 1000;

export interface Listening {
  url: string;
  /** Takes nothing new, waits so long for what is being answered, and gives up the rest. */
  close(graceSeconds: number): Promise<void>;
}

/** What answers there: it takes nothing new once it is drained, and gives up what is being answered when it is stopped. */
interface Served {
  app: { fetch: Parameters<typeof createAdaptorServer>[0]['fetch'] };
  drain: () => void;
  running: () => number;
  stop: () => void;
}

/** Rejects where nothing can listen there. */
export async function listen(
  gateway: Served,
  o: { host: string; port: number; headMs?: number; requestMs?: number; unreadMs?: number },
): Promise<Listening> {
  const { host, port, headMs = HEAD_MS, requestMs = REQUEST_MS, unreadMs = UNREAD_MS } = o;
  const server = createAdaptorServer({
    fetch: gateway.app.fetch,
    serverOptions: {
      headersTimeout: headMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(1000, headMs),
      keepAliveTimeout: 75_000,
    },
  }) as Server;
  server.timeout = unreadMs;
  server.on('request', (_, response) => {
    // One that is still being made may take longer.
    response.on('timeout', (socket: Socket) => socket.writableLength > 0 && socket.destroy());
  });
  server.maxConnections = Math.min(MOST_CONNECTIONS, openFiles() - OTHER_FILES);
  const listening = once(server, 'listening');
  server.listen({ port, host, backlog: BACKLOG });
  await listening;
  const address = server.address() as AddressInfo;
  const shown = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    url: `http://${shown}:${address.port}`,
    async close(graceSeconds) {
      gateway.drain();
      let open = true;
      const closed = once(server, 'close').finally(() => (open = false));
      server.close();
      // Until all is answered and read.
      const settle = async (milliseconds: number) => {
        for (const end = performance.now() + milliseconds; open && performance.now() < end; await sleep(LOOK_MS))
          server.closeIdleConnections();
      };
      await settle(graceSeconds * 1000);
      gateway.stop();
      while (gateway.running() > 0) await sleep(LOOK_MS);
      // What was given up is told so.
      await settle(TELL_MS);
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Node has raised the limit as far as it may. */
function openFiles(): number {
  try {
    const [, most] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(most ?? Infinity);
  } catch {
    return 4096; // no Linux
  }
}
