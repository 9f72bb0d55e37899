/**
 * Steps whose worker was killed are given back to the server, which otherwise waits for their heartbeat timeout. Invariant: only those of
 * processes of this place that are gone, and only the attempt that the dead one had; everything is read from the snapshot and from the
 * server, so that it holds after a crash of this process as well.
 */
import {
  ActivityCompletionError,
  ActivityNotFoundError,
  ServiceError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { pidHere } from '../../artifacts/place';
import type { FailureType } from '../../domain/failures';
import type { Temporal } from '../temporal';
import { activitiesOf, type ActivitySnapshot, type Snapshot } from '../watch/snapshot';
import { lives } from './processes';

const type: FailureType = 'WorkerDied';
const ANSWER_MS = 4000;
const endings = [ActivityNotFoundError, ActivityCompletionError, WorkflowNotFoundError, ServiceError];

/** What is needed to know of a step. */
type Step = Pick<ActivitySnapshot, 'id' | 'workflowId' | 'state' | 'worker' | 'attempt'>;

/** @returns how many steps of killed workers begin again now. */
export async function giveBackLostWork({
  temporal,
  snapshot,
}: {
  temporal: Temporal;
  snapshot: Pick<Snapshot, 'activities' | 'children'>;
}): Promise<number> {
  const steps: Step[] = [snapshot, ...snapshot.children].flatMap(({ activities }) => activities);
  const given = await Promise.all(steps.filter(isLost).map((step) => giveBack(temporal, step)));
  return given.filter(Boolean).length;
}

/** Whether the process that has the step is gone. Of another place's processes nothing is known. */
export function isLost({ state, worker }: Pick<Step, 'state' | 'worker'>): boolean {
  const pid = pidHere(worker ?? '');
  return state !== 'scheduled' && pid !== undefined && !lives(pid);
}

async function giveBack({ client }: Temporal, step: Step): Promise<boolean> {
  const { id, workflowId, worker } = step;
  const at = { workflowId, activityId: id };
  const message = `the worker ${worker} was killed`;
  try {
    return await client.withDeadline(Date.now() + ANSWER_MS, async () => {
      // The snapshot may be old: somebody who lives may have the step by now.
      const now = activitiesOf(await client.workflow.getHandle(workflowId).describe()).find((one) => one.id === id);
      if (now?.worker !== worker || now?.attempt !== step.attempt || !isLost(now)) return false;
      await (now.state === 'cancelling'
        ? // Whoever cancelled it (a pause) waits for its end.
          client.activity.reportCancellation(at)
        : // The workflow begins it again.
          client.activity.fail(at, ApplicationFailure.nonRetryable(message, type)));
      return true;
    });
  } catch (error) {
    // It has ended meanwhile, or the server is away: the next look decides.
    if (endings.some((ending) => error instanceof ending)) return false;
    throw error;
  }
}
