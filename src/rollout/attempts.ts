/**
 * Plays what a batch lacks, with fresh attempts after failures that may pass. A rollout that was scored is durable before it counts as done; a broken
 * one has no reward; the batch stops as soon as too many are broken. The environment is called bad only for a rollout that it fails every time, the
 * last times with no other rollout of the batch running: one crash of a process that many episodes share breaks them all.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { forEachBounded } from '../domain/concurrency';
import { type FailureType, isFailure, OutsideFailure, rolloutDelayMs } from '../domain/failures';
import { type BrokenRollout, type Rollout, type ScoredRollout, tooManyBroken, tooManyFailure } from '../domain/rollout';
import { count } from '../metrics';
import type { PolicyClient } from '../policy/client';
import type { RollOutOptions } from './engine';
import type { BatchPlan, PlannedRollout } from './batch';
import type { Chunks } from './chunks';
import { play, type PlayOptions } from './play';

/** More rollouts than this that died in every attempt broke in an outage, and are for the next run. */
const MAX_ALONE = 16;
/** Before a rollout is played alone, and between its attempts: the environment has time to come back. */
const PAUSE_MS = 5_000;

interface MakeMissing {
  options: RollOutOptions;
  plan: BatchPlan;
  chunks: Chunks;
  /** What is scored and durable, by key: what is played is added. */
  held: Map<string, ScoredRollout>;
  /** Told all of them, once all are scored and before the last are durable. */
  onPlayed: (scored: ReadonlyMap<string, ScoredRollout>) => void;
}

/** Returns the rollouts that stayed broken. */
export async function makeMissing({
  options,
  plan,
  chunks,
  held,
  onPlayed,
}: MakeMissing): Promise<Map<string, BrokenRollout>> {
  const { concurrency, onProgress, purpose, title, maxBrokenShare: share = 1, pauseMs = PAUSE_MS } = options;
  const total = plan.rollouts.length;
  const before = held.size;
  const broken = new Map<string, BrokenRollout>();
  const failed: Failed[] = [];
  const appends: Promise<void>[] = [];
  const played = new Map(held);
  const flushing = new AbortController();
  const signal = AbortSignal.any([flushing.signal, ...(options.signal ? [options.signal] : [])]);
  const scored = () => before + appends.length;
  let turns = 0;
  let spent: OutsideFailure | undefined;
  let tooMany: OutsideFailure | undefined;
  const report = () => onProgress?.({ done: held.size + broken.size, total, broken: broken.size, turns });
  const onTurn = () => {
    turns += 1;
    report();
  };
  const batchFailure = () => tooManyFailure([...broken.values()], { what: title, scored: scored(), total, share });

  function keep(rollout: Rollout): void {
    const { key } = rollout;
    const cause = rollout.status === 'broken' ? rollout.error.type : '';
    count('campaign_rollouts', 1, { purpose, outcome: rollout.status, cause });
    if (rollout.status === 'broken') {
      broken.set(key, rollout);
      return report();
    }
    // Not waited for here: the slot goes on while the record is flushed. If it can't be, the rest would be lost as well.
    const done = chunks.append(rollout).then((counting) => {
      broken.delete(key);
      held.set(key, counting);
      report();
    });
    done.catch((error: unknown) => flushing.abort(error));
    appends.push(done);
    played.set(key, rollout);
  }

  /** Those that died in every attempt are played alone before they count, where they are few and others are scored. */
  function isTooMany(): boolean {
    const waiting = failed.filter(died).length;
    const counted = failed.length - (scored() > 0 && waiting <= MAX_ALONE ? waiting : 0);
    return tooManyBroken({ broken: counted, scored: scored(), total, share });
  }

  async function playOne(planned: PlannedRollout, stopped: AbortSignal): Promise<void> {
    if (spent) return;
    let tried: ScoredRollout | Failed;
    try {
      tried = await attempt(planned, { ...options, onTurn, signal: stopped });
    } catch (error) {
      if (!isFailure(error, 'BudgetSpent')) throw error;
      // Those under way are paid for already: they go on to their ends.
      spent = error;
      return;
    }
    if (!('failures' in tried)) return keep(tried);
    keep(tried.rollout);
    failed.push(tried);
    if (isTooMany()) throw (tooMany = batchFailure());
  }

  // Episodes open environments and ask partners, which is paid for, before they ask the policy.
  if (held.size < total && !(await options.client.reachable()))
    throw new OutsideFailure('PolicyServerUnavailable', `the policy server does not answer; ${title} waits for it`);

  const keepAlone = async (tried: Failed): Promise<void> =>
    keep(await playAlone(tried, { ...options, onTurn, signal }, pauseMs));

  if (before > 0) report();
  try {
    const items = plan.rollouts.filter(({ key }) => !held.has(key));
    await forEachBounded({ items, concurrency, signal, work: playOne });
  } catch (error) {
    if (error !== tooMany) throw error;
    // Where it was the environment alone, it is tried once more whether that is its own doing.
    if (failed.every(environmentFailed))
      await keepAlone(failed.at(-1)!).catch((bad: unknown) => {
        if (!isFailure(bad, 'BadEnvironment')) throw bad;
        const [text = '', last = ''] = bad.message.split(LAST);
        const isTold = tooMany!.message.includes(last);
        throw new OutsideFailure(bad.type, `${tooMany!.message}; ${isTold ? text : bad.message}`, bad);
      });
    await Promise.all(appends);
    throw tooMany;
  }
  if (played.size === total) onPlayed(played);
  await Promise.all(appends);
  if (spent) throw spent;
  for (const tried of failed.filter(died).slice(0, MAX_ALONE)) await keepAlone(tried);
  await Promise.all(appends);
  if (tooManyBroken({ broken: broken.size, scored: scored(), total, share })) throw batchFailure();
  return broken;
}

