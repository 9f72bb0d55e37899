/**
 * Follows a campaign until it ends. A server or worker that is away for a while is waited for; workflow code that can't go on, since it was
 * changed or since it throws, is an error.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, UserError } from '../errors';
import { isServerAway, type Temporal } from '../temporal';
import type { ProgressOutput } from './output';
import { failureText, type LastStatus, type Snapshot, takeSnapshot, withKnown } from './snapshot';

/**
 * Counts failures of workflow code that happen while somebody looks: those from before the first look may have been mended. What it returns is
 * called with every snapshot, and throws a UserError once the code of a workflow has failed `limit` times in a row.
 */
export function failureLimit(limit: number): (snapshot: Pick<Snapshot, 'name' | 'failing'>) => void {
  let before: Map<string, number> | undefined;
  return ({ name, failing = [] }) => {
    const uncounted = new Map<string, number>();
    for (const one of failing) {
      const { workflowId, failures } = one;
      const least = Math.min(before ? (before.get(workflowId) ?? 0) : failures, failures);
      uncounted.set(workflowId, least);
      if (failures - least >= limit)
        throw new UserError(
          `${failureText(one)}; mend it, or go back to the code that the campaign began with, and give the same command again; or with --restart (on a cluster \`campaign restart ${name}\`) it starts anew under this code, from what is done`,
        );
    }
    before = uncounted;
  };
}

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
  /** Workers answer late while they start, and at the beginning of a workflow. */
  workerMs?: number;
}

/**
 * @returns the last snapshot: of the closed campaign, or what was seen when `signal` was raised or the server was gone.
 * @throws UserError if the code of a workflow fails `maxFailures` times in a row.
 */
export async function follow(following: Following): Promise<Snapshot | undefined> {
  const { temporal, name, output, signal, onSnapshot, isGone, maxFailures = Infinity } = following;
  const { pollMs = 1500, workerMs = 15_000 } = following;
  const checkFailures = failureLimit(maxFailures);
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
      const [failing] = seen.failing ?? [];
      note('code', failing && failureText(failing));
      checkFailures(seen);
      if (seen.progress) answered = Date.now();
      const isSilent = !failing && seen.status === 'RUNNING' && !seen.progress && Date.now() - answered >= workerMs;
      if (isSilent)
        note('worker', 'the Temporal server answers, but no worker does: nothing goes on until one is back');
      else if (seen.progress) note('worker', undefined);
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
