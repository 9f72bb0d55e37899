/**
 * Where a campaign stands, gathered from Temporal: what the server itself knows, the workflows' answers (queries) and the activities' heartbeats;
 * and HOME/<campaign>/status.json, where it stood at the last look, for when no server runs.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { QueryNotRegisteredError, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import {
  ApplicationFailure,
  DefaultFailureConverter,
  defaultPayloadConverter,
  defineSearchAttributeKey,
  TimeoutFailure,
} from '@temporalio/common';
import { optionalTsToMs } from '@temporalio/common/lib/time';
import type { AnalysisHeartbeat, RolloutHeartbeat, TrainHeartbeat } from '../../domain/work';
import { type Stage, stages } from '../../domain/campaign';
import {
  type CampaignProgress,
  childOf,
  type ChildProgress,
  type ChildRef,
  type Memo,
  queryNames,
  searchAttributeNames,
  workflowIds,
} from '../../workflows/messages';
import { isCode } from '../../artifacts/durable-file';
import { sha256 as sha256Of } from '../../artifacts/hash';
import { messageOf, UserError } from '../errors';
import { isNoAnswer, isServerAway, stoppedAfter, type Temporal } from '../temporal';
import { failureTypes } from '../../domain/failures';

/** A query waits for a worker; a campaign whose workers are away is shown by what the server knows. */
const QUERY_MS = 4000;

export type Heartbeat = RolloutHeartbeat | TrainHeartbeat | AnalysisHeartbeat;

/** An activity that has not ended. Times are ms since the epoch. */
export interface ActivitySnapshot {
  /** The activity's id within its workflow. */
  id: string;
  workflowId: string;
  /** Name of the activity's type. */
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
  heartbeat?: Heartbeat | undefined;
  /** When it last reported. */
  heartbeatAt?: number | undefined;
  /** Why the attempt before this one failed, in words. */
  lastFailure?: string | undefined;
  /** Its type, where the project knows it. */
  lastFailureType?: string | undefined;
}

/** What is known of a workflow's code, of the campaign's and of its children's. */
interface CodeState {
  /** How often in a row it failed to go on when a worker took it up; undefined for what the loss of a worker can do. */
  failures?: number | undefined;
}

interface ChildSnapshot extends ChildRef, CodeState {
  progress?: ChildProgress | undefined;
  activities: ActivitySnapshot[];
}

export interface Snapshot extends CodeState {
  name: string;
  /** Temporal's id of this run of the workflow: a name that is started again has another one. */
  runId: string;
  /** Temporal's status of the workflow: RUNNING, COMPLETED, FAILED, ... */
  status: string;
  paused: boolean;
  startedAt: number;
  closedAt?: number | undefined;
  /** Why a closed campaign did not complete. */
  failure?: string | undefined;
  /** The stage that began last. */
  stage?: Stage | undefined;
  /** The one that it was to stop after, if it has completed up to there. */
  stoppedAfter?: Stage | undefined;
  /** What needs a person: the type of a failure, or `approval`. */
  attention?: string | undefined;
  /** Undefined if no worker answers and nothing is known from before. */
  progress?: CampaignProgress | undefined;
  /** When `progress` was so, if no worker answers now. */
  progressAt?: number | undefined;
  /** When all this was so, if there is no server to ask. */
  asOf?: number | undefined;
  activities: ActivitySnapshot[];
  /** Children that have not ended. */
  children: ChildSnapshot[];
}

/** The server has no campaign of this name. */
export class UnknownCampaign extends UserError {}

type Execution = Awaited<ReturnType<WorkflowHandle['describe']>>;
const stageAttribute = defineSearchAttributeKey(searchAttributeNames.stage, 'KEYWORD');
const attentionAttribute = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');

