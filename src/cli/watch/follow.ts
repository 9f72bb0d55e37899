/**
 * Follows a campaign until it ends. A server or worker that is away for a while is waited for; workflow code that can't go on, since it was
 * changed or since it throws, is an error.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { workflowIds } from '../../workflows/messages';
import { messageOf, UserError } from '../errors';
import { isServerAway, type Temporal } from '../temporal';
import type { ProgressOutput } from './output';
import { failuresIn, failureText, type LastStatus, type Snapshot, takeSnapshot, withKnown } from './snapshot';

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
  /** Called with every snapshot, and waited for. What it throws is noted once and ends nothing. */
  onSnapshot?: (snapshot: Snapshot) => void | Promise<void>;
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
  const failures = new FailureCount();
  const noted = new Set<string>();
  /** Notes a problem once, until it is over (no text). */
  const note = (problem: string, text: string | false | undefined) => {
    if (!text) return noted.delete(problem);
    if (!noted.has(problem)) output.note('services', text);
    return noted.add(problem);
  };
  let { known } = following;
  let last: Snapshot | undefined;
  let answered = Date.now();
  while (!signal.aborted && !isGone?.()) {
    try {
      const seen = await takeSnapshot(temporal, name);
      note('server', undefined);
      last = withKnown(seen, known);
      if (last.progress) known = { snapshot: last, at: Date.now() };
      if (signal.aborted) break;
      const [failing] = failuresIn(seen);
      note('code', failing && failureText(failing));
      failures.check(seen, maxFailures);
      if (seen.progress) answered = Date.now();
      const isSilent = !failing && seen.status === 'RUNNING' && !seen.progress && Date.now() - answered >= workerMs;
      if (isSilent || seen.progress)
        note(
          'worker',
          isSilent && 'the Temporal server answers, but no worker does: nothing goes on until one is back',
        );
      output.show(last);
      try {
        await onSnapshot?.(last);
      } catch (error) {
        note('hook', `${messageOf(error)}; the campaign goes on`);
      }
      if (last.status !== 'RUNNING') break;
    } catch (error) {
      if (signal.aborted) break;
      if (!isServerAway(error)) throw error;
      answered = Date.now();
      note('server', 'the Temporal server does not answer; waiting for it');
    }
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
  return last;
}
