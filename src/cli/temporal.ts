/** Talking to Temporal: connecting, starting a campaign's workflow, finding out where it stands. */
import {
  Client,
  Connection,
  isGrpcServiceError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import {
  ApplicationFailure,
  defaultPayloadConverter,
  defineSearchAttributeKey,
  TypedSearchAttributes,
  type Payload,
} from '@temporalio/common';
import type { Campaign } from '../domain/campaign';
import type { FailureType } from '../domain/failures';
import type { EndedArm, EndedCapability } from '../domain/results';
import { LAST_STAGE, stages, taskQueues, type Stage } from '../domain/work';
import {
  childFailureIn,
  searchAttributeNames,
  signalNames,
  workflowIds,
  type CampaignInput,
  type CampaignResult,
  type Memo,
} from '../workflows/messages';
import type { ConfigDigests } from './campaign-file';
import { UserError, messageOf } from './errors';
import { homeOf, namespace, type CommonOptions } from './options';
import { serverOf } from './run/processes';

const CONNECT_TIMEOUT = '3s';
const KEYWORD = 2;
const WORKFLOW_QUEUE = 1;
/** The dev server forgets finished workflows after a day by default. */
const RETENTION_SECONDS = 365 * 24 * 3600;

export interface TemporalAddress {
  address: string;
  namespace: string;
}

export interface Temporal {
  client: Client;
  close(): Promise<void>;
}

/** @throws UserError if nothing answers there. */
export async function connect({ address, namespace }: TemporalAddress): Promise<Temporal> {
  let connection: Connection;
  try {
    connection = await Connection.connect({ address, connectTimeout: CONNECT_TIMEOUT });
  } catch (error) {
    throw new UserError(
      `no Temporal server answers at ${address} (${messageOf(error)}); start one with \`campaign serve\` or \`campaign run\`, or name another with --temporal-address`,
    );
  }
  return { client: new Client({ connection, namespace }), close: () => connection.close() };
}

/** Address of the server to talk to: the named cluster, else the one that runs for this home. */
export function addressOf(options: CommonOptions): TemporalAddress {
  const address = options.temporalAddress ?? serverOf(homeOf(options));
  if (!address)
    throw new UserError(
      `no Temporal server of ${homeOf(options).root} is running; start it with \`campaign serve\` or \`campaign run FILE\`, or name a cluster with --temporal-address`,
    );
  return { address, namespace: namespace() };
}

/** `work` with a connection to that server. */
export async function withTemporal<T>(options: CommonOptions, work: (temporal: Temporal) => Promise<T>): Promise<T> {
  const temporal = await connect(addressOf(options));
  try {
    return await work(temporal);
  } finally {
    await temporal.close();
  }
}

/** What gRPC's codes say of a server that is away, that starts or that has too much to do: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE. */
const AWAY = [1, 2, 4, 8, 10, 13, 14];

/** Whether an error of Temporal's client says that the server gave no answer now, but may give one later. A refusal is an answer. */
export const isServerAway = (error: unknown): boolean => AWAY.includes(grpcCode(error) ?? 0);

/** Whether it says that a query got no answer: from the server, or from a worker that it asked. */
export const isNoAnswer = (error: unknown): boolean => grpcCode(error) !== undefined;

/** The client wraps what gRPC says. */
function grpcCode(error: unknown): number | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (isGrpcServiceError(at)) return at.code;
  return undefined;
}

/** Makes an existing cluster ready: search attributes are registered once per namespace. */
export async function registerSearchAttributes(
  { client }: Temporal,
  { address, namespace }: TemporalAddress,
): Promise<void> {
  const { operatorService } = client.connection as Connection;
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = Object.values(searchAttributeNames).filter((name) => !(name in (customAttributes ?? {})));
    if (missing.length > 0)
      await operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
      });
  } catch (error) {
    throw new UserError(
      `cannot register search attributes at ${address} (${messageOf(error)}); have an operator add ${Object.values(searchAttributeNames).join(', ')} (Keyword) to namespace ${namespace}`,
    );
  }
}

/** Keeps finished campaigns of a home's own server for a year. */
export async function keepFinished({ client }: Temporal, namespace: string): Promise<void> {
  await client.workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: { seconds: RETENTION_SECONDS as never } },
  });
}

/** Of what a campaign's file says (campaign-file.ts). */
export interface Digests {
  configDigests: ConfigDigests;
  terms: string;
}
/** `configDigest`: of the stage after which it stops. */
interface StartMemo {
  configDigest?: string;
  terms?: string;
  until?: Stage | null;
}

