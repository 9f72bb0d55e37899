/**
 * Reads the address of a Temporal cluster as Temporal's own tools do: address, namespace, TLS, key and headers of a profile (TOML) and of the TEMPORAL_*
 * variables. Finds the cause of a connection that fails.
 */
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { once } from 'node:events';
import { connect as connectTcp, isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { isLoopback, proxyVariable } from './loopback';

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
export async function whyNot(at: TemporalAddress, error: unknown): Promise<string> {
  const { tls, apiKey } = at;
  const reason = reasonOf((error as Error).cause ?? error);
  const server = `Temporal at ${at.address}`;
  if (isRefusal(error)) {
    const key = `put ${apiKey ? 'a valid key' : 'its key'} into TEMPORAL_API_KEY`;
    return `${server} refuses this client (${reason}); ${key}, and its namespace into TEMPORAL_NAMESPACE`;
  }
  const found = await probe(at);
  const proxy = isLoopback(at.address) ? undefined : proxyVariable();
  if (proxy && !found)
    return `${server} answers directly but not through the proxy of ${proxy} (${reason}); add its host to no_proxy, or correct ${proxy}`;
  if (!found)
    return tls
      ? `the server at ${at.address}, over TLS, is not Temporal (${reason}); correct the address`
      : `the server at ${at.address} does not answer as Temporal without TLS (${reason}); set TEMPORAL_TLS=true if it has TLS, else wait for it or correct the address`;
  const { code = '', message } = found;
  if (/WRONG_VERSION|PACKET_LENGTH/.test(code))
    return `${server} does not use TLS (${code}); set TEMPORAL_TLS=false, or correct the address`;
  if (/ALERT/.test(code))
    return `${server} refuses this client's certificate (${code}); name one that it accepts in TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH`;
  if (/CERT|SIGNATURE|ISSUER|SSL|TLS/.test(code))
    return `${server} has a certificate that is not accepted (${message}); name its authority in TEMPORAL_TLS_SERVER_CA_CERT_PATH, or its name in TEMPORAL_TLS_SERVER_NAME`;
  return `no Temporal server answers at ${at.address} (${message}); start it, or correct the address`;
}

/** Rejects once the host refuses TCP connections, for which Temporal's clients retry until their deadline; else it stays pending. */
export async function rejectWhenRefused({ address }: Pick<TemporalAddress, 'address'>): Promise<never> {
  const error = await probe({ address });
  if (error?.code === 'ECONNREFUSED') throw error;
  return new Promise<never>(() => undefined);
}

const PROBE_MS = 2_000;

/** Returns the error of a bare connection, if there is one. A server reports a missing client certificate after the handshake. */
async function probe({
  address,
  tls,
}: Pick<TemporalAddress, 'address' | 'tls'>): Promise<NodeJS.ErrnoException | undefined> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const at = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 7233) };
  const {
    serverNameOverride,
    serverRootCACertificate: ca,
    clientCertPair,
  } = typeof tls === 'object' ? (tls ?? {}) : {};
  const own = {
    servername: serverNameOverride ?? (isIP(at.host) ? '' : at.host),
    ...(ca && { ca: Buffer.from(ca) }),
    ...(clientCertPair && { cert: Buffer.from(clientCertPair.crt), key: Buffer.from(clientCertPair.key) }),
  };
  const socket = tls ? connectTls({ ...at, ...own, ALPNProtocols: ['h2'] }) : connectTcp(at);
  const failed = new Promise<Error>((resolve) => socket.once('error', resolve));
  const connected = once(socket, tls ? 'secureConnect' : 'connect').then(
    () => undefined,
    (error: Error) => error,
  );
  const late = sleep(PROBE_MS, new Error(`no answer within ${PROBE_MS / 1000} s`), { ref: false });
  try {
    const problem = await Promise.race([connected, late]);
    if (problem !== undefined || !tls) return problem;
    return await Promise.race([failed, once(socket, 'data').then(() => undefined), sleep(PROBE_MS / 2, undefined)]);
  } finally {
    socket.destroy();
  }
}
