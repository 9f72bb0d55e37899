/**
 * Plays what a batch lacks. Invariants: a rollout that was scored is durable before it counts as done; a broken one has no reward; the batch
 * stops as soon as too many are broken.
 */
import type { Journal } from '../artifacts/store';
import { type BrokenRollout, type ScoredRollout, tooManyBroken, tooManyFailure } from '../domain/rollout';
import { isFailure, OutsideFailure } from '../domain/failures';
import { attempt, died, environmentFailed, playAlone, type Attempted, type AttemptOptions } from './attempts';
import type { RollOutOptions } from './engine';
import type { BatchPlan } from './keys';
import { forEachBounded } from './pool';

/** More rollouts than this that died in every attempt broke in an outage, and are for the next run. */
const MAX_ALONE = 16;
/** Short of the silence after which a step is given to another worker. */
const PAUSE_MS = 5_000;

interface MakeMissing {
  options: RollOutOptions;
  plan: BatchPlan;
  journal: Journal;
  /** What is scored and durable, by key: what is played is added. */
  held: Map<string, ScoredRollout>;
}

/** Returns the rollouts that stayed broken. */
export async function makeMissing({ options, plan, journal, held }: MakeMissing): Promise<Map<string, BrokenRollout>> {
  const { concurrency, signal, onProgress, title, maxBrokenShare: share = 1, pauseMs = PAUSE_MS } = options;
  const total = plan.rollouts.length;
  const before = held.size;
  const broken = new Map<string, BrokenRollout>();
  const failed: Attempted[] = [];
  const appends: Promise<void>[] = [];
  const flushing = new AbortController();
  const stopping = signal ? AbortSignal.any([signal, flushing.signal]) : flushing.signal;
  const scored = () => before + appends.length;
  let turns = 0;
  const report = () => onProgress?.({ done: held.size + broken.size, total, broken: broken.size, turns });
  const attempts = (stopped: AbortSignal): AttemptOptions => ({
    ...options,
    signal: stopped,
    onRetry: report,
    onTurn: () => {
      turns += 1;
      report();
    },
  });

  function keep({ planned: { key }, rollout }: Attempted): void {
    if (rollout.status === 'broken') {
      broken.set(key, rollout);
      return report();
    }
    // Not waited for here: the slot goes on while the record is flushed. If it can't be, the rest would be lost as well.
    const done = journal.append(key, rollout).then(() => {
      broken.delete(key);
      held.set(key, rollout);
      report();
    });
    done.catch((error: unknown) => flushing.abort(error));
    appends.push(done);
  }

  /** Those that died in every attempt are played alone before they count, where they are few and others are scored. */
  function isTooMany(): boolean {
    const waiting = failed.filter(died).length;
    const counted = failed.length - (scored() > 0 && waiting <= MAX_ALONE ? waiting : 0);
    return tooManyBroken({ broken: counted, scored: scored(), total, share });
  }

  /** Throws how many broke of what. Where it was the environment alone, it is tried once more whether that is its own doing. */
  async function stop(last: Attempted): Promise<never> {
    const failure = tooManyFailure([...broken.values()], { what: title, scored: scored(), total, share });
    if (failed.every(environmentFailed)) {
      const alone = playAlone({ tried: last, options: attempts(stopping), pauseMs });
      keep(
        await alone.catch((error: unknown) => {
          if (!isFailure(error, 'BadEnvironment')) throw error;
          throw new OutsideFailure(error.type, `${failure.message}; ${error.message}`, error);
        }),
      );
    }
    await Promise.all(appends);
    throw failure;
  }

  if (before > 0) report();
  try {
    await forEachBounded({
      items: plan.rollouts.filter(({ key }) => !held.has(key)),
      concurrency,
      signal: stopping,
      work: async (planned, stopped) => {
        const tried = await attempt(planned, attempts(stopped));
        keep(tried);
        if (tried.rollout.status === 'scored') return;
        failed.push(tried);
        if (isTooMany()) throw new TooMany(tried);
      },
    });
  } catch (error) {
    if (error instanceof TooMany) await stop(error.last);
    throw error;
  }
  await Promise.all(appends);
  const suspects = failed.filter(died).slice(0, MAX_ALONE);
  for (const tried of suspects) keep(await playAlone({ tried, options: attempts(stopping), pauseMs }));
  await Promise.all(appends);
  if (tooManyBroken({ broken: broken.size, scored: scored(), total, share }))
    throw tooManyFailure([...broken.values()], { what: title, scored: scored(), total, share });
  return broken;
}

/** Ends the others. */
class TooMany extends Error {
  constructor(readonly last: Attempted) {
    super('too many rollouts broke');
  }
}
