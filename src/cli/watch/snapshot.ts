/**
 * Where a campaign stands, gathered from Temporal: what the server itself knows, the workflows' answers (queries) and the activities' heartbeats;
 * and HOME/<campaign>/status.json, where it stood at the last look, for when no server runs.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
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
import { messageOf, UserError } from '../errors';
import { isNoAnswer, isServerAway, stoppedAfter, type Temporal } from '../temporal';
import { failureTypes } from '../../domain/failures';
import { waitingSchema } from '../../domain/approval';

/** A query waits for a worker; a campaign whose workers are away is shown by what the server knows. */
const QUERY_MS = 4000;

export type Heartbeat = RolloutHeartbeat | TrainHeartbeat | AnalysisHeartbeat;

export interface ActivitySnapshot {
  /** The activity's id within its workflow. */
  id: string;
  workflowId: string;
  /** Name of the activity's type. */
  type: string;
  /** Where a worker takes it from; an old server does not tell. */
  queue?: string;
  /** `scheduled`: no worker has it, because none is free or because `nextAttemptAt` is ahead. */
  state: 'scheduled' | 'started' | 'cancelling';
  /** Identity of the worker that has it, or had it last. */
  worker?: string;
  /** The one that runs; of a scheduled activity the next one. */
  attempt: number;
  /** When the last attempt began; times are ms since the epoch. */
  startedAt?: number;
  /** When the next attempt is due after one that failed. */
  nextAttemptAt?: number;
  heartbeat?: Heartbeat;
  /** When it last reported. */
  heartbeatAt?: number;
  /** Why the attempt before this one failed, in words. */
  lastFailure?: string;
  /** Its type, where the project knows it. */
  lastFailureType?: string;
}

/** What is known of a workflow's code, of the campaign's and of its children's. */
interface CodeState {
  /** How often in a row it failed to go on when a worker took it up; left out for what the loss of a worker can do. */
  failures?: number;
}

