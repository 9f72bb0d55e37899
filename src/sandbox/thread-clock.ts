/**
 * What both sides of a sandbox's thread share: its progress and its CPU time, for which the wall clock stands in where
 * the kernel tells none.
 */
import { openSync, readFileSync, readlinkSync, readSync } from 'node:fs';

/** Nanoseconds on a CPU are the first of its numbers. */
const msOf = (schedstat: string): number => parseInt(schedstat, 10) / 1e6;

/** Of this thread; the wall clock's where the kernel does not tell. */
const ownCpuMs = ((): (() => number) => {
  const bytes = Buffer.alloc(64);
  try {
    const file = openSync('/proc/thread-self/schedstat', 'r');
    const read = (): number => msOf(bytes.toString('latin1', 0, readSync(file, bytes, 0, bytes.length, 0)));
    if (read() > 0) return read;
  } catch {
    // Another system.
  }
  return () => performance.now();
})();

/** What other threads know this one by: a folder of the kernel's, if it is one that tells CPU times. */
export function ownThread(): string | undefined {
  try {
    const thread = `/proc/${readlinkSync('/proc/thread-self')}`;
    return cpuMsOf(thread) > 0 ? thread : undefined;
  } catch {
    return undefined;
  }
}

/** Of another thread of this process: the wall clock's where the kernel does not tell, NaN once the thread has ended. */
export function cpuMsOf(thread: string | undefined): number {
  if (thread === undefined) return performance.now();
  try {
    return msOf(readFileSync(`${thread}/schedstat`, 'latin1'));
  } catch {
    return NaN;
  }
}

/**
 * Interrupts a call that has used its CPU time. The clock is asked at the interpreter's first look (some 10,000 operations into a call)
 * and then only when, at the earliest, the time can be over.
 */
export class CallTimer {
  interrupted = false;
  private first: number | undefined;
  private next = 0;

  constructor(private readonly limit: number) {}

  start(): void {
    this.interrupted = false;
    this.first = undefined;
    this.next = 0;
  }

  over(): boolean {
    const now = performance.now();
    if (now < this.next) return false;
    const used = ownCpuMs();
    const left = this.limit - (used - (this.first ??= used));
    this.next = now + Math.max(left, 1);
    return (this.interrupted = left <= 0);
  }
}

/** The id of the call that began last. */
export const RUNNING = 0;
/** How many calls are done; loading is one. */
export const DONE = 1;
