/** Turns a task set into task ids. */
import type { ArtifactStore } from '../artifacts/store';
import { seedTasks } from '../synthesis/seeds';
import { readJson } from './context';
import type { Plan } from './prepare';
import type { TaskSet } from './types';

/** Which option the router chose for each task. */
export type Assignment = { task: string; option: string; probabilities: Record<string, number> }[];

export async function resolveTasks(store: ArtifactStore, set: TaskSet): Promise<string[]> {
  switch (set.kind) {
    case 'plan':
      return (await readJson<Plan>(store, set.plan))[set.part];
    case 'seeds':
      return seedTasks(set);
    case 'assignment':
      return (await readJson<Assignment>(store, set.assignment))
        .filter((a) => a.option === set.option)
        .map((a) => a.task);
  }
}
