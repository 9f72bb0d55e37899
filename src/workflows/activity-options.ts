/** All timeouts, retries and heartbeats of the campaign, each with its reason. One retry policy per call: clients below retry nothing. */
import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow';
import { taskQueues } from './messages';

/** What can't be retried says so itself (domain/failures.ts). Infrastructure comes back: back off to a minute, and give a person about an hour to mend it before the step fails for good. */
const infrastructureRetry = {
  initialInterval: '1s',
  backoffCoefficient: 2,
  maximumInterval: '1 minute',
  maximumAttempts: 60,
} as const;

/** Preparation, selection, self-tests, reports: seconds of work over artifacts. 10 minutes covers a full-size campaign's rollouts. */
export const controlOptions: ActivityOptions = {
  taskQueue: taskQueues.control,
  startToCloseTimeout: '10 minutes',
  retry: { ...infrastructureRetry, maximumAttempts: 5 },
};

/**
 * Discovery, labeling and synthesis may ask a language model about every trajectory: hours at full size, so the limit is only a
 * backstop. They heartbeat what is done.
 */
export const analysisOptions = (heartbeatSeconds: number): ActivityOptions => ({
  taskQueue: taskQueues.control,
  startToCloseTimeout: '24 hours',
  heartbeatTimeout: `${heartbeatSeconds} seconds`,
  retry: infrastructureRetry,
});

/**
 * A batch of rollouts runs for hours at full size and continues from its journal, so the limit is only a backstop. It heartbeats
 * on every finished rollout.
 */
export const rolloutOptions = (heartbeatSeconds: number): ActivityOptions => ({
  taskQueue: taskQueues.rollouts,
  startToCloseTimeout: '24 hours',
  heartbeatTimeout: `${heartbeatSeconds} seconds`,
  retry: infrastructureRetry,
});

/**
 * Training waits in the gpu queue until a slot is free (no schedule-to-start limit). A cancelled trainer saves a checkpoint and hands
 * back, which the workflow waits for: pause frees the GPU without losing a step.
 */
export const trainOptions = (heartbeatSeconds: number): ActivityOptions => ({
  taskQueue: taskQueues.gpu,
  startToCloseTimeout: '72 hours',
  heartbeatTimeout: `${heartbeatSeconds} seconds`,
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: infrastructureRetry,
});
