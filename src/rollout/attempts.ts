/**
 * Plays what a batch lacks, with fresh attempts after failures that may pass. Invariants: a rollout that was scored is durable before it counts as
 * done; a broken one has no reward; the batch stops as soon as too many are broken; the environment is called bad only for a rollout that it fails
 * every time, the last times with no other rollout of the batch running: one crash of a process that many episodes share breaks them all.
 */
import type { Journal } from '../artifacts/store';
import { type BrokenRollout, type ScoredRollout, tooManyBroken, tooManyFailure } from '../domain/rollout';
import { type FailureType, isFailure, OutsideFailure } from '../domain/failures';
import type { RollOutOptions } from './engine';
import type { BatchPlan, PlannedRollout } from './keys';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PolicyClient } from '../policy/client';
import { play, type PlayOptions } from './play';
import { setMaxListeners } from 'node:events';

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
  let spent: OutsideFailure | undefined;
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
        if (spent) return;
        const tried = await attempt(planned, attempts(stopped)).catch((error: unknown) => {
          if (!isFailure(error, 'BudgetSpent')) throw error;
          // Those under way are paid for already: they go on to their ends.
          spent = error;
        });
        if (!tried) return;
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
  if (spent) throw spent;
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

const RETRY_DELAY_MS = 250;

interface AttemptOptions extends PlayOptions {
  maxAttempts: number;
  client: Pick<PolicyClient, 'sample' | 'reachable'>;
  /** After every attempt that failed and is not the last. */
  onRetry: () => void;
}

interface Attempted {
  planned: PlannedRollout;
  rollout: ScoredRollout | BrokenRollout;
  /** What each attempt that failed ended in. */
  failures: OutsideFailure[];
}

/** What is wrong with what all rollouts of the batch need (its adapters and their merge, who serves them, the disk, its settings, money), and with none of its own. */
const OF_THE_BATCH: readonly FailureType[] = [
  'ArtifactDamaged',
  'DiskFull',
  'PythonFailed',
  'BadInput',
  'AdapterRefused',
  'PolicyServerWrong',
  'WrongBaseModel',
  'BudgetSpent',
];

/** Plays one rollout, beginning afresh after failures that may pass. Throws what would break all the rest too. */
export async function attempt(
  planned: PlannedRollout,
  options: AttemptOptions,
  delayMs = (failed: number) => RETRY_DELAY_MS * failed,
): Promise<Attempted> {
  const { maxAttempts, client, signal, onRetry } = options;
  const failures: OutsideFailure[] = [];
  for (;;) {
    try {
      return { planned, rollout: await play(planned, options), failures };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OutsideFailure)) throw error;
      if (OF_THE_BATCH.includes(error.type)) throw error;
      failures.push(error);
      // What is gone, or answers nobody, would break all the rest one by one: the batch stops, and whoever asked for it tries again later.
      if (isFailure(error, 'PolicyServerUnavailable', 'PolicyServerError') && !(await client.reachable())) throw error;
      const last = !error.retryable || failures.length >= maxAttempts;
      if (last && isFailure(error, 'PartnerUnavailable')) throw error;
      if (last) return { planned, rollout: brokenRollout(planned, error), failures };
      onRetry();
      await sleep(delayMs(failures.length), undefined, { signal });
    }
  }
}

const brokenRollout = ({ key, task, attempt: n }: PlannedRollout, { type, message }: OutsideFailure): BrokenRollout => {
  return { status: 'broken', key, task, attempt: n, error: { type, message } };
};

const everyOne = ({ rollout, failures }: Attempted, ...types: FailureType[]): boolean =>
  rollout.status === 'broken' && failures.every((failure) => isFailure(failure, ...types));

/** The environment's process ended in every attempt. */
export const died = (tried: Attempted): boolean => everyOne(tried, 'EnvironmentDied');
/** The environment's process ended, or it reported an error of its own, in every attempt. */
const environmentFailed = (tried: Attempted): boolean => everyOne(tried, 'EnvironmentDied', 'EnvironmentFailed');

/**
 * Plays a rollout that the environment failed in every attempt once more, as often, while nothing else of its batch runs; `pauseMs` before each
 * attempt gives the environment time to come back. Throws BadEnvironment if it fails again every time.
 */
async function playAlone({
  tried,
  options,
  pauseMs,
}: {
  tried: Attempted;
  options: AttemptOptions;
  pauseMs: number;
}): Promise<Attempted> {
  await sleep(pauseMs, undefined, { signal: options.signal });
  const again = await attempt(tried.planned, options, () => pauseMs);
  if (!environmentFailed(again)) return again;
  const { task, attempt: n } = tried.planned;
  const times = tried.failures.length + again.failures.length;
  throw new OutsideFailure(
    'BadEnvironment',
    `the environment fails every time at task ${task} (attempt ${n} of the policy at it): in ${times} fresh starts, the last ` +
      `${again.failures.length} of them with no other rollout of the batch beside it; mend the environment, then run the campaign again, ` +
      `which keeps all finished rollouts; the last failure: ${again.failures.at(-1)?.message}`,
    again.failures.at(-1),
  );
}

export async function forEachBounded<Item>({ items, concurrency, signal, work }: ForEachBounded<Item>): Promise<void> {
  const stop = new AbortController();
  const stopped = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  setMaxListeners(0, stopped); // as many as there is work at once, each taken off when its work is done
  let next = 0;

  async function slot(): Promise<void> {
    while (next < items.length) {
      stopped.throwIfAborted();
      try {
        await work(items[next++]!, stopped);
      } catch (error) {
        stop.abort(error);
        throw stopped.reason;
      }
    }
  }

  const slots = Array.from({ length: Math.min(concurrency, items.length) }, slot);
  for (const result of await Promise.allSettled(slots)) {
    if (result.status === 'rejected') throw stopped.reason;
  }
}

interface ForEachBounded<Item> {
  items: Item[];
  concurrency: number;
  signal?: AbortSignal | undefined;
  /** The signal aborts when other work has failed or the caller's signal has aborted. */
  work: (item: Item, signal: AbortSignal) => Promise<void>;
}
