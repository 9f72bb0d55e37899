/**
 * Workflow code that can't go on: it was changed while a campaign runs, or it throws. Invariant: told from workers that are away, which no
 * change of the code brings back.
 */
import { UserError } from '../errors';
import { workflowIds } from '../../workflows/messages';
import type { Snapshot } from './snapshot';

export interface Failing {
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