/** @throws UnknownCampaign if there is none of this name; whatever Temporal's client throws if the server is away. */
export async function takeSnapshot(temporal: Temporal, name: string): Promise<Snapshot> {
  const { workflow } = temporal.client;
  const handle = workflow.getHandle(workflowIds.campaign(name));
  let execution: Execution;
  try {
    execution = await handle.describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      throw new UnknownCampaign(`there is no campaign ${name} here; \`campaign status\` lists those that there are`);
    throw error;
  }
  const { runId, status, startTime, closeTime, memo, typedSearchAttributes } = execution;
  const pending = status.name === 'RUNNING' ? (execution.raw.pendingChildren ?? []) : [];
  const [progress, failure, ...children] = await Promise.all([
    ask<CampaignProgress>(temporal, handle),
    ['RUNNING', 'COMPLETED'].includes(status.name)
      ? undefined
      : failureOf(temporal, workflow.getHandle(handle.workflowId, runId)),
    ...pending.map(({ workflowId }) => childSnapshot(temporal, childOf(workflowId ?? ''))),
  ]);
  const stage = typedSearchAttributes.get(stageAttribute);
  return {
    name,
    runId,
    status: status.name,
    paused: progress?.paused ?? (memo as Memo | undefined)?.paused ?? false,
    startedAt: startTime.getTime(),
    closedAt: closeTime?.getTime(),
    failure,
    stage: stages.find((one) => one === stage),
    stoppedAfter: status.name === 'COMPLETED' ? stoppedAfter(memo) : undefined,
    attention: typedSearchAttributes.get(attentionAttribute),
    progress,
    failures: failuresOf(execution),
    activities: activitiesOf(execution),
    children,
  };
}

/** A snapshot without an answer of a worker, with what an earlier one of the same run knew. */
export function withKnown(snapshot: Snapshot, before: { snapshot: Snapshot; at: number } | undefined): Snapshot {
  const { progress, progressAt } = before?.snapshot ?? {};
  if (snapshot.progress || !before || !progress || before.snapshot.runId !== snapshot.runId) return snapshot;
  return { ...snapshot, progress, progressAt: progressAt ?? before.at };
}

