/** Talking to Temporal: connecting, starting a campaign's workflow, finding out where it stands. */
import {
  Client,
  Connection,
  isGrpcServiceError,
  WorkflowNotFoundError,
  type WorkflowExecutionDescription,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes, type Payload } from '@temporalio/common';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import type { Campaign } from '../domain/campaign';
import type { EndedArm, EndedCapability } from '../domain/results';
import { LAST_STAGE, taskQueues, type Stage } from '../domain/work';
import {
  childFailureIn,
  searchAttributeNames,
  signalNames,
  workflowIds,
  type CampaignInput,
  type CampaignResult,
  type Memo,
} from '../workflows/messages';
import { dataConverter } from '../temporal/codec';
import { clusterAt, whyNot, type TemporalAddress } from '../temporal/connection';
import { tracedStarts } from '../tracing';
import type { ConfigDigests } from './campaign-file';
import { UserError, messageOf } from './errors';
import { homeOf, namespace, type CommonOptions } from './options';
import { serverOf } from './run/processes';

const CONNECT_TIMEOUT = '3s';
const KEYWORD = 2;
const WORKFLOW_QUEUE = 1;
/** The dev server forgets finished workflows after a day by default. */
const RETENTION_SECONDS = 365 * 24 * 3600;

export interface Temporal {
  client: Client;
  close(): Promise<void>;
}

/** @throws UserError if nothing answers there, or refuses. */
export async function connect({ namespace, ...at }: TemporalAddress): Promise<Temporal> {
  const converter = dataConverter();
  try {
    const connection = await Connection.connect({ ...at, connectTimeout: CONNECT_TIMEOUT });
    const { interceptors, flush } = await tracedStarts();
    const close = () => connection.close().finally(flush);
    return { client: new Client({ connection, namespace, interceptors, dataConverter: converter }), close };
  } catch (error) {
    throw new UserError(await whyNot({ namespace, ...at }, error));
  }
}

/** Address of the server to talk to: the named cluster, else the one that runs for this home. @throws UserError if there is none. */
export function addressOf(options: CommonOptions): TemporalAddress {
  if (options.temporalAddress) return clusterAt(options.temporalAddress);
  const home = homeOf(options);
  const address = serverOf(home);
  if (address) return { address, namespace: namespace() };
  throw new UserError(
    `no Temporal server of ${home.root} is running; start it with \`campaign serve\` or \`campaign run FILE\`, or name a cluster with --temporal-address`,
  );
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

/** The same for a command that files of the home can answer: without a connection if the home's own server does not run. */
export async function withServer<T>(
  options: CommonOptions,
  work: (temporal: Temporal | undefined) => Promise<T>,
): Promise<T> {
  if (options.temporalAddress) return withTemporal(options, work);
  const address = serverOf(homeOf(options));
  let temporal: Temporal | undefined;
  try {
    temporal = address ? await connect({ address, namespace: namespace() }) : undefined;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
  }
  try {
    return await work(temporal);
  } finally {
    await temporal?.close();
  }
}

/** What gRPC's codes say of a server that is away, that starts or that has too much to do: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE. */
const AWAY = [1, 2, 4, 8, 10, 13, 14];

/** Whether an error of Temporal's client says that the server gave no answer now, but may give one later. A refusal is an answer. */
export const isServerAway = (error: unknown): boolean => AWAY.includes(grpcCode(error) ?? 0);

/** Whether it says that a query got no answer: from the server, or from a worker that it asked. */
export const isNoAnswer = (error: unknown): boolean => grpcCode(error) !== undefined;

/** The client wraps what gRPC says. */
export function grpcCode(error: unknown): number | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (isGrpcServiceError(at)) return at.code;
  return undefined;
}

/**
 * Makes an existing cluster ready: search attributes are registered once per namespace, or were by an operator. Where the server does not show them,
 * `note` is told which there must be.
 * @throws UserError if some are missing and can't be added.
 */
