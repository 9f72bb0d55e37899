/**
 * Where a campaign stands, gathered from Temporal: what the server itself knows, the workflows' answers (queries) and the activities' heartbeats;
 * and HOME/<campaign>/status.json, where it stood at the last look, for when no server runs.
 */
import { readFileSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { QueryNotRegisteredError, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure, defineSearchAttributeKey, TimeoutFailure } from '@temporalio/common';
import { decodeOptionalFailureToOptionalError } from '@temporalio/common/lib/internal-non-workflow';
import { optionalTsToMs } from '@temporalio/common/lib/time';
import { isCode } from '../../store/durable-file';
import { sha256 as sha256Of } from '../../store/hash';
import { type Stage, stages } from '../../domain/campaign';
import { type FailureType, failureTypes } from '../../domain/failures';
import type { CampaignChild } from '../../domain/results';
import type { HeartbeatDetails } from '../../domain/work';
import {
  type CampaignProgress,
  childOf,
  type ChildProgress,
  queryNames,
  searchAttributeNames,
  workflowIds,
} from '../../workflows/messages';
import { messageOf } from '../errors';
import { isNoAnswer, isServerAway, stoppedAfter, type Temporal, UnknownCampaign, valueOf } from '../temporal';

/** A query waits for a worker; a campaign whose workers are away is shown by what the server knows. */
const QUERY_MS = 4000;

/** An activity that has not ended. Times are ms since the epoch. */
export interface ActivitySnapshot {
  /** Within its workflow. */
  id: string;
  workflowId: string;
  type: string;
  /** Where a worker takes it from; an old server does not tell. */
  queue?: string | undefined;
  /** `scheduled`: no worker has it, because none is free or because `nextAttemptAt` is ahead. */
  state: 'scheduled' | 'started' | 'cancelling';
  /** Identity of the worker that has it, or had it last. */
  worker?: string | undefined;
  /** The one that runs; of a scheduled activity the next one. */
  attempt: number;
  /** When the last attempt began. */
  startedAt?: number | undefined;
  /** When the next attempt is due after one that failed. */
  nextAttemptAt?: number | undefined;
  heartbeat?: HeartbeatDetails | undefined;
  heartbeatAt?: number | undefined;
  /** Why the attempt before this one failed, in words; and the type, where the project knows it. */
  lastFailure?: string | undefined;
  lastFailureType?: string | undefined;
}

/** A workflow whose code fails: how often in a row it did when a worker took it up. */
interface Failing {
  workflowId: string;
  failures: number;
}

export interface EarlierRun {
  /** Temporal's status. */
  status: string;
  startedAt: number;
  closedAt: number;
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
  /** Runs of this name before this one, oldest first: each command after a cancellation or a failure starts another. */
  earlier?: EarlierRun[];
  /** Why a closed campaign did not complete. */
  failure?: string | undefined;
  /** What is said of an artifact that was found damaged: started again, the campaign makes it anew. */
  damaged?: string | undefined;
  /** The stage that began last. */
  stage?: Stage | undefined;
  /** The one that it was to stop after, if it has completed up to there. */
  stoppedAfter?: Stage | undefined;
  /** `approval` while the campaign or one of its children waits for one. */
  attention?: string | undefined;
  /** Undefined if no worker answers and nothing is known from before. */
  progress?: CampaignProgress | undefined;
  /** When `progress` was so, if no worker answers now. */
  progressAt?: number | undefined;
  /** When all this was so, if there is no server to ask. */
  asOf?: number | undefined;
  /** Of a campaign that runs and its children, the campaign first. */
  failing?: Failing[] | undefined;
  activities: ActivitySnapshot[];
  /** Children that have not ended. */
  children: (CampaignChild & { progress?: ChildProgress | undefined; activities: ActivitySnapshot[] })[];
}

type Execution = Awaited<ReturnType<WorkflowHandle['describe']>>;
const stageAttribute = defineSearchAttributeKey(searchAttributeNames.stage, 'KEYWORD');
const attentionAttribute = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');

/** @throws UnknownCampaign if there is none of this name; whatever Temporal's client throws if the server is away. */
export async function takeSnapshot(temporal: Temporal, name: string): Promise<Snapshot> {
  const { workflow } = temporal.client;
  const handle = workflow.getHandle(workflowIds.campaign(name));
  const execution = await handle.describe().catch((error: unknown) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw new UnknownCampaign(name);
  });
  const { runId, status, startTime, closeTime, memo, typedSearchAttributes } = execution;
  const isRunning = status.name === 'RUNNING';
  const pending = isRunning ? (execution.raw.pendingChildren ?? []) : [];
  const hasFailed = !['RUNNING', 'COMPLETED', 'CANCELLED'].includes(status.name);
  const [progress, failure, ...looks] = await Promise.all([
    ask<CampaignProgress>(temporal, handle),
    hasFailed ? failureOf(temporal, workflow.getHandle(handle.workflowId, runId)) : {},
    ...pending.map(({ workflowId }) => lookAtChild(temporal, childOf(workflowId ?? ''))),
  ]);
  const stage = typedSearchAttributes.get(stageAttribute);
  return {
    name,
    runId,
    status: status.name,
    isCancelling: isRunning && execution.raw.workflowExtendedInfo?.cancelRequested === true,
    startedAt: startTime.getTime(),
    closedAt: closeTime?.getTime(),
    ...failure,
    stage: stages.find((one) => one === stage),
    stoppedAfter: status.name === 'COMPLETED' ? stoppedAfter(memo) : undefined,
    attention: typedSearchAttributes.get(attentionAttribute) ?? looks.find((look) => look.attention)?.attention,
    progress,
    failing: isRunning ? [...failingOf(execution), ...looks.flatMap(({ failing }) => failing)] : [],
    activities: await activitiesOf(temporal, execution),
    children: looks.map(({ child }) => child),
  };
}