export interface CampaignState {
  status: 'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'TERMINATED' | 'TIMED_OUT' | 'OTHER';
  runId: string;
  /** That of its store. */
  taskQueue: string;
  /** Whose workers it waits for, once it is prepared. */
  pool?: string | undefined;
  configDigest?: string | undefined;
  /** Digest of its terms: those that it was started with. */
  terms?: string | undefined;
  until?: Stage | undefined;
  paused?: boolean | undefined;
}

/** The latest run of a campaign; undefined if there was none. */
export async function campaignState({ client }: Temporal, name: string): Promise<CampaignState | undefined> {
  try {
    const execution = await client.workflow.getHandle(workflowIds.campaign(name)).describe();
    const { status, runId, taskQueue, memo = {} } = execution;
    const known = ['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT'] as const;
    const { configDigest, terms, until, paused, pool } = memo as Memo & StartMemo;
    return {
      status: known.find((one) => one === status.name) ?? 'OTHER',
      runId,
      taskQueue,
      pool,
      configDigest,
      terms,
      until: until ?? undefined,
      paused,
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/**
 * Starts a campaign's workflow, or takes up the one that runs under its name. One that was paused when it failed starts paused. `store`: the
 * id of the store that it works in.
 * @throws UserError if another home has just started one of this name.
 */
export async function startCampaign(
  temporal: Temporal,
  start: Digests & { campaign: Campaign; store: string; until?: Stage | undefined; force?: boolean | undefined },
): Promise<void> {
  const { campaign, store, configDigests, terms, until, force } = start;
  const configDigest = configDigests[until ?? LAST_STAGE];
  const input: CampaignInput = { campaign, ...(until ? { until } : {}), ...(force ? { force } : {}) };
  const { workflow } = temporal.client;
  const before = await campaignState(temporal, campaign.name);
  const options = startOptions(input, { taskQueue: taskQueues.control(store), configDigest, terms, until });
  if (before?.status === 'FAILED' && before.paused)
    await workflow.signalWithStart('campaign', { ...options, signal: signalNames.pause });
  else await workflow.start('campaign', { ...options, workflowIdConflictPolicy: 'USE_EXISTING' });
  const now = await campaignState(temporal, campaign.name);
  if (now && now.taskQueue !== options.taskQueue) throw ofAnotherHome(campaign.name, now);
}

/** `memo` holds what a later command compares with what its file says. */
function startOptions(
  input: CampaignInput,
  { taskQueue, configDigest, terms, until }: Pick<CampaignState, 'taskQueue' | 'configDigest' | 'terms' | 'until'>,
): WorkflowStartOptions {
  const { name, seed } = input.campaign;
  const attribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
  return {
    workflowId: workflowIds.campaign(name),
    taskQueue,
    args: [input],
    memo: { configDigest, terms, until: until ?? null },
    typedSearchAttributes: new TypedSearchAttributes([{ key: attribute, value: name }]),
    staticSummary: `campaign ${name}, seed ${seed}`,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
  };
}

type EndedChild = EndedCapability | EndedArm;

/**
 * Starts a campaign that has ended once more, to do again what failed in it; everything else is found in the store by its key. `only`: a capability
 * or an arm, if not all.
 * @returns what is done again; empty if nothing failed.
 * @throws UserError if it can't be.
 */
export async function retryCampaign(temporal: Temporal, { name, only }: { name: string; only?: string | undefined }) {
  const state = await campaignState(temporal, name);
  if (!state) throw new UserError(`there is no campaign ${name} here; \`campaign status\` lists those that there are`);
  if (state.status === 'RUNNING')
    throw new UserError(`campaign ${name} is running; what fails in it can be done again when it has ended`);
  const { campaign, until, force } = await inputOf(temporal, name, state);
  const input: CampaignInput = { campaign, ...(until && { until }), ...(force && { force }) };
  const restart = (again: CampaignInput) => temporal.client.workflow.start('campaign', startOptions(again, state));
  if (state.status !== 'COMPLETED') {
    if (only !== undefined)
      throw new UserError(
        `campaign ${name} has ended as ${state.status.toLowerCase()} as a whole: \`campaign retry ${name}\` starts it again`,
      );
    await restart(input);
    return [name];
  }
  const { failed, children } = (await temporal.client.workflow.getHandle(name).result()) as CampaignResult;
  if (only === undefined) {
    if (failed.length > 0) await restart(input);
    return failed;
  }
  const child = children.find((one) => one.name === only);
  if (!child)
    throw new UserError(
      `campaign ${name} has no capability or arm ${only}; it has ${children.map((one) => one.name).join(', ') || 'none'}`,
    );
  if (child.status !== 'failed') return [];
  const others = children.filter((one) => one !== child);
  const kept = (await Promise.all(others.map(({ workflowId }) => resultOfChild(temporal, workflowId)))).flatMap(
    (one) => one ?? [],
  );
  await restart({ ...input, kept });
  return [only];
}

async function inputOf({ client }: Temporal, name: string, { runId }: CampaignState): Promise<CampaignInput> {
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace: client.options.namespace,
    execution: { workflowId: name, runId },
    maximumPageSize: 1,
  });
  const [payload] = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
  return defaultPayloadConverter.fromPayload<CampaignInput>(payload as Payload);
}

/** What a child came to, whether it failed or not; undefined of one that was never started. */
async function resultOfChild({ client }: Temporal, workflowId: string): Promise<EndedChild | undefined> {
  try {
    return (await client.workflow.getHandle(workflowId).result()) as EndedChild;
  } catch (error) {
    return childFailureIn<EndedChild>((error as Error).cause);
  }
}

/** Whether somebody takes up workflows there. */
export async function hasWorkers({ client }: Temporal, queue: string): Promise<boolean> {
  const { namespace } = client.options;
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: WORKFLOW_QUEUE,
  });
  return (pollers ?? []).length > 0;
}

