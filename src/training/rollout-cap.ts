/**
 * The cap on a learner's rollouts. Invariant: what was permitted in any attempt, by (task, attempt, policy), is at most the limit; what was
 * permitted once is permitted again. A permission is durable before it is given.
 */
import { digest } from '../artifacts/hash';
import type { Journal } from '../artifacts/store';
import type { RolloutsRequest } from './learner-process';

/** Of a permission, in the journal that the run's records stand in too. */
const PREFIX = 'permitted/';

export class RolloutCap {
  /** Of this attempt, after each step. */
  private readonly spent = new Map<number, number>();
  private readonly requested = new Set<string>();

  constructor(
    private readonly journal: Journal,
    private readonly limit: number,
  ) {}

  /** Whether these rollouts may be made: all of them or none. */
  async permit({ step, tasks, group_size: groupSize, policy }: RolloutsRequest): Promise<boolean> {
    const keys = tasks.flatMap((task) =>
      Array.from({ length: groupSize }, (_, attempt) => PREFIX + digest([task, attempt, policy])),
    );
    const permitted = new Set([...this.journal.records().keys()].filter((key) => key.startsWith(PREFIX)));
    const fresh = keys.filter((key) => !permitted.has(key));
    if (permitted.size + fresh.length > this.limit) return false;
    await Promise.all(fresh.map((key) => this.journal.append(key, { step })));
    for (const key of keys) this.requested.add(key);
    this.spent.set(step + 1, this.requested.size);
    return true;
  }

  /** Rollouts that this attempt had asked for when the step was finished; those that were found again are counted too. */
  spentAt(step: number): number {
    return this.spent.get(step) ?? 0;
  }
}
