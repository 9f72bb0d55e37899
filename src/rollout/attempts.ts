/**
 * The attempts at one planned rollout. Invariants: a failure that may pass is tried again, from a fresh start; the environment is called
 * bad only for a rollout that it fails every time, the last times with no other rollout of the batch running: one crash of a process that many
 * episodes share breaks them all, and is nobody's fault among them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isFailure, OutsideFailure, type FailureType } from '../domain/failures';
import type { BrokenRollout, ScoredRollout } from '../domain/rollout';
import type { PolicyClient } from '../policy/client';
import type { PlannedRollout } from './keys';
import { play, type PlayOptions } from './play';

const RETRY_DELAY_MS = 250;

export interface AttemptOptions extends PlayOptions {
  maxAttempts: number;
  client: Pick<PolicyClient, 'sample' | 'reachable'>;
  /** After every attempt that failed and is not the last. */
  onRetry: () => void;
}

export interface Attempted {
  planned: PlannedRollout;
  rollout: ScoredRollout | BrokenRollout;
  /** What each attempt that failed ended in. */
  failures: OutsideFailure[];
}

/** What is wrong with what all rollouts of the batch need (its adapters and their merge, who serves them, the disk, its settings), and with none of its own. */
const OF_THE_BATCH: readonly FailureType[] = [
  'ArtifactDamaged',
  'DiskFull',
  'PythonFailed',
  'BadInput',
  'AdapterRefused',
  'PolicyServerWrong',
  'WrongBaseModel',
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
export const environmentFailed = (tried: Attempted): boolean => everyOne(tried, 'EnvironmentDied', 'EnvironmentFailed');

/**
 * Plays a rollout that the environment failed in every attempt once more, as often, while nothing else of its batch runs; `pauseMs` before each
 * attempt gives the environment time to come back. Throws BadEnvironment if it fails again every time.
 */
export async function playAlone({
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
