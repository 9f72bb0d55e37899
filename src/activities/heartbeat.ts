/**
 * Heartbeats of an activity. Temporal's attempt number counts outages, lost workers and faults alike, so the heartbeat details, which Temporal hands to
 * the next attempt, also carry the two counts that end a step: its own faults, and its attempts that settled.
 */
import { Context } from '@temporalio/activity';
import { whileAlive, showLife } from '../domain/concurrency';
import { MAX_FAULTS, OutsideFailure, type Retry } from '../domain/failures';
import type { AttemptCounts, HeartbeatDetails } from '../domain/work';

const BEAT_MS = 1_000;

interface Beat {
  details?: HeartbeatDetails;
  counts: AttemptCounts;
}
const beats = new WeakMap<Context, Beat>();

function beatOf(context: Context): Beat {
  const { counts } = (context.info.heartbeatDetails ?? {}) as HeartbeatDetails;
  const beat = beats.get(context) ?? { counts: { faults: 0, settled: 0, ...counts } };
  beats.set(context, beat);
  return beat;
}

function heartbeat(context: Context): void {
  const { details, counts } = beatOf(context);
  const isCounting = counts.settled > 0;
  context.heartbeat((details ?? isCounting) ? { ...details, ...(isCounting && { counts: { ...counts } }) } : undefined);
}

/** Shows how far the activity is, to `campaign status` and on Temporal's page. */
export function progress(details: HeartbeatDetails): void {
  const context = Context.current();
  beatOf(context).details = details;
  showLife();
  heartbeat(context);
}

/** Called when work became durable: earlier losses of the worker count no more. */
export function markProgress(): void {
  const context = Context.current();
  beatOf(context).counts.settled = context.info.attempt;
  heartbeat(context);
}

/** Counts an attempt that fails in order. Returns whether its step has had all the faults of its own that it may have. */
export function settleAttempt(retry: Retry): boolean {
  const context = Context.current();
  const { counts } = beatOf(context);
  counts.settled = Math.min(context.info.attempt, counts.settled + 1);
  if (retry === 'own') counts.faults += 1;
  heartbeat(context);
  return counts.faults >= MAX_FAULTS;
}

/** Runs an activity's work with heartbeats. Throws WorkerDied instead of a start after too many that lost their worker. */
export async function withHeartbeats<Result>(work: () => Promise<Result>): Promise<Result> {
  const context = Context.current();
  const losses = context.info.attempt - 1 - beatOf(context).counts.settled;
  if (losses >= MAX_FAULTS) {
    const problem = `its worker died in ${losses} starts in a row before any work was durable`;
    throw new OutsideFailure(
      'WorkerDied',
      `${problem}; read the log of the worker that had it, and run the same command`,
    );
  }
  return whileAlive(work, { everyMs: BEAT_MS, onLife: () => heartbeat(context) });
}
