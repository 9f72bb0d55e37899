/**
 * Plays what a batch lacks. Invariants: a rollout that was scored is durable before it counts as done; a broken one has no reward; as long
 * as nothing is scored, the batch stops at the first few that break, since the rest would break too.
 */
import type { Journal } from '../artifacts/store';
import { OutsideFailure } from '../domain/failures';
import type { BrokenRollout, ScoredRollout } from '../domain/rollout';
import { attempt, died, environmentFailed, playAlone, type Attempted, type AttemptOptions } from './attempts';
import type { RollOutOptions } from './engine';
import type { BatchPlan } from './keys';
import { forEachBounded } from './pool';

/** As long as nothing is scored, this many broken rollouts say that the rest would break too. */
const HOPELESS = 16;
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
  const { concurrency, signal, onProgress, pauseMs = PAUSE_MS } = options;
  const total = plan.rollouts.length;
  const broken = new Map<string, BrokenRollout>();
  const failed: Attempted[] = [];
  const appends: Promise<void>[] = [];
  const flushing = new AbortController();
  const stopping = signal ? AbortSignal.any([signal, flushing.signal]) : flushing.signal;
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

  /** Whether it was the environment alone that broke them all. */
  async function stopHopeless({ last, message }: Hopeless): Promise<never> {
    if (failed.every(environmentFailed)) {
      keep(await playAlone({ tried: last, options: attempts(stopping), pauseMs }));
      await Promise.all(appends);
    }
    throw new OutsideFailure(last.failures.at(-1)!.type, message);
  }

  if (held.size > 0) report();
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
        if (appends.length === 0 && held.size === 0 && failed.length >= Math.min(HOPELESS, total))
          throw new Hopeless(tried, failed.length);
      },
    });
  } catch (error) {
    if (error instanceof Hopeless) await stopHopeless(error);
    throw error;
  }
  await Promise.all(appends);
  const suspects = failed.filter(died).slice(0, MAX_ALONE);
  for (const tried of suspects) keep(await playAlone({ tried, options: attempts(stopping), pauseMs }));
  await Promise.all(appends);
  return broken;
}

class Hopeless extends Error {
  constructor(
    readonly last: Attempted,
    count: number,
  ) {
    super(`none of the first ${count} rollouts was scored: ${last.failures.at(-1)?.message}`);
  }
}
