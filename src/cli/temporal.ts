/** The connection to Temporal, and the meaning of its errors. */
import { Client, Connection, isGrpcServiceError } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import { openStore } from '../store/open-store';
import { searchAttributes } from '../workflows/messages';
import { clusterAt, rejectWhenRefused, whyNot, type TemporalAddress } from '../temporal/connection';
import { isLoopback } from '../temporal/loopback';
import { createDataConverter } from '../temporal/payload-storage';
import { loadTracing } from '../temporal/tracing';
import { UserError, messageOf } from './errors';
import { homeOf, namespace, type CommonOptions } from './options';
import type { Home } from './project';
import { serverOf } from './services/processes';

/** A busy machine takes seconds to answer. */
const CONNECT_TIMEOUT = '10s';
const KEYWORD = 2;
const WORKFLOW_QUEUE = 1;
/** The dev server forgets finished workflows after a day by default. */
const RETENTION_SECONDS = 365 * 24 * 3600;

export interface Temporal {
  client: Client;
  close(): Promise<void>;
}

let tracing: ReturnType<typeof loadTracing> | undefined;

/** `home`: its store holds the large payloads. @throws UserError if nothing answers there, or refuses. */
export async function connect({ namespace, ...at }: TemporalAddress, home: Home): Promise<Temporal> {
  const connection = Connection.lazy({
    ...at,
    connectTimeout: CONNECT_TIMEOUT,
    ...(isLoopback(at.address) && { channelArgs: { 'grpc.enable_http_proxy': 0 } }),
  });
  try {
    await Promise.race([connection.ensureConnected(), rejectWhenRefused(at)]);
    const { plugins, flush } = await (tracing ??= loadTracing('campaign'));
    const close = () => connection.close().finally(flush);
    const dataConverter = createDataConverter(() => openStore(home.root));
    return { client: new Client({ connection, namespace, plugins, dataConverter }), close };
  } catch (error) {
    // An open channel would keep trying to connect.
    await connection.close();
    throw new UserError('unavailable', 'Temporal', await whyNot({ namespace, ...at }, error));
  }
}

/** Address of the server to talk to: the named cluster, else the one that runs for this home. @throws UserError if there is none. */
export function addressOf(options: CommonOptions): TemporalAddress {
  if (options.temporalAddress) return clusterAt(options.temporalAddress);
  const home = homeOf(options);
  const address = serverOf(home);
  if (address) return { address, namespace: namespace() };
  throw new UserError(
    'unavailable',
    'Temporal',
    `no Temporal server of ${home.root} is running; start it with \`campaign ui\` or \`campaign run FILE\`, or name a cluster with --temporal-address`,
  );
}

/** `work` with a connection to that server. @throws UserError if there is none. */
export async function withTemporal<T>(options: CommonOptions, work: (temporal: Temporal) => Promise<T>): Promise<T> {
  const temporal = await connect(addressOf(options), homeOf(options));
  return work(temporal).finally(() => temporal.close());
}

/** The same for a command that files of the home can answer, too, where the home's own server does not run. */
export async function withServer<T>(
  options: CommonOptions,
  work: (temporal: Temporal | undefined) => Promise<T>,
): Promise<T> {
  const temporal = await Promise.resolve()
    .then(() => connect(addressOf(options), homeOf(options)))
    .catch((error: unknown) => {
      if (options.temporalAddress || !(error instanceof UserError)) throw error;
      return undefined;
    });
  return work(temporal).finally(() => temporal?.close());
}

/** gRPC codes of a server that is unavailable, starting or overloaded: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE. */
const AWAY = [1, 2, 4, 8, 10, 13, 14];

/** Returns true if a retry may succeed: Temporal's server gave no answer. A refusal is an answer. */
export const isServerAway = (error: unknown): boolean => AWAY.includes(grpcCode(error) ?? 0);

/** Returns true if a query got no answer from the server, or from the worker that the server asked. */
export const isNoAnswer = (error: unknown): boolean => grpcCode(error) !== undefined;

/** Returns the gRPC code in the chain of causes; undefined if there is none. */
export function grpcCode(error: unknown): number | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (isGrpcServiceError(at)) return at.code;
  return undefined;
}

/**
 * Registers the search attributes that a cluster's namespace lacks. If the server does not let this client list or add them, `note` gets the names that
 * an operator must add; the server refuses a campaign without them.
 */
export async function registerSearchAttributes(
  { client }: Temporal,
  { address, namespace }: TemporalAddress,
  note: (text: string) => void,
): Promise<void> {
  const { operatorService } = client.connection as Connection;
  const names = Object.values(searchAttributes).map(({ name }) => name);
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = names.filter((name) => !(name in (customAttributes ?? {})));
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    if (missing.length > 0) await operatorService.addSearchAttributes({ namespace, searchAttributes });
  } catch (error) {
    const why = messageOf(error instanceof Error ? (error.cause ?? error) : error);
    const fix = `have an operator add ${names.join(', ')} (Keyword) to namespace ${namespace}, unless they are there`;
    note(`warning: can't register search attributes at ${address} (${why}); ${fix}`);
  }
}

/** Keeps finished campaigns of a home's own server for a year. */
export async function keepFinished({ client }: Temporal, namespace: string): Promise<void> {
  await client.workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: { seconds: RETENTION_SECONDS as never } },
  });
}

/** Decodes the first of a server's payloads. */
export const valueOf = <T>({ options }: Client, payloads: Payload[] | null | undefined): Promise<T> =>
  decodeFromPayloadsAtIndex(options.loadedDataConverter, 0, payloads);

/** Returns where a cluster shows a campaign: its address, namespace and workflow, and the page where TEMPORAL_UI_URL names the UI. */
export function placeLines({ address, namespace }: TemporalAddress, workflow?: string): string[] {
  const ui = process.env['TEMPORAL_UI_URL']?.replace(/\/$/, '');
  const path = workflow === undefined ? '' : `/${encodeURIComponent(workflow)}`;
  const place = `Temporal at ${address}, namespace ${namespace}${workflow === undefined ? '' : `, workflow ${workflow}`}`;
  return [place, ...(ui ? [`${ui}/namespaces/${namespace}/workflows${path}`] : [])];
}

/** Returns whether a worker polls the queue for workflows. */
export async function hasWorkers({ client }: Temporal, queue: string): Promise<boolean> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: WORKFLOW_QUEUE,
  });
  return (pollers ?? []).length > 0;
}
