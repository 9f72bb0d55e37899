/** Turns a task set into task ids. */
import type { ArtifactStore } from '../artifacts/store';
import { seedTasks } from '../synthesis/seeds';
import type { ArtifactRef } from '../domain/artifacts';
import { readJson } from './context';
import type { Plan } from './prepare';
import type { RollOutInput, TaskSet } from './types';

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

/** What a batch of rollouts derives from besides its policy: the environment's module, the plan or the router's assignment. */
export function inputsOf({ environment, tasks }: Pick<RollOutInput, 'environment' | 'tasks'>): ArtifactRef[] {
  return [
    ...(environment.kind === 'sandbox' ? [environment.module] : []),
    ...(tasks.kind === 'plan' ? [tasks.plan] : []),
    ...(tasks.kind === 'assignment' ? [tasks.assignment] : []),
  ];
}
