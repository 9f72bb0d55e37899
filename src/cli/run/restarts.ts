/**
 * How the deaths of a service are judged. Invariant: what comes from outside (somebody kills it, the disk is full) is counted apart from
 * what it does itself (a crash), so that the first never looks like the second.
 */
export interface RestartPolicy {
  /** Ending sooner than this after it was ready is one more in a row. */
  minUptimeSeconds: number;
  /** So many crashes in a row, and the service has failed. */
  maxCrashes: number;
  /** So many kills in a row: something ends it on purpose, or there is no memory for it. */
  maxKills: number;
  initialDelayMs: number;
  maxDelayMs: number;
  /** A kill says nothing about the next start: its delay does not grow. */
  killDelayMs: number;
}
export const restartPolicy: RestartPolicy = {
  minUptimeSeconds: 20,
  maxCrashes: 5,
  maxKills: 40,
  initialDelayMs: 500,
  maxDelayMs: 8000,
  killDelayMs: 1000,
};

export interface Ending {
  /** In words. */
  cause: string;
  /** Somebody outside ended it. */
  killed: boolean;
  /** A worker ended itself, since it failed all that it took: what is wrong with its machine lasts. */
  faulty?: boolean;
}

/** Exit code of such a worker; of any other program it is a crash like others. */
const FAULTY = 3;
/** It is tried again, but not so often that it fails what waits for it. */
const FAULTY_DELAY_MS = 60_000;
const FAULTY_LONGEST_MS = 1_800_000;

/** Signals that a process brings upon itself. */
const crashSignals: NodeJS.Signals[] = ['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGSYS'];
/** In order, or as a shell says HUP, INT, KILL and TERM: a service ends so only when it is asked to. */
const killCodes = [0, 129, 130, 137, 143];

export const endingOf = (code: number | null, signal: NodeJS.Signals | null, stopsWhenFaulty = false): Ending =>
  signal
    ? { cause: `ended by ${signal}`, killed: !crashSignals.includes(signal) }
    : code === FAULTY && stopsWhenFaulty
      ? { cause: `exit code ${FAULTY}: it failed all that it took, as its log says`, killed: false, faulty: true }
      : { cause: `exit code ${code}`, killed: killCodes.includes(code ?? -1) };

/** Deaths in a row of one service. */
export class Deaths {
  private crashes = 0;
  private kills = 0;
  private faults = 0;
  constructor(private readonly policy: RestartPolicy) {}

  /**
   * Counts one more.
   * @returns when to start it again, or that it died too often to.
   */
  next({
    killed,
    uptimeMs,
    diskIsFull,
    faulty = false,
  }: {
    faulty?: boolean | undefined;
    killed: boolean;
    uptimeMs: number;
    diskIsFull: boolean;
  }): { delayMs: number } | { times: number } {
    const { minUptimeSeconds, maxCrashes, maxKills, initialDelayMs, maxDelayMs, killDelayMs } = this.policy;
    if (uptimeMs >= minUptimeSeconds * 1000) this.crashes = this.kills = 0;
    if (uptimeMs >= FAULTY_LONGEST_MS) this.faults = 0;
    if (faulty) return { delayMs: Math.min(FAULTY_LONGEST_MS, FAULTY_DELAY_MS * 2 ** this.faults++) };
    if (killed) return ++this.kills < maxKills ? { delayMs: killDelayMs } : { times: this.kills };
    // It comes up when there is room again, however long that takes.
    if (diskIsFull) return { delayMs: maxDelayMs };
    if (++this.crashes >= maxCrashes) return { times: this.crashes };
    return { delayMs: Math.min(maxDelayMs, initialDelayMs * 2 ** (this.crashes - 1)) };
  }
}
