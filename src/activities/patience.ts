/**
 * Waits for what is away for a while: a policy server that is started again, an environment's process. Invariant: whoever waits hears of
 * every attempt; what stays away for too long fails with its own failure.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isFailure, OutsideFailure, type FailureType } from '../domain/failures';

/** From the first failure on, without any more done. */
const PATIENCE_SECONDS = 300;
const FIRST_WAIT_SECONDS = 1;
const LONGEST_WAIT_SECONDS = 15;

/** Whose failures they are, for people. */
const awaited: [name: string, types: FailureType[]][] = [
  [
    'the policy server',
    ['PolicyServerUnavailable', 'PolicyServerTimeout', 'PolicyServerError', 'PolicyServerBusy', 'PolicyNotLoaded'],
  ],
  ['the environment', ['EnvironmentDied', 'EnvironmentFailed']],
  ['a partner model', ['PartnerUnavailable', 'UserSimulatorFailed', 'JudgeFailed']],
  ['the language model', ['LanguageModelUnavailable', 'LanguageModelFailed']],
  ['room on the disk', ['DiskFull']],
];

interface Patiently<Result> {
  /** One attempt; it tells how much there is by now. */
  work: (progressed: (done: number) => void) => Promise<Result>;
  /** After every attempt that failed: what it waits for. */
  onWait: (what: string) => void;
  signal: AbortSignal;
  patienceSeconds?: number;
}

/** The result of the first attempt that has one. Each attempt goes on from what those before have done. */
export async function patiently<Result>(o: Patiently<Result>): Promise<Result> {
  const { work, onWait, signal, patienceSeconds = PATIENCE_SECONDS } = o;
  let most = 0;
  let since: number | undefined;
  let wait = FIRST_WAIT_SECONDS;
  for (;;) {
    try {
      return await work((done) => {
        if (done <= most) return;
        [most, since, wait] = [done, undefined, FIRST_WAIT_SECONDS];
      });
    } catch (error) {
      signal.throwIfAborted();
      since ??= performance.now();
      const away = (performance.now() - since) / 1000;
      if (!(error instanceof OutsideFailure) || !error.retryable || away + wait > patienceSeconds) throw error;
      // Another worker's server may have it.
      if (error.type === 'WrongBaseModel') throw error;
      const [name] = awaited.find(([, types]) => isFailure(error, ...types)) ?? ['another attempt'];
      onWait(`${name}: ${error.message}`);
      await sleep(wait * 1000, undefined, { signal });
      wait = Math.min(2 * wait, LONGEST_WAIT_SECONDS);
    }
  }
}
