/**
 * The cap on a learner's rollouts. Invariant: what was permitted in any attempt, by (task, attempt, policy), is at most the limit; what was
 * permitted once is permitted again. A permission is durable before it is given.
 */
import { digest } from '../artifacts/hash';
import type { Journal } from '../artifacts/store';
import type { RolloutsRequest } from './learner-messages';

export class RolloutCap {
  /** Of this attempt, after each step. */
  private readonly spent = new Map<number, number>();
  private readonly asked = new Set<string>();

  constructor(
    private readonly journal: Journal,
    private readonly limit: number,
  ) {}

  /** Whether these rollouts may be made: all of them or none. */
  async permit({ step, tasks, group_size: groupSize, policy }: RolloutsRequest): Promise<boolean> {
    const rollouts = tasks.flatMap((task) =>
      Array.from({ length: groupSize }, (_, attempt) => digest([task, attempt, policy])),
    );
    const known = this.journal.records();
    const fresh = rollouts.filter((rollout) => !known.has(rollout));
    if (known.size + fresh.length > this.limit) return false;
    await Promise.all(fresh.map((rollout) => this.journal.append(rollout, { step })));
    for (const rollout of rollouts) this.asked.add(rollout);
    this.spent.set(step + 1, this.asked.size);
    return true;
  }

  /** Rollouts that this attempt had asked for when the step was finished; those that were found again are counted too. */
  spentAt(step: number): number {
    return this.spent.get(step) ?? 0;
  }
}
