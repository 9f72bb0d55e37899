/**
 * The limits of one endpoint and model, shared by all that asks there in this process. Invariants: no more at once and within a minute than the
 * file allows, and fewer where the endpoint says that it is too much; who waits hears that the wait goes on as it should, and is told when it
 * would be long; what is paid for time after time and brings nothing is given up, and whoever asks after that, or in another way, begins anew.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { orAborted } from '../domain/concurrency';

export interface Pass {
  concurrency: number;
  requestsPerMinute?: number | undefined;
  signal: AbortSignal;
  /** While it waits: others make progress, or a moment that was named comes nearer. And once it need wait no more. */
  onWaiting: () => void;
  /** What to throw where it would have to wait for so long. */
  tooLong: (ms: number) => Error;
}

const MINUTE_MS = 60_000;
/** A longer pause is waited for outside the process. */
const LONGEST_PAUSE_MS = MINUTE_MS;
/** A wait for a named moment is told of so often. */
const TOLD_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;

export class RateLimiter {
  private running = 0;
  /** When the requests of the last minute began. */
  private begun: number[] = [];
  private pausedUntil = 0;
  /** Pauses for want of capacity, one after the other. */
  private refusals = 0;
  /** At once, by what the endpoint took: halved by a refusal, and raised by one with as many replies. */
  private capacity = Infinity;
  private last: Promise<void> = Promise.resolve();
  private readonly waiting = new Set<() => void>();
  private changed = new AbortController();

  /** Waits for its turn, in the order in which they came. The pass is given back by what this returns. */
  async enter(pass: Pass): Promise<() => void> {
    const { onWaiting } = pass;
    const before = this.last;
    let leave = (): void => undefined;
    this.last = new Promise((resolve) => (leave = resolve));
    this.waiting.add(onWaiting);
    try {
      // Who gives up passes the turn on when it comes.
      await orAborted(before, pass.signal);
      for (let ms = this.mustWait(pass); ms > 0; ms = this.mustWait(pass)) {
        await this.change(Math.min(ms, TOLD_MS), pass.signal);
        if (ms !== Infinity) onWaiting();
      }
    } finally {
      this.waiting.delete(onWaiting);
      void before.then(leave);
    }
    this.running += 1;
    this.begun.push(Date.now());
    onWaiting();
    this.progressed();
    return () => {
      this.running -= 1;
      this.wake();
    };
  }

  /** Something has come of a request: those who wait for it hear of it. */
  progressed(): void {
    this.waiting.forEach((hear) => hear());
  }

  replied(): void {
    this.refusals = 0;
    this.capacity += 1 / this.capacity;
    this.wake();
  }

  /** The endpoint refused for want of capacity, and said or did not say for how long: what it says may be too little, time after time. */
  refused(retryAfterMs = 0): void {
    const now = Date.now();
    // What was asked at once is refused at once.
    if (now >= this.pausedUntil) this.refusals += 1;
    const ms = Math.max(retryAfterMs, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.refusals - 1)));
    this.capacity = Math.max(1, Math.floor(Math.min(this.capacity, this.running) / 2));
    this.pausedUntil = Math.max(this.pausedUntil, now + ms);
    this.wake();
  }

  /** Infinity: until something changes. */
  private mustWait({ concurrency, requestsPerMinute = Infinity, tooLong }: Pass): number {
    const now = Date.now();
    const pause = this.pausedUntil - now;
    if (pause > LONGEST_PAUSE_MS) throw tooLong(pause);
    if (pause > 0) return pause;
    if (this.running >= Math.min(concurrency, this.capacity)) return Infinity;
    this.begun = this.begun.filter((at) => at > now - MINUTE_MS);
    const oldest = this.begun.at(-requestsPerMinute);
    return this.begun.length < requestsPerMinute || oldest === undefined ? 0 : oldest + MINUTE_MS - now;
  }

  private async change(ms: number, signal: AbortSignal): Promise<void> {
    const woken = AbortSignal.any([this.changed.signal, signal]);
    await sleep(ms, undefined, { signal: woken }).catch(() => undefined);
    signal.throwIfAborted();
  }

  private wake(): void {
    this.changed.abort();
    this.changed = new AbortController();
  }
}

const limiters = new Map<string, RateLimiter>();

/** The one limiter of a model at an endpoint. */
export function rateLimiterFor({ url, model }: { url: string; model: string }): RateLimiter {
  const name = JSON.stringify([url, model]);
  const limiter = limiters.get(name) ?? new RateLimiter();
  limiters.set(name, limiter);
  return limiter;
}

export const LOST_IN_A_ROW = 5;

/** How a question is asked, as far as the loss may be mended there. */
interface Way {
  /** Of the question. */
  key: string;
  url: string;
  timeoutSeconds: number;
}

const inARow = new Map<string, number>();
const nameOf = ({ key, url, timeoutSeconds }: Way): string => JSON.stringify([key, url, timeoutSeconds]);

/** Counts one more loss: whether it is to be the last. */
export function isLostForGood(way: Way): boolean {
  const name = nameOf(way);
  const losses = (inARow.get(name) ?? 0) + 1;
  if (losses < LOST_IN_A_ROW) inARow.set(name, losses);
  else inARow.delete(name);
  return losses >= LOST_IN_A_ROW;
}

export const forgetLost = (way: Way): void => void inARow.delete(nameOf(way));