/** A server knows one campaign of a name, whichever home it is from. */
export const ofAnotherHome = (name: string, { status, taskQueue }: CampaignState): UserError =>
  new UserError(
    `campaign ${name} ${status === 'RUNNING' ? 'is running' : 'was run'} on this Temporal server from another home (task queue ${taskQueue}); ` +
      `give this one its own name with --name, for example --name ${name}-2, name that home with --home, or use another TEMPORAL_NAMESPACE`,
  );

/** The stage that it was started to stop after, if that is not the last one. */
export function stoppedAfter(memo: Record<string, unknown> | undefined): Stage | undefined {
  const { until } = (memo ?? {}) as StartMemo;
  return until && until !== stages.at(-1) ? until : undefined;
}

export const stoppedText = (stage: Stage): string => `stopped after ${stage}`;

const statusText = (name: string): string => name.toLowerCase().replaceAll('_', ' ');

/** What can be done to a campaign that runs; through it, its children hear of it. */
type CampaignCommand = keyof typeof signalNames | 'cancel';

/** @throws UserError if no campaign of this name is running. */
export async function commandCampaign({ client }: Temporal, name: string, command: CampaignCommand): Promise<void> {
  const handle = client.workflow.getHandle(workflowIds.campaign(name));
  try {
    if (command !== 'cancel') return await handle.signal(signalNames[command]);
    // To cancel what has ended is no error for the server.
    const { status } = await handle.describe();
    if (status.name !== 'RUNNING')
      throw new UserError(`campaign ${name} is not running: it has ended (${statusText(status.name)})`);
    await handle.cancel();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      throw new UserError(`no campaign ${name} is running here; \`campaign status\` lists those that are`);
    throw error;
  }
}

export interface ListedCampaign {
  name: string;
  status: string;
  startedAt: number;
  /** What needs a person. */
  attention?: string | undefined;
}

/** Campaigns that this server knows, newest first. */
export async function listCampaigns({ client }: Temporal): Promise<ListedCampaign[]> {
  const found: ListedCampaign[] = [];
  const attention = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');
  for await (const { workflowId, status, startTime, memo, typedSearchAttributes } of client.workflow.list({
    query: "WorkflowType = 'campaign'",
  })) {
    if (found.some(({ name }) => name === workflowId)) continue;
    const runs = status.name === 'RUNNING';
    const paused = runs && (memo as Memo | undefined)?.paused;
    const stopped = status.name === 'COMPLETED' && stoppedAfter(memo);
    const state = paused ? 'paused' : stopped ? stoppedText(stopped) : statusText(status.name);
    found.push({
      name: workflowId,
      status: state,
      startedAt: startTime.getTime(),
      attention: runs ? typedSearchAttributes.get(attention) : undefined,
    });
  }
  return found;
}

/** Why a closed campaign did not complete. */
interface CampaignFailure {
  /** The innermost cause, which names what broke. */
  reason: string;
  /** What is said of an artifact that was found damaged: started again, the campaign makes it anew. */
  damaged?: string | undefined;
}

export async function campaignFailure({ client }: Temporal, name: string): Promise<CampaignFailure> {
  try {
    await client.workflow.getHandle(workflowIds.campaign(name)).result();
    return { reason: 'no failure is recorded' };
  } catch (error) {
    return failureIn(error instanceof WorkflowFailedError ? (error.cause ?? error) : error);
  }
}

export function failureIn(error: unknown): CampaignFailure {
  const type: FailureType = 'ArtifactDamaged';
  let damaged: string | undefined;
  let cause: unknown = error;
  for (;;) {
    if (cause instanceof ApplicationFailure && cause.type === type) damaged ??= messageOf(cause);
    if (!(cause instanceof Error && cause.cause instanceof Error)) break;
    cause = cause.cause;
  }
  return { reason: messageOf(cause), damaged };
}