async function childSnapshot(temporal: Temporal, child: ChildRef): Promise<ChildSnapshot> {
  const handle = temporal.client.workflow.getHandle(child.workflowId);
  try {
    const [execution, progress] = await Promise.all([handle.describe(), ask<ChildProgress>(temporal, handle)]);
    return { ...child, progress, failures: failuresOf(execution), activities: activitiesOf(execution) };
  } catch (error) {
    // The parent can know of a child a moment before the server does.
    if (error instanceof WorkflowNotFoundError) return { ...child, activities: [] };
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

async function failureOf({ client }: Temporal, closed: WorkflowHandle): Promise<string | undefined> {
  try {
    await client.withDeadline(Date.now() + QUERY_MS, () => closed.result());
    return undefined;
  } catch (error) {
    return isServerAway(error) ? undefined : reasonInWords(error);
  }
}

/** A worker that is killed while it has the workflow counts once as well. */
const LOST_WORKERS = 1;

function failuresOf({ raw }: Execution): number | undefined {
  const failures = (raw.pendingWorkflowTask?.attempt ?? 1) - 1;
  return failures > LOST_WORKERS ? failures : undefined;
}

const converter = new DefaultFailureConverter();
/** Temporal's PendingActivityState, whose enum is in no package that this one depends on. */
const [STARTED, CANCEL_REQUESTED] = [2, 3];

/** What a workflow waits for. */
export function activitiesOf({ raw, workflowId }: Execution): ActivitySnapshot[] {
  return (raw.pendingActivities ?? []).map((pending) => {
    const { state, attempt, lastWorkerIdentity, lastFailure } = pending;
    const payload = pending.heartbeatDetails?.payloads?.[0];
    const failure = lastFailure ? converter.failureToError(lastFailure, defaultPayloadConverter) : undefined;
    return {
      id: pending.activityId ?? '',
      workflowId,
      type: pending.activityType?.name ?? 'activity',
      queue: pending.activityOptions?.taskQueue?.name || undefined,
      state: state === STARTED ? 'started' : state === CANCEL_REQUESTED ? 'cancelling' : 'scheduled',
      worker: lastWorkerIdentity || undefined,
      attempt: attempt ?? 1,
      startedAt: optionalTsToMs(pending.lastStartedTime),
      nextAttemptAt: optionalTsToMs(pending.nextAttemptScheduleTime),
      heartbeat: payload ? defaultPayloadConverter.fromPayload<Heartbeat>(payload) : undefined,
      heartbeatAt: optionalTsToMs(pending.lastHeartbeatTime),
      lastFailure: failure && reasonInWords(failure),
      lastFailureType: failure && failureTypeOf(failure),
    };
  });
}

const LOST = 'its worker was lost';
const timeouts: Record<string, string> = {
  // A worker that hangs is given up like one that is gone.
  HEARTBEAT: LOST,
  START_TO_CLOSE: 'it took longer than its limit',
};
/** Those whose message says less than these words. */
const types: Record<string, string> = { WorkerDied: LOST, WorkerShutdown: 'its worker was stopped' };

/** Of the chain of causes the first that the project knows by its type, else the innermost. */
function causeOf(error: unknown): unknown {
  let at = error;
  while (!isKnown(at) && at instanceof Error && at.cause instanceof Error) at = at.cause;
  return at;
}

export function reasonInWords(error: unknown): string {
  const at = causeOf(error);
  if (at instanceof TimeoutFailure) return timeouts[at.timeoutType ?? ''] ?? messageOf(at);
  return at instanceof ApplicationFailure ? inWords(at.type ?? '', messageOf(at)) : messageOf(at);
}

export const inWords = (type: string, message: string): string => types[type] ?? message;

/** The type of that cause, where the project knows it. */
export function failureTypeOf(error: unknown): string | undefined {
  const at = causeOf(error);
  return at instanceof ApplicationFailure && isKnown(at) ? (at.type ?? undefined) : undefined;
}

const isKnown = (error: unknown): boolean =>
  error instanceof TimeoutFailure || (error instanceof ApplicationFailure && (error.type ?? '') in failureTypes);

/** Raised when a snapshot of an earlier program can't be shown any more; a file of another form counts as none. */
const STATUS_FORM = 2;

export interface LastStatus {
  snapshot: Snapshot;
  /** When it was so; ms since the epoch. */
  at: number;
}

type StatusRecord = LastStatus & { form: number };

const digestOf = (record: StatusRecord): string => sha256Of(JSON.stringify(record));

const statusFile = (home: string, name: string): string => join(home, name, 'status.json');

/**
 * Replaces the file whole, so that a kill at any moment leaves the one before. `home` is the home's folder. What no worker tells any more is kept
 * from before. A full disk costs the file, not the campaign.
 */
export async function writeStatus({ home, snapshot }: { home: string; snapshot: Snapshot }): Promise<void> {
  const { name } = snapshot;
  const complete = snapshot.progress ? snapshot : withKnown(snapshot, readStatus({ home, name }));
  const file = statusFile(home, name);
  // The home has one supervisor, so the name beside it is nobody else's.
  const temporary = `${file}.part`;
  try {
    await mkdir(join(home, name), { recursive: true });
    const record: StatusRecord = { form: STATUS_FORM, at: Date.now(), snapshot: complete };
    await writeFile(temporary, JSON.stringify({ sha256: digestOf(record), ...record }));
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
  }
}

/** Undefined where there is no such file, or a damaged one. */
export function readStatus({ home, name }: { home: string; name: string }): LastStatus | undefined {
  try {
    const file = JSON.parse(readFileSync(statusFile(home, name), 'utf8')) as StatusRecord & { sha256: string };
    const { sha256, ...record } = file;
    if (sha256 !== digestOf(record) || record.form !== STATUS_FORM || record.snapshot.name !== name) return undefined;
    return { at: record.at, snapshot: record.snapshot };
  } catch {
    return undefined;
  }
}
