/**
 * Ports of the services on this machine. Invariant: a port that the user named is that one or an error; every other one is free when it is
 * chosen. It can be taken before a service binds it: whoever starts a service on it starts it again then, on another one.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { listen } from '../gateway/listen';
import { InputError, messageOf } from './errors';

/** A port that the user may name. */
export interface NamedPort {
  /** Whose it is. */
  name: string;
  /** The option that names it. */
  flag: string;
  /** The one that is tried first when the user named none. */
  preferred: number;
}
export const temporalPort: NamedPort = { name: 'Temporal server', flag: '--temporal-port', preferred: 7233 };
export const uiPort: NamedPort = { name: 'Temporal UI', flag: '--ui-port', preferred: 8233 };

/** The default port of `campaign serve`. */
export const GATEWAY_PORT = 8100;

/** Ports as the user gave them: undefined is the preferred one if it is free, 0 any free one. */
export interface PortOptions {
  temporalPort?: number;
  uiPort?: number;
}

/** What listening there fails with; undefined if it does not. */
const listenError = (host: string, port: number): Promise<NodeJS.ErrnoException | undefined> =>
  new Promise((resolve) => {
    const server = createServer().once('error', resolve);
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });

/** Why a port cannot be used; undefined if it can. */
export async function portProblem(port: number): Promise<string | undefined> {
  const error = await listenError('127.0.0.1', port);
  if (!error) return undefined;
  return error.code === 'EADDRINUSE' ? `port ${port} is in use` : `port ${port} cannot be used (${error.code})`;
}

/** A port that nobody uses now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen({ port: 0, host: '127.0.0.1' });
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

interface Place {
  host: string;
  port: number;
}

/** For commands that serve pages or models. @throws UserError where nothing can listen there. */
export const listenAt: typeof listen = (served, place) =>
  listen(served, place).catch((error: unknown) => {
    throw unusable(place, error);
  });

/** For those that start something before they listen. @throws UserError as `listenAt` would. */
export async function requireFree(place: Place): Promise<void> {
  const error = await listenError(place.host, place.port);
  if (error) throw unusable(place, error);
}

const unusable = ({ host, port }: Place, error: unknown) =>
  new InputError({
    ...{ code: 'port_in_use', field: '--port', value: String(port), fix: 'choose another port' },
    reason: `is ${port}: nothing can listen on ${host}:${port} (${messageOf(error)})`,
  });

type Note = (text: string) => void;

/** Ports of Temporal and its UI. `note` is told when one is not the preferred one. @throws UserError if a named one cannot be used. */
export async function chooseTemporalPorts(o: {
  options: PortOptions;
  note: Note;
}): Promise<{ port: number; uiPort: number }> {
  const { options, note } = o;
  const taken = options.uiPort ? [options.uiPort] : [];
  const port = await choosePort(temporalPort, { requested: options.temporalPort, taken, note });
  return { port, uiPort: await choosePort(uiPort, { requested: options.uiPort, taken: [port], note }) };
}

async function choosePort(
  { name, flag, preferred }: NamedPort,
  { requested, taken, note }: { requested: number | undefined; taken: number[]; note: Note },
): Promise<number> {
  const port = requested ?? preferred;
  const problem = taken.includes(port) ? `port ${port} is named twice` : port > 0 ? await portProblem(port) : '';
  if (problem === undefined) return port;
  if (requested) {
    const reason = `(${name}): ${problem}`;
    const fix = 'choose another port, or 0 for a free one';
    throw new InputError({ code: 'port_in_use', field: flag, value: String(requested), reason, fix });
  }
  const [free = 0] = await freePorts({ count: 1, except: taken });
  if (problem) note(`${problem}: the ${name} takes ${free}; ${flag} names another one`);
  return free;
}
