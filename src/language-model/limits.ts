/**
 * The limits of one endpoint and model, shared by all that asks there in this process: no more at once and within a minute than the file allows, and
 * fewer where the endpoint says that it is too much. A question whose replies are lost time after time, each of them paid for, is given up.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createTurns, limited } from '../domain/concurrency';

interface Pass {
  concurrency: number;
  requestsPerMinute?: number | undefined;
  signal: AbortSignal;
  /** What to throw where it would have to wait for so long. */
  tooLong: (ms: number) => Error;
}

const MINUTE_MS = 60_000;
/** A longer pause is waited for outside the process. */
const LONGEST_PAUSE_MS = MINUTE_MS;
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
  private changed = new AbortController();
  private readonly inTurn = createTurns();

  /** Waits for its turn, in the order in which they came. The pass is given back by what this returns. */
  async enter(pass: Pass): Promise<() => void> {
    const { signal } = pass;
    await this.inTurn(
      '',
      async () => {
        for (let ms = this.mustWait(pass); ms > 0; ms = this.mustWait(pass)) {
          const woken = AbortSignal.any([this.changed.signal, signal]);
          await limited(sleep(Math.min(ms, MINUTE_MS), undefined, { signal: woken }).catch(() => undefined));
          signal.throwIfAborted();
        }
        this.running += 1;
        this.begun.push(Date.now());
      },
      signal,
    );
    return () => {
      this.running -= 1;
      this.wake();
    };
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
const lost = new Map<string, number>();

/** Counts one more lost reply to a question that is asked in this way: whether it is to be the last. */
export function isLostForGood(way: string): boolean {
  const losses = (lost.get(way) ?? 0) + 1;
  if (losses < LOST_IN_A_ROW) lost.set(way, losses);
  else lost.delete(way);
  return losses >= LOST_IN_A_ROW;
}

export const forgetLost = (way: string): void => void lost.delete(way);