interface AttemptOptions extends PlayOptions {
  maxAttempts: number;
  client: Pick<PolicyClient, 'sample' | 'reachable'>;
}

/** A rollout that every attempt broke. */
interface Failed {
  planned: PlannedRollout;
  rollout: BrokenRollout;
  /** The failure of each attempt. */
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
  'EnvironmentMissing',
  'BudgetSpent',
];

/** Plays one rollout, beginning afresh after failures that may pass. Throws what would break all the rest too. */
async function attempt(
  planned: PlannedRollout,
  options: AttemptOptions,
  delayMs = rolloutDelayMs,
): Promise<ScoredRollout | Failed> {
  const { maxAttempts, client, signal } = options;
  const failures: OutsideFailure[] = [];
  for (;;) {
    try {
      return await play(planned, options);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OutsideFailure) || OF_THE_BATCH.includes(error.type)) throw error;
      failures.push(error);
      // What is gone, or answers nobody, would break all the rest one by one: the batch stops, and whoever asked for it tries again later.
      if (isFailure(error, 'PolicyServerUnavailable', 'PolicyServerError') && !(await client.reachable())) throw error;
      if (!error.retryable || failures.length >= maxAttempts) {
        if (error.type === 'PartnerUnavailable') throw error;
        const { type, message } = error;
        const { key, task, attempt } = planned;
        return { planned, rollout: { status: 'broken', key, task, attempt, error: { type, message } }, failures };
      }
      await sleep(delayMs(failures.length), undefined, { signal });
    }
  }
}

const everyOne = ({ failures }: Failed, ...types: FailureType[]): boolean =>
  failures.every((failure) => isFailure(failure, ...types));

/** The environment's process ended in every attempt. */
const died = (tried: Failed): boolean => everyOne(tried, 'EnvironmentDied');
/** The environment's process ended, or it reported an error of its own, in every attempt. */
const environmentFailed = (tried: Failed): boolean => everyOne(tried, 'EnvironmentDied', 'EnvironmentFailed');

const LAST = '; the last failure: ';

/**
 * Plays a rollout that the environment failed in every attempt once more, as often, while nothing else of its batch runs. Throws BadEnvironment if
 * it fails again every time.
 */
async function playAlone(tried: Failed, options: AttemptOptions, pauseMs: number): Promise<Rollout> {
  await sleep(pauseMs, undefined, { signal: options.signal });
  const again = await attempt(tried.planned, options, () => pauseMs);
  if (!('failures' in again)) return again;
  if (!environmentFailed(again)) return again.rollout;
  const { task, attempt: n } = tried.planned;
  const last = again.failures.at(-1);
  const [times, alone] = [tried.failures.length + again.failures.length, again.failures.length];
  throw new OutsideFailure(
    'BadEnvironment',
    `the environment fails every time at task ${task} (attempt ${n} of the policy at it): in ${times} fresh starts, the last ${alone} of them with ` +
      `no other rollout of the batch beside it; mend the environment, then run the campaign again, which keeps all finished rollouts${LAST}${last?.message}`,
    last,
  );
}
