/** An HTTP server of a test on this machine, at a port of its own. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Loopback {
  url: string;
  server: Server;
  /** Ends what is being answered, too. */
  close(): Promise<void>;
}

export async function startLoopback(answer: RequestListener, port = 0): Promise<Loopback> {
  const server = createServer(answer).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
