/** Starts and cancels campaigns. Finished steps are found in the store by their keys. */
import { WorkflowNotFoundError, type WorkflowExecutionDescription } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { Campaign } from '../domain/campaign';
import { taskQueues, type Stage } from '../domain/work';
import { searchAttributes, workflowIds, workflowTypes, type CampaignInput, type Memo } from '../workflows/messages';
import { UserError } from './errors';
import { type CommonOptions, requireYes } from './options';
import { UnknownCampaign } from './campaigns';
import { valueOf, withTemporal, type Temporal } from './temporal';
import { stateOf } from './watch/tree';

/** Digests of a start in the memo, which a later command compares with its file (campaign-file.ts). */
export interface Digests {
  configDigest: string;
  terms: string;
  /** Digest of the files that the target names; undefined if its kind does not report them. */
  contents?: string | undefined;
}

/** The state of a campaign on a server, with its memo; `pool` names the workers that it waits for once it is prepared. */
export interface CampaignState extends Memo, Partial<Digests> {
  status: WorkflowExecutionDescription['status']['name'];
  runId: string;
  /** It was cancelled, and its steps are saving what they have. */
  isCancelling: boolean;
  /** The control queue of its store. */
  taskQueue: string;
  /** Version of its workflow code (workers/versions.ts); undefined until a worker has taken it up. */
  version?: string | undefined;
  until?: Stage | undefined;
}

/** The latest run of a campaign; undefined if there was none. */
export async function campaignState({ client }: Temporal, name: string): Promise<CampaignState | undefined> {
  try {
    const handle = client.workflow.getHandle(workflowIds.campaign(name));
    const { status, runId, taskQueue, memo, raw } = await handle.describe();
    const isCancelling = status.name === 'RUNNING' && raw.workflowExtendedInfo?.cancelRequested === true;
    const { until, ...started }: Memo & Partial<Digests> & { until?: Stage | null } = memo ?? {};
    const version = raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId ?? undefined;
    return { ...started, until: until ?? undefined, status: status.name, runId, taskQueue, version, isCancelling };
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
  o: Digests & { campaign: Campaign; store: string; until?: Stage | undefined; force?: boolean | undefined },
): Promise<void> {
  const { campaign, store, until, force, configDigest, terms, contents } = o;
  const { name, seed } = campaign;
  const taskQueue = taskQueues.control(store);
  const input: CampaignInput = { campaign, ...(until && { until }), ...(force && { force }) };
  await temporal.client.workflow.start(workflowTypes.campaign, {
    workflowId: workflowIds.campaign(name),
    taskQueue,
    args: [input],
    memo: { configDigest, terms, contents, until: until ?? null },
    typedSearchAttributes: new TypedSearchAttributes([{ key: searchAttributes.campaign, value: name }]),
    staticSummary: `campaign ${name}, seed ${seed}`,
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  const now = await campaignState(temporal, name);
  if (now && now.taskQueue !== taskQueue) throw ofAnotherHome(name, now);
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

/** Error for a campaign whose name another home uses: names are unique on a server. */
export const ofAnotherHome = (name: string, { status, taskQueue }: CampaignState): UserError =>
  new UserError(
    'name_taken',
    'name',
    `campaign ${name} ${status === 'RUNNING' ? 'is running' : 'was run'} on this Temporal server from another home (task queue ${taskQueue}); ` +
      `give this one its own name with --name, for example --name ${name}-2, name that home with --home, or use another TEMPORAL_NAMESPACE`,
  );

/** `campaign cancel`: cancels the workflow and, with it, its children. */
export const cancel = (name: string, options: CommonOptions): Promise<string> =>
  withTemporal(options, async (temporal) => {
    const state = await campaignState(temporal, name);
    if (!state) throw new UnknownCampaign(name);
    // The server accepts a cancellation of an ended workflow.
    if (state.status !== 'RUNNING')
      throw new UserError(
        'not_running',
        'campaign',
        `campaign ${name} is not running: it has ended (${stateOf({ status: state.status })})`,
      );
    await requireYes(`cancel campaign ${name}`, { yes: options.yes, otherwise: 'nothing was cancelled' });
    await temporal.client.workflow.getHandle(workflowIds.campaign(name)).cancel();
    return `campaign ${name}: cancelling; running trainings save their state, and the same run continues from it`;
  });
