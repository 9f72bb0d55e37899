/** All timeouts, retries and heartbeats of the campaign, each with its reason. One retry policy per call: clients below retry nothing. */
import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow';
import { BACKOFF, ROUND } from '../domain/work';

/**
 * What Temporal tries again by itself is what is outside (domain/failures.ts: activities say so of every failure): it comes back, and with back-off
 * the attempts take half an hour and no history. All that is left after them, and every other failure at once, is for the workflow (trying.ts),
 * which tells them apart: Temporal counts all attempts alike.
 */
const retry = {
  initialInterval: BACKOFF.firstMs,
  backoffCoefficient: BACKOFF.factor,
  maximumInterval: BACKOFF.longestMs,
  maximumAttempts: ROUND,
  nonRetryableErrorTypes: ['TemporalTimeout:Heartbeat', 'TemporalTimeout:StartToClose'],
};

/** Every step tells of its progress: what is silent for so long was lost with its worker, and begins again on another. */
const heartbeat = (heartbeatSeconds: number) => ({ heartbeatTimeout: `${heartbeatSeconds} seconds`, retry }) as const;

/**
 * Preparation, discovery, labels, selection, synthesis, self-tests, reports: seconds over a small campaign's artifacts, hours where a
 * language model is asked about every trajectory or the base model is large, so the limit is only a backstop.
 */
export const controlOptions = (heartbeatSeconds: number): ActivityOptions => ({
  startToCloseTimeout: '24 hours',
  ...heartbeat(heartbeatSeconds),
});

/** A batch of rollouts runs for hours at full size and continues from its journal, so the limit is only a backstop. */
export const rolloutOptions = (heartbeatSeconds: number): ActivityOptions => ({
  startToCloseTimeout: '24 hours',
  ...heartbeat(heartbeatSeconds),
});

/**
 * Training waits in the gpu queue until a slot is free (no schedule-to-start limit). A cancelled trainer saves a checkpoint and hands
 * back, which the workflow waits for: pause frees the GPU without losing a step.
 */
export const trainOptions = (heartbeatSeconds: number): ActivityOptions => ({
  startToCloseTimeout: '72 hours',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  ...heartbeat(heartbeatSeconds),
});
