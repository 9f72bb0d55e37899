/** Follows a campaign until it ends. Invariant: a server or worker that is away for a while is waited for, not an error. */
import { messageOf } from '../errors';
import { isServerAway, type Temporal } from '../temporal';
import { FailureCount, failuresIn, failureText } from './failures';
import type { ProgressOutput } from './progress-output';
import { takeSnapshot, withKnown, type Snapshot } from './snapshot';
import type { LastStatus } from './status-file';

const POLL_MS = 1500;
/** Workers answer late while they start, and at the beginning of a workflow. */
const WORKER_MS = 15_000;

interface Following {
  temporal: Temporal;
  name: string;
  output: ProgressOutput;
  signal: AbortSignal;
  /** Told of every snapshot, and waited for. What it throws is noted once and ends nothing. */
  onSnapshot?: ((snapshot: Snapshot) => void | Promise<void>) | undefined;
  /** What is shown of the campaign while no worker answers. */
  known?: LastStatus | undefined;
  /** Asked before every look: whether the server is not this campaign's any more. */
  isGone?: () => boolean;
  /** How often in a row the code of a workflow may fail. */
  maxFailures?: number;
  pollMs?: number;
  workerMs?: number;
}

/**
 * @returns the last snapshot: of the closed campaign, or what was seen when `signal` was raised or the server was gone.
 * @throws UserError if the code of a workflow fails `maxFailures` times in a row.
 */
export async function follow(following: Following): Promise<Snapshot | undefined> {
  const { temporal, name, output, signal, onSnapshot, isGone, maxFailures = Infinity } = following;
  const { pollMs = POLL_MS, workerMs = WORKER_MS } = following;
  const noteOnce = { server: once(output), worker: once(output), code: once(output), hook: once(output) };
  const failures = new FailureCount();
  let { known } = following;
  let last: Snapshot | undefined;
  let answered = Date.now();
  while (!signal.aborted && !isGone?.()) {
    try {
      const seen = await takeSnapshot(temporal, name);
      noteOnce.server.reset();
      last = withKnown(seen, known);
      if (last.progress) known = { snapshot: last, at: Date.now() };
      if (signal.aborted) break;
      const [failing] = failuresIn(seen);
      if (failing) noteOnce.code.note(failureText(failing));
      else noteOnce.code.reset();
      failures.check(seen, maxFailures);
      if (seen.progress) {
        answered = Date.now();
        noteOnce.worker.reset();
      } else if (!failing && seen.status === 'RUNNING' && Date.now() - answered >= workerMs)
        noteOnce.worker.note('the Temporal server answers, but no worker does: nothing goes on until one is back');
      output.show(last);
      try {
        await onSnapshot?.(last);
      } catch (error) {
        noteOnce.hook.note(`${messageOf(error)}; the campaign goes on`);
      }
      if (last.status !== 'RUNNING') break;
    } catch (error) {
      if (signal.aborted) break;
      if (!isServerAway(error)) throw error;
      answered = Date.now();
      noteOnce.server.note('the Temporal server does not answer; waiting for it');
    }
    await pause(pollMs, signal);
  }
  return last;
}

/** A note that is not given again until it is reset. */
function once(output: ProgressOutput): { note(text: string): void; reset(): void } {
  let given = false;
  return {
    note: (text) => {
      if (!given) output.note('services', text);
      given = true;
    },
    reset: () => (given = false),
  };
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
