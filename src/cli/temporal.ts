/** Talking to Temporal: connecting, starting a campaign's workflow, finding out where it stands. */
import {
  Client,
  Connection,
  isGrpcServiceError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  type WorkflowHandle,
} from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { Campaign } from '../domain/campaign';
import type { Stage } from '../domain/stages';
import type { CampaignInput } from '../workflows/messages';
import { searchAttributeNames, signalNames, taskQueues, workflowIds } from '../workflows/messages';
import { UserError, messageOf } from './errors';

const CONNECT_TIMEOUT = '3s';
const KEYWORD = 2;
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

/** Whether an error of Temporal's client says that no answer came: from the server, or from a worker that it asked. */
export function isNoAnswer(error: unknown): boolean {
  // The client wraps what gRPC says.
  for (let at = error; at instanceof Error; at = at.cause) if (isGrpcServiceError(at)) return true;
  return false;
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

export interface CampaignState {
  status: 'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'TERMINATED' | 'TIMED_OUT' | 'OTHER';
  runId: string;
  configDigest?: string;
  until?: Stage;
}

/** The latest run of a campaign; undefined if there was none. */
export async function campaignState({ client }: Temporal, name: string): Promise<CampaignState | undefined> {
  try {
    const { status, runId, memo = {} } = await client.workflow.getHandle(workflowIds.campaign(name)).describe();
    const known = ['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT'] as const;
    const { configDigest, until } = memo as { configDigest?: string; until?: Stage | null };
    return {
      status: known.find((one) => one === status.name) ?? 'OTHER',
      runId,
      ...(configDigest ? { configDigest } : {}),
      ...(until ? { until } : {}),
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Starts a campaign's workflow, or takes up the one that runs under its name. */
export async function startCampaign(
  { client }: Temporal,
  start: { campaign: Campaign; configDigest: string; until?: Stage | undefined },
): Promise<WorkflowHandle> {
  const { campaign, configDigest, until } = start;
  const input: CampaignInput = { campaign, ...(until ? { until } : {}) };
  const name = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
  return client.workflow.start('campaign', {
    workflowId: workflowIds.campaign(campaign.name),
    taskQueue: taskQueues.control,
    args: [input],
    memo: { configDigest, until: until ?? null },
    typedSearchAttributes: new TypedSearchAttributes([{ key: name, value: campaign.name }]),
    staticSummary: `campaign ${campaign.name}, seed ${campaign.seed}`,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
  });
}

/** Pauses or resumes a campaign and, through it, its children. */
export async function signalCampaign(
  { client }: Temporal,
  name: string,
  signal: keyof typeof signalNames,
): Promise<void> {
  try {
    await client.workflow.getHandle(workflowIds.campaign(name)).signal(signalNames[signal]);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      throw new UserError(`no campaign ${name} is running here; \`campaign status\` lists those that are`);
    throw error;
  }
}

/** Campaigns that this server knows, newest first. */
export async function listCampaigns({
  client,
}: Temporal): Promise<{ name: string; status: string; startTime: Date }[]> {
  const found: { name: string; status: string; startTime: Date }[] = [];
  for await (const run of client.workflow.list({ query: "WorkflowType = 'campaign'" }))
    if (!found.some(({ name }) => name === run.workflowId))
      found.push({ name: run.workflowId, status: run.status.name.toLowerCase(), startTime: run.startTime });
  return found;
}

/** Why a closed campaign did not complete: the innermost cause, which names what broke. */
export async function workflowFailure({ client }: Temporal, name: string): Promise<string> {
  try {
    await client.workflow.getHandle(workflowIds.campaign(name)).result();
    return 'no failure is recorded';
  } catch (error) {
    let cause: unknown = error instanceof WorkflowFailedError ? (error.cause ?? error) : error;
    while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
    return messageOf(cause);
  }
}
