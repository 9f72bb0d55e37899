/**
 * Who tries what again, and when: the one table. A request to a server or a model is sent once. What fails is tried again by the smallest of these
 * that its failure's type (domain/failures.ts) lets: a rollout in its batch, a batch in its step, a learner's wait for what is away, and the step
 * itself by Temporal and its workflow, which is without end for what is outside.
 */

/** Of a step. */
export const BACKOFF = { firstMs: 1_000, factor: 2, longestMs: 300_000 } as const;

/** After the attempt of this number, the first of which is 1. */
export const backoffMs = (attempt: number): number =>
  Math.min(BACKOFF.longestMs, BACKOFF.firstMs * BACKOFF.factor ** (attempt - 1));

/** Attempts with half an hour of waiting between the first and the last: who has failed so often is not helped by one more. */
export const ROUND = 14;
export const ROUND_MS = Array.from({ length: ROUND - 1 }, (_, n) => backoffMs(n + 1)).reduce((sum, ms) => sum + ms, 0);

/** A rollout is begun afresh `rollouts.maxAttempts` times, as episodes that fail are mostly well the next time. */
export const rolloutDelayMs = (attempt: number): number => 250 * attempt;

/**
 * A batch whose rollouts broke is made again so many times, a quarter of a minute in all: a short outage (a server that is too busy for a few
 * seconds) breaks rollouts whose absence would choose a checkpoint or shrink the test set.
 */
export const BATCH_ATTEMPTS = 5;

/**
 * A learner keeps its place while something is away, from the first failure on without any more done: started anew it would load its model again
 * for every hiccup of the policy server.
 */
export const LEARNER = { patienceMs: 300_000, delayMs: (attempt: number) => Math.min(15_000, backoffMs(attempt)) };