export async function registerSearchAttributes(
  { client }: Temporal,
  { address, namespace }: TemporalAddress,
  note: (text: string) => void,
): Promise<void> {
  const { operatorService } = client.connection as Connection;
  const names = Object.values(searchAttributeNames);
  const why = (error: unknown) => messageOf(error instanceof Error ? (error.cause ?? error) : error);
  const fix = (missing: string[]) => `have an operator add ${missing.join(', ')} (Keyword) to namespace ${namespace}`;
  const listed = await operatorService.listSearchAttributes({ namespace }).catch((error: unknown) => {
    note(`warning: ${address} does not show its search attributes (${why(error)}); if none are there, ${fix(names)}`);
  });
  if (!listed) return;
  const missing = names.filter((name) => !(name in (listed.customAttributes ?? {})));
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
  if (missing.length === 0) return;
  await operatorService.addSearchAttributes({ namespace, searchAttributes }).catch((error: unknown) => {
    throw new UserError(`cannot register search attributes at ${address} (${why(error)}); ${fix(missing)}`);
  });
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

/** What the memo holds of a start, for a later command to compare with what its file says. */
interface StartMemo {
  /** Of the stage after which it stops. */
  configDigest?: string | undefined;
  /** Of the terms that it was started with. */
  terms?: string | undefined;
  until?: Stage | null | undefined;
}

/** What the memo says: `paused`, and whose workers it waits for once it is prepared (`pool`) too. */
export interface CampaignState extends Memo, Omit<StartMemo, 'until'> {
  status: WorkflowExecutionDescription['status']['name'];
  runId: string;
  /** That of its store. */
  taskQueue: string;
  until?: Stage | undefined;
}

/** The latest run of a campaign; undefined if there was none. */
export async function campaignState({ client }: Temporal, name: string): Promise<CampaignState | undefined> {
  try {
    const { status, runId, taskQueue, memo } = await client.workflow.getHandle(workflowIds.campaign(name)).describe();
    const { until, ...started }: Memo & StartMemo = memo ?? {};
    return { ...started, until: until ?? undefined, status: status.name, runId, taskQueue };
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
  const input: CampaignInput = { campaign, ...(until && { until }), ...(force && { force }) };
  const options = startOptions(input, { taskQueue: taskQueues.control(store), configDigest, terms });
  const before = await campaignState(temporal, campaign.name);
  const paused = before?.status === 'FAILED' && before.paused;
  await begin(temporal, { ...options, workflowIdConflictPolicy: 'USE_EXISTING' }, paused);
  const now = await campaignState(temporal, campaign.name);
  if (now && now.taskQueue !== options.taskQueue) throw ofAnotherHome(campaign.name, now);
}

async function begin({ client: { workflow } }: Temporal, options: WorkflowStartOptions, paused = false): Promise<void> {
  if (paused) await workflow.signalWithStart('campaign', { ...options, signal: signalNames.pause });
  else await workflow.start('campaign', options);
}

function startOptions(
  input: CampaignInput,
  { taskQueue, configDigest, terms }: Pick<CampaignState, 'taskQueue' | 'configDigest' | 'terms'>,
): WorkflowStartOptions {
  const { name, seed } = input.campaign;
  const memo: StartMemo = { configDigest, terms, until: input.until ?? null };
  const attribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
  return {
    workflowId: workflowIds.campaign(name),
    taskQueue,
    args: [input],
    memo: { ...memo },
    typedSearchAttributes: new TypedSearchAttributes([{ key: attribute, value: name }]),
    staticSummary: `campaign ${name}, seed ${seed}`,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
  };
}

/**
 * Starts a campaign that has ended once more, to do again what failed in it; everything else is found in the store by its key. `only`: a capability
 * or an arm, if not all.
 * @returns what is done again; empty if nothing failed.
 * @throws UserError if it can't be.
 */
export async function retryCampaign(
  temporal: Temporal,
  { name, only }: { name: string; only?: string | undefined },
): Promise<string[]> {
  const state = await campaignState(temporal, name);
  if (!state) throw unknownCampaign(name);
  if (state.status === 'RUNNING')
    throw new UserError(`campaign ${name} is running; what fails in it can be done again when it has ended`);
  const { campaign, until, force } = await inputOf(temporal, name, state);
  const restart = async (again: string[], kept?: CampaignInput['kept']) => {
    const input = { campaign, ...(until && { until }), ...(force && { force }), ...(kept && { kept }) };
    if (again.length > 0) await temporal.client.workflow.start('campaign', startOptions(input, state));
    return again;
  };
  if (state.status !== 'COMPLETED') {
    if (only === undefined) return restart([name]);
    throw new UserError(
      `campaign ${name} has ended as ${state.status.toLowerCase()} as a whole: \`campaign retry ${name}\` starts it again`,
    );
  }
  const { failed, children } = (await temporal.client.workflow.getHandle(name).result()) as CampaignResult;
  if (only === undefined) return restart(failed);
  const child = children.find((one) => one.name === only);
  if (!child)
    throw new UserError(
      `campaign ${name} has no capability or arm ${only}; it has ${children.map((one) => one.name).join(', ') || 'none'}`,
    );
  if (child.status !== 'failed') return [];
  const others = children.filter((one) => one !== child);
  const kept = await Promise.all(others.map(({ workflowId }) => resultOfChild(temporal, workflowId)));
  const ended = kept.flatMap((one) => one ?? []);
  return restart([only], ended);
}

/**
 * Ends a campaign with its children, whatever they do, and starts it again with the same input, under the code that its workers have now; what is
 * finished is found in the store by its key. No worker is asked: one whose code can't go on could not cancel it either.
 * @throws UserError if there is none of this name.
 */
export async function restartCampaign(temporal: Temporal, name: string): Promise<void> {
  const { workflow } = temporal.client;
  const state = await campaignState(temporal, name);
  if (!state) throw unknownCampaign(name);
  const options = startOptions(await inputOf(temporal, name, state), state);
  await begin(temporal, { ...options, workflowIdConflictPolicy: 'TERMINATE_EXISTING' }, state.paused);
  const runId = (await campaignState(temporal, name))?.runId;
  const query = `${searchAttributeNames.campaign} = ${JSON.stringify(name)} AND ExecutionStatus = 'Running'`;
  for await (const one of workflow.list({ query })) {
    if (one.taskQueue !== state.taskQueue || !one.parentExecution || one.parentExecution.runId === runId) continue;
    const ending = workflow.getHandle(one.workflowId, one.runId).terminate('restarted');
    await ending.catch((error: unknown) => {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    });
  }
}

const unknownCampaign = (name: string): UserError =>
  new UserError(`there is no campaign ${name} here; \`campaign status\` lists those that there are`);

async function inputOf({ client }: Temporal, name: string, { runId }: CampaignState): Promise<CampaignInput> {
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace: client.options.namespace,
    execution: { workflowId: name, runId },
    maximumPageSize: 1,
  });
  return valueOf(client, history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads);
}

