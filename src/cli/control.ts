/**
 * What is done to a campaign that a server knows, or is to know: it is started, here as by `campaign run`, ended, started again. Whatever is
 * finished is found in the store by its key.
 */
import {
  WorkflowNotFoundError,
  type WorkflowExecutionDescription,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { Campaign } from '../domain/campaign';
import type { ChildResult } from '../domain/results';
import { LAST_STAGE, taskQueues, type Stage } from '../domain/work';
import {
  childFailureIn,
  searchAttributeNames,
  workflowIds,
  workflowTypes,
  type CampaignInput,
  type CampaignResult,
  type Memo,
} from '../workflows/messages';
import type { ConfigDigests } from './campaign-file';
import { UserError } from './errors';
import { type CommonOptions, requireYes } from './options';
import { UnknownCampaign, valueOf, withTemporal, type Temporal } from './temporal';
import { stateOf } from './watch/tree';

/** Of what a campaign's file says (campaign-file.ts). */
export interface Digests {
  configDigests: ConfigDigests;
  terms: string;
  /** Of the files that the target names, where its kind knows them. */
  contents?: string | undefined;
}

/** What the memo holds of a start, for a later command to compare with what its file says. */
interface StartMemo {
  /** Of the stage after which it stops. */
  configDigest?: string | undefined;
  /** Of the terms that it was started with. */
  terms?: string | undefined;
  contents?: string | undefined;
  until?: Stage | null | undefined;
  /** The campaign file, for readers of Temporal's UI, as the next two. */
  file?: string | undefined;
  target?: string | undefined;
  baseModel?: string | undefined;
}

/** What the memo says: also whose workers it waits for once it is prepared (`pool`). */
export interface CampaignState extends Memo, Omit<StartMemo, 'until'> {
  status: WorkflowExecutionDescription['status']['name'];
  runId: string;
  /** It was cancelled, and its steps are saving what they have. */
  isCancelling: boolean;
  /** That of its store. */
  taskQueue: string;
  /** That of its workflow code (workers/versions.ts); undefined until a worker has taken it up. */
  version?: string | undefined;
  until?: Stage | undefined;
  /** The stage that began last. */
  stage?: string | undefined;
}

/** The latest run of a campaign; undefined if there was none. */
export async function campaignState({ client }: Temporal, name: string): Promise<CampaignState | undefined> {
  try {
    const handle = client.workflow.getHandle(workflowIds.campaign(name));
    const { status, runId, taskQueue, memo, raw, typedSearchAttributes } = await handle.describe();
    const isCancelling = status.name === 'RUNNING' && raw.workflowExtendedInfo?.cancelRequested === true;
    const { until, ...started }: Memo & StartMemo = memo ?? {};
    const version = raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId ?? undefined;
    const stage = typedSearchAttributes.get(defineSearchAttributeKey(searchAttributeNames.stage, 'KEYWORD'));
    const now = { status: status.name, stage, runId, taskQueue, version, isCancelling };
    return { ...started, until: until ?? undefined, ...now };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/**
 * Starts a campaign's workflow, or takes up the one that runs under its name. `store`: the id of the store that it works in.
 * @throws UserError if another home has just started one of this name.
 */
export async function startCampaign(
  temporal: Temporal,
  start: Digests & {
    campaign: Campaign;
    store: string;
    file?: string | undefined;
    until?: Stage | undefined;
    force?: boolean | undefined;
  },
): Promise<void> {
  const { campaign, store, configDigests, terms, contents, file, until, force } = start;
  const configDigest = configDigests[until ?? LAST_STAGE];
  const input: CampaignInput = { campaign, ...(until && { until }), ...(force && { force }) };
  const options = startOptions(input, { taskQueue: taskQueues.control(store), configDigest, terms, contents, file });
  await temporal.client.workflow.start(workflowTypes.campaign, {
    ...options,
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  const now = await campaignState(temporal, campaign.name);
  if (now && now.taskQueue !== options.taskQueue) throw ofAnotherHome(campaign.name, now);
}

function startOptions(
  input: CampaignInput,
  {
    taskQueue,
    configDigest,
    terms,
    contents,
    file,
  }: Pick<CampaignState, 'taskQueue' | 'configDigest' | 'terms' | 'contents' | 'file'>,
): WorkflowStartOptions {
  const { name, seed, target, baseModel } = input.campaign;
  const shown = { file, target: target.kind, baseModel: baseModel.path };
  const memo: StartMemo = { configDigest, terms, contents, until: input.until ?? null, ...shown };
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
 * Starts a completed campaign again to retry what failed; everything else is found in the store. `only`: a capability or a baseline, if not all.
 * @returns the names of what is retried; empty if nothing failed.
 */
export async function retryCampaign(
  temporal: Temporal,
  { name, only }: { name: string; only?: string | undefined },
): Promise<string[]> {
  const state = await campaignState(temporal, name);
  if (!state) throw new UnknownCampaign(name);
  const { campaign, until, force } = await inputOf(temporal, name, state);
  const restart = async (again: string[], kept?: CampaignInput['kept']) => {
    const input = { campaign, ...(until && { until }), ...(force && { force }), ...(kept && { kept }) };
    if (again.length > 0) await temporal.client.workflow.start(workflowTypes.campaign, startOptions(input, state));
    return again;
  };
  const { failed, children } = (await temporal.client.workflow.getHandle(name).result()) as CampaignResult;
  if (only === undefined) return restart(failed);
  const child = children.find((one) => one.name === only);
  if (!child)
    throw new UserError(
      `campaign ${name} has no capability or baseline ${only}; it has ${children.map((one) => one.name).join(', ') || 'none'}`,
    );
  if (child.status !== 'failed') return [];
  const others = children.filter((one) => one !== child);
  const kept = await Promise.all(others.map(({ workflowId }) => resultOfChild(temporal, workflowId)));
  const ended = kept.flatMap((one) => one ?? []);
  return restart([only], ended);
}

/** Returns the input that a campaign was started with. */
export async function inputOf({ client }: Temporal, name: string, { runId }: CampaignState): Promise<CampaignInput> {
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace: client.options.namespace,
    execution: { workflowId: name, runId },
    maximumPageSize: 1,
  });
  return valueOf(client, history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads);
}

/** What a child came to, whether it failed or not; undefined of one that was never started. */
async function resultOfChild({ client }: Temporal, workflowId: string): Promise<ChildResult | undefined> {
  try {
    return (await client.workflow.getHandle(workflowId).result()) as ChildResult;
  } catch (error) {
    return childFailureIn<ChildResult>((error as Error).cause);
  }
}

/** A server knows one campaign of a name, whichever home it is from. */
export const ofAnotherHome = (name: string, { status, taskQueue }: CampaignState): UserError =>
  new UserError(
    `campaign ${name} ${status === 'RUNNING' ? 'is running' : 'was run'} on this Temporal server from another home (task queue ${taskQueue}); ` +
      `give this one its own name with --name, for example --name ${name}-2, name that home with --home, or use another TEMPORAL_NAMESPACE`,
  );

/** `campaign cancel`: cancels the workflow and, with it, its children. */
export const cancel = (name: string, options: CommonOptions): Promise<string> =>
  withTemporal(options, async (temporal) => {
    const state = await campaignState(temporal, name);
    if (!state) throw new UnknownCampaign(name);
    // The server accepts a cancellation of an ended workflow.
    const { status } = state;
    if (status !== 'RUNNING')
      throw new UserError(`campaign ${name} is not running: it has ended (${stateOf({ status })})`);
    await requireYes(`cancel campaign ${name}`, { yes: options.yes, otherwise: 'nothing was cancelled' });
    await temporal.client.workflow.getHandle(workflowIds.campaign(name)).cancel();
    return `campaign ${name}: cancelling; running trainings save their state, and the same run continues from it`;
  });
