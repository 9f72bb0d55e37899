/** An HTTP server of the gateway, or of the view, which finishes running requests before it ends. */
import { createAdaptorServer } from '@hono/node-server';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Returns whether a Host header names this machine itself. A page can make a name of its own lead here (DNS rebinding). */
export const namesThisMachine = (host = ''): boolean => /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(host);

/** Milliseconds for the head of a request, for all of it, and for the next request on a connection. */
const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 75_000 };
const LOOK_MS = 20;
/** Time to send the errors of cancelled requests. */
const LAST_MS = 1000;

export interface Listening {
  url: string;
  /** Refuses new requests, waits so long for running ones, and cancels the rest. */
  close(graceSeconds: number): Promise<void>;
}

interface Served {
  app: { fetch: Parameters<typeof createAdaptorServer>[0]['fetch'] };
  drain?: () => void;
  stop?: () => void;
}

/** Rejects where nothing can listen there. */
export async function listen(served: Served, { host, port }: { host: string; port: number }): Promise<Listening> {
  const server = createAdaptorServer({ fetch: served.app.fetch, serverOptions: TIMEOUTS }) as Server;
  const listening = once(server, 'listening');
  server.listen({ port, host });
  await listening;
  const address = server.address() as AddressInfo;
  const shown = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    url: `http://${shown}:${address.port}`,
    async close(graceSeconds) {
      served.drain?.();
      const closed = once(server, 'close');
      server.close();
      const idle = setInterval(() => server.closeIdleConnections(), LOOK_MS);
      const wait = (milliseconds: number) => Promise.race([closed, sleep(milliseconds, undefined, { ref: false })]);
      await wait(graceSeconds * 1000);
      served.stop?.();
      await wait(LAST_MS);
      clearInterval(idle);
      server.closeAllConnections();
      await closed;
    },
  };
}
