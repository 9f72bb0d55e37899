/** Ports of the services on this machine. Invariant: a port that the user named is that one or an error; every other one is free when it is chosen. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { listen } from '../gateway/listen';
import { InputError, messageOf } from './errors';

/** The port of Temporal's UI that is tried first when the user named none. */
export const UI_PORT = 8233;

/** The default port of `campaign serve`. */
export const GATEWAY_PORT = 8100;

/** A port that no process uses now. `wanted`: this one, or an error. */
export async function freePort(wanted = 0): Promise<number> {
  const server = createServer().listen({ port: wanted, host: '127.0.0.1', exclusive: true });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Free ports, all different and none of `except`. */
export async function freePorts({ count, except }: { count: number; except: number[] }): Promise<number[]> {
  const chosen = new Set<number>();
  while (chosen.size < count) {
    const port = await freePort();
    if (!except.includes(port)) chosen.add(port);
  }
  return [...chosen];
}

const unusable = (field: string, port: number, problem: string): InputError =>
  new InputError({
    ...{ code: 'port_in_use', field, value: String(port), reason: `is ${port}: ${problem}` },
    fix: 'choose another port, or 0 for a free one',
  });

/** For commands that serve pages or models. @throws InputError where nothing can listen there. */
export const listenAt: typeof listen = (served, place) =>
  listen(served, place).catch((error: unknown) => {
    throw unusable('--port', place.port, `nothing can listen on ${place.host}:${place.port} (${messageOf(error)})`);
  });

/** Returns free ports for Temporal and its UI. @throws InputError if the one that the user named cannot be used. */
export async function chooseTemporalPorts(named?: number) {
  const uiPort = await freePort(named ?? UI_PORT).catch((error: unknown) => {
    if (named === undefined) return freePort();
    throw unusable('--ui-port', named, `it cannot be used (${messageOf(error)})`);
  });
  const [port = 0] = await freePorts({ count: 1, except: [uiPort] });
  return { port, uiPort };
}
