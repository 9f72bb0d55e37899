/**
 * Reads the address of a Temporal cluster as Temporal's own tools do: address, namespace, TLS, key and headers of a profile (TOML) and of the TEMPORAL_*
 * variables. Finds the cause of a connection that fails.
 */
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { OutsideFailure, reasonOf } from '../domain/failures';

/** Address of a Temporal server, with the settings of a connection. */
export type TemporalAddress = Pick<NativeConnectionOptions, 'tls' | 'metadata'> & {
  address: string;
  namespace: string;
  apiKey?: string;
};

const DEFAULT_ADDRESS = '127.0.0.1:7233';

/** Returns the cluster of the environment. `address` replaces that of the profile. Throws BadInput if the profile can't be read. */
export function clusterAt(address?: string): TemporalAddress {
  requireNoEncryptionKey();
  // Compose files pass unset variables as empty ones. An empty TEMPORAL_CONFIG_FILE turns the default file off.
  const variables = Object.entries(process.env).filter(([name, value]) => value || name === 'TEMPORAL_CONFIG_FILE');
  const overrideEnvVars = Object.fromEntries(variables) as Record<string, string>;
  try {
    const { connectionOptions, namespace = 'default' } = loadClientConnectConfig({ overrideEnvVars });
    const { address: own = DEFAULT_ADDRESS, tls, metadata, apiKey } = connectionOptions;
    return {
      address: address ?? own,
      namespace,
      ...(tls !== undefined && { tls }),
      ...(metadata && { metadata }),
      ...(typeof apiKey === 'string' && { apiKey }),
    };
  } catch (error) {
    const fix = 'correct the file (TEMPORAL_CONFIG_FILE), TEMPORAL_PROFILE or the TEMPORAL_TLS_* variables';
    throw new OutsideFailure('BadInput', `the Temporal profile can't be used: ${reasonOf(error)}; ${fix}`, error);
  }
}

/** Throws BadInput for a key of 0.2, which would no longer encrypt anything. Dropped in 0.5. */
function requireNoEncryptionKey(): void {
  if (!process.env['CAMPAIGN_ENCRYPTION_KEY']) return;
  const why = 'Temporal holds references, no texts; unset it, and use a payload codec for more (docs/machines.md)';
  throw new OutsideFailure('BadInput', `CAMPAIGN_ENCRYPTION_KEY: removed in 0.3: ${why}`);
}

/** Returns the variables of processes that use a home's own server, `at`: the profile of a cluster does not reach them. */
export function ownServerVariables(at?: TemporalAddress): NodeJS.ProcessEnv {
  const profile = Object.keys(process.env).filter((name) => name.startsWith('TEMPORAL_'));
  return {
    ...Object.fromEntries(profile.map((name) => [name, undefined])),
    TEMPORAL_CONFIG_FILE: '',
    ...(at && { TEMPORAL_ADDRESS: at.address, TEMPORAL_NAMESPACE: at.namespace }),
  };
}

/** Returns whether Temporal refused the client, which it would do again. */
export const isRefusal = (error: unknown): boolean =>
  /UNAUTHENTICATED|PERMISSION_DENIED|valid authentication credentials|does not have permission/.test(
    [error, (error as Error).cause].map(reasonOf).join(),
  );

/** Returns why there is no connection, and the fix. Temporal's clients only report a timeout. */
export async function whyNot({ address, tls, apiKey }: TemporalAddress, error: unknown): Promise<string> {
  const reason = reasonOf((error as Error).cause ?? error);
  if (isRefusal(error)) {
    const key = `put ${apiKey ? 'a valid key' : 'its key'} into TEMPORAL_API_KEY`;
    return `Temporal at ${address} refuses this client (${reason}); ${key}, and its namespace into TEMPORAL_NAMESPACE`;
  }
  const away = await probe(address);
  if (away) return `no Temporal server answers at ${address} (${away.message}); start it, or correct the address`;
  return `the server at ${address} does not answer as Temporal ${tls ? 'over' : 'without'} TLS (${reason}); correct the address, TEMPORAL_TLS and the certificates in TEMPORAL_TLS_*, or add its host to no_proxy if there is a proxy`;
}

/** Rejects once the host refuses TCP connections, for which Temporal's clients retry until their deadline; else it stays pending. */
export async function rejectWhenRefused({ address }: Pick<TemporalAddress, 'address'>): Promise<never> {
  const error = await probe(address);
  if (error?.code === 'ECONNREFUSED') throw error;
  return new Promise<never>(() => undefined);
}

const PROBE_MS = 2_000;

/** Returns the error of a bare TCP connection, if there is one. */
async function probe(address: string): Promise<NodeJS.ErrnoException | undefined> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const socket = connectTcp({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 7233) });
  const signal = AbortSignal.timeout(PROBE_MS);
  try {
    await once(socket, 'connect', { signal });
    return undefined;
  } catch (error) {
    return signal.aborted ? new Error(`no answer within ${PROBE_MS / 1000} s`) : (error as Error);
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}
