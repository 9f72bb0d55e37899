/** Follows a campaign until it ends. Invariant: a server or worker that is away for a while is waited for, not an error. */
import { isNoAnswer, type Temporal } from '../temporal';
import type { ProgressOutput } from './progress-output';
import { takeSnapshot, type Snapshot } from './snapshot';

const POLL_MS = 1500;

/** @returns the last snapshot: of the closed campaign, or what was seen when `signal` was raised. */
export async function follow({
  temporal,
  name,
  output,
  signal,
  pollMs = POLL_MS,
}: {
  temporal: Temporal;
  name: string;
  output: ProgressOutput;
  signal: AbortSignal;
  pollMs?: number;
}): Promise<Snapshot | undefined> {
  let last: Snapshot | undefined;
  let away = false;
  while (!signal.aborted) {
    try {
      last = await takeSnapshot(temporal, name);
      away = false;
      if (signal.aborted) break;
      output.show(last);
      if (last.status !== 'RUNNING') break;
    } catch (error) {
      if (signal.aborted) break;
      if (!isNoAnswer(error)) throw error;
      if (!away) output.note('services', 'the Temporal server does not answer; waiting for it');
      away = true;
    }
    await pause(pollMs, signal);
  }
  return last;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