export interface ChildSnapshot extends ChildRef, CodeState {
  progress?: ChildProgress;
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
  closedAt?: number;
  /** Why a closed campaign did not complete. */
  failure?: string;
  /** The stage that began last. */
  stage?: Stage;
  /** The one that it was to stop after, if it has completed up to there. */
  stoppedAfter?: Stage;
  /** What needs a person: the type of a failure, or `approval`. */
  attention?: string;
  /** Undefined if no worker answers and nothing is known from before. */
  progress?: CampaignProgress;
  /** When `progress` was so, if no worker answers now. */
  progressAt?: number;
  /** When all this was so, if there is no server to ask. */
  asOf?: number;
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
  const stopped = status.name === 'COMPLETED' ? stoppedAfter(memo) : undefined;
  const knownStage = stages.find((one) => one === stage);
  const attention = typedSearchAttributes.get(attentionAttribute);
  return {
    name,
    runId,
    status: status.name,
    paused: progress?.paused ?? (memo as Memo | undefined)?.paused ?? false,
    startedAt: startTime.getTime(),
    ...(closeTime ? { closedAt: closeTime.getTime() } : {}),
    ...(failure ? { failure } : {}),
    ...(knownStage ? { stage: knownStage } : {}),
    ...(stopped ? { stoppedAfter: stopped } : {}),
    ...(attention ? { attention } : {}),
    ...(progress ? { progress } : {}),
    ...codeStateOf(execution),
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
    return {
      ...child,
      ...(progress ? { progress } : {}),
      ...codeStateOf(execution),
      activities: activitiesOf(execution),
    };
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

function codeStateOf({ raw }: Execution): CodeState {
  const failures = (raw.pendingWorkflowTask?.attempt ?? 1) - 1;
  return failures > LOST_WORKERS ? { failures } : {};
}

const converter = new DefaultFailureConverter();
/** Temporal's PendingActivityState, whose enum is in no package that this one depends on. */
const [STARTED, CANCEL_REQUESTED] = [2, 3];

/** What a workflow waits for. */
export function activitiesOf({ raw, workflowId }: Execution): ActivitySnapshot[] {
  return (raw.pendingActivities ?? []).map((pending) => {
    const { state, attempt, lastWorkerIdentity, lastFailure } = pending;
    const queue = pending.activityOptions?.taskQueue?.name;
    const payload = pending.heartbeatDetails?.payloads?.[0];
    const times = {
      startedAt: optionalTsToMs(pending.lastStartedTime),
      nextAttemptAt: optionalTsToMs(pending.nextAttemptScheduleTime),
      heartbeatAt: optionalTsToMs(pending.lastHeartbeatTime),
    };
    return {
      id: pending.activityId ?? '',
      workflowId,
      type: pending.activityType?.name ?? 'activity',
      ...(queue ? { queue } : {}),
      state: state === STARTED ? 'started' : state === CANCEL_REQUESTED ? 'cancelling' : 'scheduled',
      ...(lastWorkerIdentity ? { worker: lastWorkerIdentity } : {}),
      attempt: attempt ?? 1,
      ...(Object.fromEntries(Object.entries(times).filter(([, at]) => at !== undefined)) as Record<string, number>),
      ...(payload ? { heartbeat: defaultPayloadConverter.fromPayload<Heartbeat>(payload) } : {}),
      ...(lastFailure ? failureIn(converter.failureToError(lastFailure, defaultPayloadConverter)) : {}),
    };
  });
}

function failureIn(error: Error): Pick<ActivitySnapshot, 'lastFailure' | 'lastFailureType'> {
  const type = failureTypeOf(error);
  return { lastFailure: reasonInWords(error), ...(type === undefined ? {} : { lastFailureType: type }) };
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

export interface LastStatus {
  snapshot: Snapshot;
  /** When it was so; ms since the epoch. */
  at: number;
}

const fileOf = (home: string, name: string): string => join(home, name, 'status.json');

/** `home` is the home's folder. What no worker tells any more is kept from before. A full disk costs the file, not the campaign. */
export async function writeStatus({ home, snapshot }: { home: string; snapshot: Snapshot }): Promise<void> {
  const { name } = snapshot;
  const kept = snapshot.progress ? snapshot : withKnown(snapshot, readStatus({ home, name }));
  const file = fileOf(home, name);
  // The home has one supervisor, so the name beside it is nobody else's.
  const aside = `${file}.part`;
  try {
    await mkdir(join(home, name), { recursive: true });
    await writeFile(
      aside,
      JSON.stringify({ at: Date.now(), snapshot: kept } satisfies z.input<typeof lastStatusSchema>),
    );
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

export function readStatus({ home, name }: { home: string; name: string }): LastStatus | undefined {
  try {
    const { at, snapshot } = lastStatusSchema.parse(JSON.parse(readFileSync(fileOf(home, name), 'utf8')));
    return snapshot.name === name ? { at, snapshot: snapshot as Snapshot } : undefined;
  } catch {
    return undefined;
  }
}

const stepStatus = z.enum(['waiting', 'running', 'done', 'failed']);
const childRef = { workflowId: z.string(), kind: z.enum(['capability', 'arm']), name: z.string() };
const ratio = { done: z.number(), total: z.number() };
const heartbeatSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('rollouts'), title: z.string(), ...ratio, broken: z.number() }),
  z.object({
    kind: z.literal('train'),
    step: z.number(),
    steps: z.number().optional(),
    reward: z.number().optional(),
    rollouts: z.object(ratio).optional(),
    waitsFor: z.string().optional(),
  }),
  z.object({ kind: z.literal('analysis'), title: z.string(), ...ratio, characters: z.number().optional() }),
]);
const activitySchema = z.object({
  id: z.string(),
  workflowId: z.string(),
  type: z.string(),
  queue: z.string().optional(),
  state: z.enum(['scheduled', 'started', 'cancelling']),
  worker: z.string().optional(),
  attempt: z.number(),
  startedAt: z.number().optional(),
  nextAttemptAt: z.number().optional(),
  heartbeat: heartbeatSchema.optional(),
  heartbeatAt: z.number().optional(),
  lastFailure: z.string().optional(),
  lastFailureType: z.string().optional(),
});
const troubleSchema = z.object({
  title: z.string(),
  retry: z.enum(['never', 'own', 'outside', 'preempted']),
  type: z.string(),
  reason: z.string(),
  since: z.number(),
  nextAt: z.number(),
  attempt: z.object({ number: z.number(), of: z.number() }).optional(),
  needsPerson: z.boolean().optional(),
});
const childProgressSchema = z.object({
  name: z.string(),
  phase: z.enum(['synthesize', 'self-test', 'calibrate', 'approval', 'train', 'validate', 'done', 'failed']),
  round: z.number(),
  detail: z.string(),
  paused: z.boolean(),
  waiting: waitingSchema.optional(),
  troubles: z.array(troubleSchema).optional(),
});
const progressSchema = z.object({
  campaign: z.string(),
  seed: z.number(),
  paused: z.boolean(),
  stages: z.array(z.object({ name: z.enum(stages), status: stepStatus, detail: z.string() })),
  children: z.array(z.object({ ...childRef, status: stepStatus, detail: z.string() })),
  rollouts: z.object({
    scored: z.number(),
    broken: z.number(),
    causes: z
      .array(z.object({ type: z.string(), message: z.string(), count: z.number(), task: z.string() }))
      .optional(),
  }),
  waiting: waitingSchema.optional(),
  troubles: z.array(troubleSchema).optional(),
  need: z.object({ what: z.string(), since: z.number(), text: z.string() }).optional(),
});
const lastStatusSchema = z.object({
  at: z.number(),
  snapshot: z.object({
    name: z.string(),
    runId: z.string(),
    status: z.string(),
    paused: z.boolean(),
    startedAt: z.number(),
    closedAt: z.number().optional(),
    failure: z.string().optional(),
    failures: z.number().optional(),
    stage: z.enum(stages).optional(),
    stoppedAfter: z.enum(stages).optional(),
    attention: z.string().optional(),
    progress: progressSchema.optional(),
    progressAt: z.number().optional(),
    activities: z.array(activitySchema),
    children: z.array(
      z.object({
        ...childRef,
        failures: z.number().optional(),
        progress: childProgressSchema.optional(),
        activities: z.array(activitySchema),
      }),
    ),
  }),
});