/** What the first of a server's payloads holds. */
export const valueOf = <T>({ options }: Client, payloads: Payload[] | null | undefined): Promise<T> =>
  decodeFromPayloadsAtIndex(options.loadedDataConverter, 0, payloads);

type EndedChild = EndedCapability | EndedArm;

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
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
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
  const { until }: StartMemo = memo ?? {};
  return until && until !== LAST_STAGE ? until : undefined;
}

export const stoppedText = (stage: Stage): string => `stopped after ${stage}`;

const statusText = (name: string): string => name.toLowerCase().replaceAll('_', ' ');

/** What can be done to a campaign that runs; through it, its children hear of it. @throws UserError if none of this name is running, or to be restarted. */
export async function commandCampaign(
  temporal: Temporal,
  name: string,
  command: keyof typeof signalNames | 'cancel' | 'restart',
): Promise<void> {
  if (command === 'restart') return restartCampaign(temporal, name);
  const handle = temporal.client.workflow.getHandle(workflowIds.campaign(name));
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

/** Campaigns that this server knows, each with its newest run. */
export async function listCampaigns({ client }: Temporal): Promise<ListedCampaign[]> {
  const listed = new Map<string, ListedCampaign>();
  const attention = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');
  const query = "WorkflowType = 'campaign'";
  for await (const { workflowId, status, startTime, memo, typedSearchAttributes } of client.workflow.list({ query })) {
    if (listed.has(workflowId)) continue;
    const runs = status.name === 'RUNNING';
    const isPaused = runs && (memo as Memo | undefined)?.paused;
    const stopped = status.name === 'COMPLETED' ? stoppedAfter(memo) : undefined;
    listed.set(workflowId, {
      name: workflowId,
      status: isPaused ? 'paused' : stopped ? stoppedText(stopped) : statusText(status.name),
      startedAt: startTime.getTime(),
      attention: runs ? typedSearchAttributes.get(attention) : undefined,
    });
  }
  return [...listed.values()];
}
