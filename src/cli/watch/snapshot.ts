/** Where a campaign stands, gathered from Temporal: its own answers (queries) and what its activities last reported (heartbeats). */
import { QueryNotRegisteredError, WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { AnalysisHeartbeat, RolloutHeartbeat, TrainHeartbeat } from '../../domain/progress';
import { queryNames, workflowIds, type CampaignProgress, type ChildProgress } from '../../workflows/messages';
import { UserError } from '../errors';
import { isNoAnswer, type Temporal } from '../temporal';

/** A query waits for a worker; a campaign whose workers are away is shown by its status alone. */
const QUERY_MS = 4000;

type Heartbeat = RolloutHeartbeat | TrainHeartbeat | AnalysisHeartbeat;

export interface ActivitySnapshot {
  /** Name of the activity's type. */
  type: string;
  attempt: number;
  heartbeat?: Heartbeat;
  /** When it last reported; ms since the epoch. */
  heartbeatAt?: number;
  /** Why the attempt before this one failed. */
  lastFailure?: string;
}

export interface ChildSnapshot {
  workflowId: string;
  progress?: ChildProgress;
  activities: ActivitySnapshot[];
}

export interface Snapshot {
  name: string;
  /** Temporal's status of the workflow: RUNNING, COMPLETED, FAILED, ... */
  status: string;
  startedAt: number;
  closedAt?: number;
  /** Undefined if no worker answers. */
  progress?: CampaignProgress;
  activities: ActivitySnapshot[];
  children: ChildSnapshot[];
}

/** @throws UserError if there is no campaign of this name; whatever Temporal's client throws if the server is away. */
export async function takeSnapshot(temporal: Temporal, name: string): Promise<Snapshot> {
  const handle = temporal.client.workflow.getHandle(workflowIds.campaign(name));
  let execution: Awaited<ReturnType<WorkflowHandle['describe']>>;
  try {
    execution = await handle.describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      throw new UserError(`there is no campaign ${name} here; \`campaign status\` lists those that there are`);
    throw error;
  }
  const progress = await ask<CampaignProgress>(temporal, handle);
  const running = (progress?.children ?? []).filter(({ status }) => status === 'running');
  const children = await Promise.all(running.map(({ workflowId }) => childSnapshot(temporal, workflowId)));
  return {
    name,
    status: execution.status.name,
    startedAt: execution.startTime.getTime(),
    ...(execution.closeTime ? { closedAt: execution.closeTime.getTime() } : {}),
    ...(progress ? { progress } : {}),
    activities: activitiesOf(execution),
    children,
  };
}

async function childSnapshot(temporal: Temporal, workflowId: string): Promise<ChildSnapshot> {
  const handle = temporal.client.workflow.getHandle(workflowId);
  try {
    const [execution, progress] = await Promise.all([handle.describe(), ask<ChildProgress>(temporal, handle)]);
    return { workflowId, ...(progress ? { progress } : {}), activities: activitiesOf(execution) };
  } catch (error) {
    // The parent can know of a child a moment before the server does.
    if (error instanceof WorkflowNotFoundError) return { workflowId, activities: [] };
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

function activitiesOf({ raw }: Awaited<ReturnType<WorkflowHandle['describe']>>): ActivitySnapshot[] {
  return (raw.pendingActivities ?? []).map((pending) => {
    const payload = pending.heartbeatDetails?.payloads?.[0];
    const reported = pending.lastHeartbeatTime;
    const failure = pending.lastFailure?.message;
    return {
      type: pending.activityType?.name ?? 'activity',
      attempt: pending.attempt ?? 1,
      ...(payload ? { heartbeat: defaultPayloadConverter.fromPayload<Heartbeat>(payload) } : {}),
      ...(reported ? { heartbeatAt: Number(reported.seconds) * 1000 + (reported.nanos ?? 0) / 1e6 } : {}),
      ...(failure ? { lastFailure: failure } : {}),
    };
  });
}