/** The runs of a campaign that ended before the one that the snapshot is of. */
export async function earlierRuns({ client }: Temporal, { name, runId }: Snapshot): Promise<EarlierRun[]> {
  const runs: EarlierRun[] = [];
  const query = `WorkflowId = ${JSON.stringify(workflowIds.campaign(name))}`;
  for await (const run of client.workflow.list({ query }))
    if (run.runId !== runId && run.closeTime)
      runs.push({ status: run.status.name, startedAt: run.startTime.getTime(), closedAt: run.closeTime.getTime() });
  return runs.sort((a, b) => a.startedAt - b.startedAt);
}

async function lookAtChild(
  temporal: Temporal,
  child: CampaignChild,
): Promise<{ child: Snapshot['children'][number]; failing: Failing[]; attention?: string | undefined }> {
  const handle = temporal.client.workflow.getHandle(child.workflowId);
  try {
    const [execution, progress] = await Promise.all([handle.describe(), ask<ChildProgress>(temporal, handle)]);
    const activities = await activitiesOf(temporal, execution);
    const attention = execution.typedSearchAttributes.get(attentionAttribute);
    return { child: { ...child, progress, activities }, failing: failingOf(execution), attention };
  } catch (error) {
    // The parent can know of a child a moment before the server does.
    if (error instanceof WorkflowNotFoundError) return { child: { ...child, activities: [] }, failing: [] };
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

const DAMAGED: FailureType = 'ArtifactDamaged';

async function failureOf({ client }: Temporal, closed: WorkflowHandle): Promise<Pick<Snapshot, 'failure' | 'damaged'>> {
  try {
    await client.withDeadline(Date.now() + QUERY_MS, () => closed.result());
    return {};
  } catch (error) {
    if (isServerAway(error)) return {};
    const { reason, type } = reasonOf(error);
    return { failure: reason, ...(type === DAMAGED && { damaged: reason }) };
  }
}

/** A worker that is killed while it has the workflow counts once as well. */
const LOST_WORKERS = 1;

function failingOf({ raw, workflowId }: Execution): Failing[] {
  const failures = (raw.pendingWorkflowTask?.attempt ?? 1) - 1;
  return failures > LOST_WORKERS ? [{ workflowId, failures }] : [];
}

export const failureText = ({ workflowId, failures }: Failing): string =>
  `the code of workflow ${workflowId} failed ${failures} times in a row: logs/control-worker.log says why; after the fix \`campaign run FILE --restart\``;

/** Temporal's PendingActivityState, whose enum is in no package that this one depends on. */
const states: Record<number, ActivitySnapshot['state']> = { 2: 'started', 3: 'cancelling' };

/** What a workflow waits for. */
export const activitiesOf = ({ client }: Temporal, { raw, workflowId }: Execution): Promise<ActivitySnapshot[]> =>
  Promise.all(
    (raw.pendingActivities ?? []).map(async (pending) => {
      const payloads = pending.heartbeatDetails?.payloads;
      const { loadedDataConverter } = client.options;
      const failure = await decodeOptionalFailureToOptionalError(loadedDataConverter, pending.lastFailure);
      const { reason, type } = failure ? reasonOf(failure) : {};
      const heartbeat = payloads?.[0] && (await valueOf<Partial<HeartbeatDetails>>(client, payloads));
      return {
        id: pending.activityId ?? '',
        workflowId,
        type: pending.activityType?.name ?? 'activity',
        queue: pending.activityOptions?.taskQueue?.name || undefined,
        state: states[pending.state ?? 0] ?? 'scheduled',
        worker: pending.lastWorkerIdentity || undefined,
        attempt: pending.attempt ?? 1,
        startedAt: optionalTsToMs(pending.lastStartedTime),
        nextAttemptAt: optionalTsToMs(pending.nextAttemptScheduleTime),
        // Before the first progress there are counts of attempts alone.
        heartbeat: heartbeat?.kind && (heartbeat as HeartbeatDetails),
        heartbeatAt: optionalTsToMs(pending.lastHeartbeatTime),
        lastFailure: reason,
        lastFailureType: type,
      };
    }),
  );

/** Failures and timeouts whose message says less than these words. A worker that hangs is given up like one that is gone. */
const words: Record<string, string> = {
  WorkerShutdown: 'its worker was stopped',
  HEARTBEAT: 'its worker was lost',
};
const inWords = (type: string, message: string): string => words[type] ?? message;

/** Of the chain of causes the first that the project knows by its type, else the innermost; in words, with that type. */
export function reasonOf(error: unknown): { reason: string; type?: string } {
  for (let at = error; ;) {
    if (at instanceof TimeoutFailure) return { reason: inWords(at.timeoutType ?? '', messageOf(at)) };
    const type = (at instanceof ApplicationFailure && at.type) || '';
    if (type in failureTypes) return { reason: inWords(type, messageOf(at)), type };
    if (!(at instanceof Error && at.cause instanceof Error)) return { reason: inWords(type, messageOf(at)) };
    at = at.cause;
  }
}

/** Raised when a snapshot of an earlier program can't be shown any more; a file of another form counts as none. */
const STATUS_FORM = 3;

export interface LastStatus {
  snapshot: Snapshot;
  /** When it was so; ms since the epoch. */
  at: number;
}

/** A snapshot without an answer of a worker, with what an earlier one of the same run knew. */
export function withKnown(snapshot: Snapshot, before: LastStatus | undefined): Snapshot {
  const { progress, progressAt, runId } = before?.snapshot ?? {};
  if (snapshot.progress || !before || !progress || runId !== snapshot.runId) return snapshot;
  return { ...snapshot, progress, progressAt: progressAt ?? before.at };
}

const statusFile = (home: string, name: string): string => join(home, name, 'status.json');
const digestOf = (record: object): string => sha256Of(JSON.stringify(record));

/** Replaces status.json as a whole, so that a kill at any moment leaves the one before; a full disk costs the file, not the campaign. */
export async function writeStatus({ home, snapshot }: { home: string; snapshot: Snapshot }): Promise<void> {
  const { name } = snapshot;
  const file = statusFile(home, name);
  // The home has one supervisor, so this name is nobody else's.
  const part = `${file}.part`;
  const record = { form: STATUS_FORM, at: Date.now(), snapshot };
  try {
    await mkdir(join(home, name), { recursive: true });
    await writeFile(part, JSON.stringify({ sha256: digestOf(record), ...record }));
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
  }
}

/** Undefined where there is no such file, or a damaged one. */
export function readStatus({ home, name }: { home: string; name: string }): LastStatus | undefined {
  try {
    const { sha256, ...record } = JSON.parse(readFileSync(statusFile(home, name), 'utf8'));
    const { form, at, snapshot } = record;
    return sha256 === digestOf(record) && form === STATUS_FORM && snapshot.name === name ? { at, snapshot } : undefined;
  } catch {
    return undefined;
  }
}
