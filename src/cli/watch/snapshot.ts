/**
 * The state of a campaign, gathered from Temporal: executions, the workflows' answers to queries, and the activities' heartbeats. HOME/<campaign>/status.json
 * keeps the last snapshot, which is shown while no server runs.
 */
import { join } from 'node:path';
import {
  QueryNotRegisteredError,
  type WorkflowExecutionDescription,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { decodeOptionalFailureToOptionalError } from '@temporalio/common/lib/internal-non-workflow';
import { optionalTsToMs } from '@temporalio/common/lib/time';
import { asideIn, replaceFile } from '../../store/durable-file';
import { type Stage, stages } from '../../domain/campaign';
import { failureTypes } from '../../domain/failures';
import type { CampaignChild } from '../../domain/results';
import type { HeartbeatDetails } from '../../domain/work';
import {
  type CampaignProgress,
  childOf,
  type ChildProgress,
  queryNames,
  searchAttributes,
  workflowIds,
} from '../../workflows/messages';
import { UnknownCampaign } from '../campaigns';
import { messageOf } from '../errors';
import { readJsonFile } from '../project';
import { isNoAnswer, isServerAway, type Temporal, valueOf } from '../temporal';

/** A query waits for a worker; without an answer in this time the snapshot holds only what the server itself knows. */
const QUERY_MS = 4000;

/** An activity that has not ended. Times are ms since the epoch. */
export interface ActivitySnapshot {
  type: string;
  /** Task queue; undefined if the server is too old to report it. */
  queue?: string | undefined;
  /** `scheduled`: no worker has it, because none is free or because `nextAttemptAt` is ahead. */
  state: 'scheduled' | 'started' | 'cancelling';
  /** The one that runs; of a scheduled activity the next one. */
  attempt: number;
  /** When the next attempt is due after one that failed. */
  nextAttemptAt?: number | undefined;
  heartbeat?: HeartbeatDetails | undefined;
  /** Why the attempt before this one failed, in words; and the type, where the project knows it. */
  lastFailure?: string | undefined;
  lastFailureType?: string | undefined;
}

/** A workflow whose code fails: how often in a row it did when a worker took it up. */
interface Failing {
  workflowId: string;
  failures: number;
}

export interface Snapshot {
  name: string;
  /** Temporal's id of this run of the workflow: a name that is started again has another one. */
  runId: string;
  /** Temporal's status of the workflow: RUNNING, COMPLETED, FAILED, ... */
  status: string;
  /** It runs, and was cancelled: its steps are saving what they have. */
  isCancelling?: boolean;
  startedAt: number;
  closedAt?: number | undefined;
  /** Why a closed campaign did not complete; and the type, where the project knows it. */
  failure?: string | undefined;
  failureType?: string | undefined;
  /** The stage that began last. */
  stage?: Stage | undefined;
  /** `approval` while the campaign or one of its children waits for one. */
  attention?: string | undefined;
  /** Undefined if no worker answers and nothing is known from before. */
  progress?: CampaignProgress | undefined;
  /** When `progress` was so, if no worker answers now. */
  progressAt?: number | undefined;
  /** When all this was so, if there is no server to ask. */
  asOf?: number | undefined;
  /** Failing workflow tasks of a running campaign and its children, the campaign's first. */
  failing?: Failing[] | undefined;
  activities: ActivitySnapshot[];
  /** Children that have not ended. */
  children: (CampaignChild & { progress?: ChildProgress | undefined; activities: ActivitySnapshot[] })[];
}

/** @throws UnknownCampaign if there is none of this name; errors of Temporal's client if the server is unavailable. */
export async function takeSnapshot(temporal: Temporal, name: string): Promise<Snapshot> {
  const seen = await lookAt<CampaignProgress>(temporal, workflowIds.campaign(name));
  if (!seen) throw new UnknownCampaign(name);
  const { execution, progress, activities } = seen;
  const { runId, status, startTime, closeTime, typedSearchAttributes, raw } = execution;
  const isRunning = status.name === 'RUNNING';
  const pending = isRunning ? (raw.pendingChildren ?? []).map(({ workflowId }) => childOf(workflowId ?? '')) : [];
  const looks = await Promise.all(
    pending.map(async (child) => ({ child, ...(await lookAt<ChildProgress>(temporal, child.workflowId)) })),
  );
  const stage = typedSearchAttributes.get(searchAttributes.stage);
  return {
    name,
    runId,
    status: status.name,
    isCancelling: isRunning && raw.workflowExtendedInfo?.cancelRequested === true,
    startedAt: startTime.getTime(),
    closedAt: closeTime?.getTime(),
    ...(['RUNNING', 'COMPLETED', 'CANCELLED'].includes(status.name) ? {} : await failureOf(temporal, name, runId)),
    stage: stages.find((one) => one === stage),
    attention: [seen, ...looks].find((look) => look.attention)?.attention,
    progress,
    failing: isRunning ? [seen, ...looks].flatMap((look) => look.failing ?? []) : [],
    activities,
    children: looks.map(({ child, progress, activities = [] }) => ({ ...child, progress, activities })),
  };
}

/** A worker that is killed while it has the workflow counts once as well. */
const LOST_WORKERS = 1;

/** Returns what the server, and a worker where one answers, know of a workflow; undefined if the server does not know it (yet). */
async function lookAt<Progress>(temporal: Temporal, workflowId: string) {
  const handle = temporal.client.workflow.getHandle(workflowId);
  try {
    const [execution, progress] = await Promise.all([handle.describe(), ask<Progress>(temporal, handle)]);
    const { raw, typedSearchAttributes } = execution;
    const failures = (raw.pendingWorkflowTask?.attempt ?? 1) - 1;
    return {
      ...{ execution, progress, activities: await activitiesOf(temporal, execution) },
      attention: typedSearchAttributes.get(searchAttributes.attention),
      failing: failures > LOST_WORKERS ? [{ workflowId, failures }] : [],
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** The answer to the progress query; undefined if no worker gives one in time. */
async function ask<T>({ client }: Temporal, handle: WorkflowHandle): Promise<T | undefined> {
  try {
    return await client.withDeadline(Date.now() + QUERY_MS, () => handle.query<T>(queryNames.progress));
  } catch (error) {
    if (isNoAnswer(error) || error instanceof QueryNotRegisteredError) return undefined;
    throw error;
  }
}

async function failureOf({ client }: Temporal, name: string, runId: string) {
  try {
    await client.withDeadline(Date.now() + QUERY_MS, () => client.workflow.getHandle(name, runId).result());
    return {};
  } catch (error) {
    if (isServerAway(error)) return {};
    const { reason, type } = reasonOf(error);
    return { failure: reason, failureType: type };
  }
}

export const failureText = ({ workflowId, failures }: Failing): string =>
  `the code of workflow ${workflowId} failed ${failures} times in a row: logs/control-worker.log says why; after the fix \`campaign run FILE --restart\``;

/** Temporal's PendingActivityState, whose enum is in no package that this one depends on. */
const states: Record<number, ActivitySnapshot['state']> = { 2: 'started', 3: 'cancelling' };

/** Returns the pending activities of a workflow. */
const activitiesOf = ({ client }: Temporal, { raw }: WorkflowExecutionDescription): Promise<ActivitySnapshot[]> =>
  Promise.all(
    (raw.pendingActivities ?? []).map(async (pending) => {
      const payloads = pending.heartbeatDetails?.payloads;
      const { loadedDataConverter } = client.options;
      const failure = await decodeOptionalFailureToOptionalError(loadedDataConverter, pending.lastFailure);
      const { reason, type } = failure ? reasonOf(failure) : {};
      const heartbeat = payloads?.[0] && (await valueOf<Partial<HeartbeatDetails>>(client, payloads));
      return {
        type: pending.activityType?.name ?? 'activity',
        queue: pending.activityOptions?.taskQueue?.name || undefined,
        state: states[pending.state ?? 0] ?? 'scheduled',
        attempt: pending.attempt ?? 1,
        nextAttemptAt: optionalTsToMs(pending.nextAttemptScheduleTime),
        // Before the first progress there are counts of attempts alone.
        heartbeat: heartbeat?.kind && (heartbeat as HeartbeatDetails),
        lastFailure: reason,
        lastFailureType: type,
      };
    }),
  );

/** Returns the first of the chain of causes whose type the project knows, else the innermost. */
function reasonOf(error: unknown): { reason: string; type?: string } {
  for (let at = error; ;) {
    const type = at instanceof ApplicationFailure ? at.type : undefined;
    if (type && type in failureTypes) return { reason: messageOf(at), type };
    if (!(at instanceof Error && at.cause instanceof Error)) return { reason: messageOf(at) };
    at = at.cause;
  }
}

/** Raised when a snapshot of an earlier program can't be shown any more; a file of another form counts as none. */
const STATUS_FORM = 5;
type StatusFile = { form: number; at: number; snapshot: Snapshot };

/** Completes a snapshot without an answer of a worker by an earlier one of the same run. */
export function withKnown(snapshot: Snapshot, before: Snapshot | undefined): Snapshot {
  const { progress, progressAt, asOf = Date.now(), runId } = before ?? {};
  if (snapshot.progress || !progress || runId !== snapshot.runId) return snapshot;
  return { ...snapshot, progress, progressAt: progressAt ?? asOf };
}

const statusFile = (home: string, name: string): string => join(home, name, 'status.json');

/** Replaces status.json as a whole. A failed write, as on a full disk, costs the file, not the campaign. */
export async function writeStatus({ home, snapshot }: { home: string; snapshot: Snapshot }): Promise<void> {
  const body = JSON.stringify({ form: STATUS_FORM, at: Date.now(), snapshot } satisfies StatusFile);
  const path = statusFile(home, snapshot.name);
  await replaceFile({ path, body, aside: asideIn(home) }).catch(() => undefined);
}

/** Undefined where there is no such file, or a damaged one. */
export function readStatus({ home, name }: { home: string; name: string }): Snapshot | undefined {
  const { form, at, snapshot }: Partial<StatusFile> = readJsonFile(statusFile(home, name)) ?? {};
  return form === STATUS_FORM && snapshot?.name === name ? { ...snapshot, asOf: at } : undefined;
}
