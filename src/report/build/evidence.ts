/** Reads the rollouts behind a report. Invariant: only scored rollouts count; a task that has none is not there. */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { SUCCESS } from '../../domain/rollout';
import { mean } from '../../domain/statistics';
import { outcomes } from '../../rollout/read';

/** Means over the trials, by task. */
export interface TaskMeans {
  success: Map<string, number>;
  reward: Map<string, number>;
  /** Most trials that a task has. */
  trials: number;
  from: ArtifactRef[];
}

/** Task means of one or several batches over disjoint tasks (the routed policy has one batch an option). */
export async function taskMeans(store: ArtifactStore, refs: ArtifactRef[]): Promise<TaskMeans> {
  const means: TaskMeans = { success: new Map(), reward: new Map(), trials: 0, from: refs };
  for (const ref of refs) {
    for (const [task, rewards] of await outcomes({ store, ref })) {
      means.success.set(task, mean(rewards.map((reward) => (reward >= SUCCESS ? 1 : 0))));
      means.reward.set(task, mean(rewards));
      means.trials = Math.max(means.trials, rewards.length);
    }
  }
  return means;
}
