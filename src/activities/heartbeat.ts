/**
 * Heartbeats of an activity. Temporal's attempt number counts outages, lost workers and faults alike, so heartbeat details, which the next
 * attempt gets, also count a step's own faults and its attempts that settled.
 */
import { Context } from '@temporalio/activity';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_FAULTS, OutsideFailure, type Retry } from '../domain/failures';
import { getOrMake } from '../domain/maps';
import type { AttemptCounts, HeartbeatDetails, Work } from '../domain/work';

/** The SDK sends the first of them, and then one at least every 2 s. */
const BEAT_MS = 500;

/** Steps that lost the same worker are retried at the same moment. Each waits for a random part of this, so that one that kills its worker is not always beside them. */
const RESTART_SPREAD_MS = 1_000;

interface Beat {
  details?: HeartbeatDetails;
  counts: AttemptCounts;
  cutOff: AbortController;
  signal: AbortSignal;
}
const beats = new WeakMap<Context, Beat>();

const beatOf = (context: Context): Beat =>
  getOrMake(beats, context, () => {
    const { counts } = (context.info.heartbeatDetails ?? {}) as HeartbeatDetails;
    const cutOff = new AbortController();
    const signal = AbortSignal.any([context.cancellationSignal, cutOff.signal]);
    setMaxListeners(0, signal); // one for each request under way
    return { counts: { faults: 0, settled: 0, ...counts }, cutOff, signal };
  });

function heartbeat(context: Context): void {
  const { details, counts } = beatOf(context);
  const isCounting = counts.settled > 0;
  context.heartbeat((details ?? isCounting) ? { ...details, ...(isCounting && { counts: { ...counts } }) } : undefined);
}

/** Shows how far the activity is, to `campaign status` and on Temporal's page. */
export function progress(details: HeartbeatDetails): void {
  const context = Context.current();
  beatOf(context).details = details;
  heartbeat(context);
}

/** Called when work became durable: earlier faults and losses of the worker no longer count. A long training may have many, far apart. */
export function markProgress(): void {
  const context = Context.current();
  Object.assign(beatOf(context).counts, { faults: 0, settled: context.info.attempt });
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

/** Returns the number of the step's own faults in earlier attempts since its last durable progress. */
export const countFaults = (): number => beatOf(Context.current()).counts.faults;

/** Aborts when the activity is cancelled, when its worker stops, or when Temporal has not answered for the heartbeat timeout. */
export const activitySignal = (): AbortSignal => beatOf(Context.current()).signal;

/** Returns progress and signal of the activity, for a part that may take long. */
export const working = (title: string): Work => ({
  signal: activitySignal(),
  progress: (done, total) => progress({ kind: 'analysis', title, done, total }),
});

/** Time of Temporal's last answer to this worker, by the process's clock; undefined in a process that does not ask. */
let answeredAt: number | undefined;
export const noteAnswer = (): void => void (answeredAt = performance.now());

/** Cuts the activity off once another worker may have the step. The SDK does not cancel activities while Temporal is unreachable. */
function checkAnswers({ info }: Context, cutOff: AbortController): void {
  const { heartbeatTimeoutMs = Infinity } = info;
  if (answeredAt === undefined || performance.now() - answeredAt <= heartbeatTimeoutMs) return;
  const problem = `Temporal has not answered for ${heartbeatTimeoutMs / 1000} s (workers.heartbeatSeconds)`;
  cutOff.abort(new OutsideFailure('Superseded', `${problem}: another worker may have this step`));
}

/** Runs an activity's work with heartbeats. Throws WorkerDied instead of a start after too many that lost their worker. */
export async function withHeartbeats<Result>(work: () => Promise<Result>): Promise<Result> {
  const context = Context.current();
  const { counts, cutOff } = beatOf(context);
  const losses = context.info.attempt - 1 - counts.settled;
  if (losses >= MAX_FAULTS) {
    const problem = `its worker died in ${losses} starts in a row before any work was durable`;
    const fix = 'read the log of the worker that had it, and run the same command';
    throw new OutsideFailure('WorkerDied', `${problem}; ${fix}`);
  }
  const timer = setInterval(() => {
    heartbeat(context);
    checkAnswers(context, cutOff);
  }, BEAT_MS);
  try {
    if (losses > 0) await sleep(Math.random() * RESTART_SPREAD_MS);
    return await work();
  } finally {
    clearInterval(timer);
  }
}
