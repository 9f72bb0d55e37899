/**
 * Follows a campaign until it ends. A server or worker that is away for a while is waited for; workflow code that can't go on, since it was
 * changed or since it throws, is an error.
 */
import { messageOf, UserError } from '../errors';
import { workflowIds } from '../../workflows/messages';
import { type LastStatus, type Snapshot, takeSnapshot, withKnown } from './snapshot';
import { isServerAway, type Temporal } from '../temporal';
import type { ProgressOutput } from './output';

interface Failing {
  workflowId: string;
  failures: number;
}

/** The workflows of a running campaign whose code fails; its own first. */
export function failuresIn({ name, status, failures, children }: Snapshot): Failing[] {
  if (status !== 'RUNNING') return [];
  return [{ workflowId: workflowIds.campaign(name), failures }, ...children].flatMap((one) =>
    one.failures === undefined ? [] : [{ workflowId: one.workflowId, failures: one.failures }],
  );
}

export const failureText = ({ workflowId, failures }: Failing): string =>
  `the code of workflow ${workflowId} failed ${failures} times in a row: logs/control-worker.log says why`;

/** Counts the failures that happen while somebody looks: those from before may have been mended. */
export class FailureCount {
  private readonly before = new Map<string, number>();

  /** @throws UserError if the code of a workflow has failed at least `limit` times in a row since the first look. */
  check(snapshot: Snapshot, limit: number): void {
    const failing = failuresIn(snapshot);
    for (const { workflowId } of [{ workflowId: workflowIds.campaign(snapshot.name) }, ...snapshot.children]) {
      const one = failing.find((other) => other.workflowId === workflowId);
      const now = one?.failures ?? 0;
      const before = Math.min(this.before.get(workflowId) ?? now, now);
      this.before.set(workflowId, before);
      if (one && now - before >= limit)
        throw new UserError(
          `${failureText(one)}; mend it, or go back to the code that the campaign began with, and give the same command again; or terminate ${snapshot.name} in Temporal's UI (\`campaign serve\`): then the same command starts it anew from what is done`,
        );
    }
  }
}

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
