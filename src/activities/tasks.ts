/** Turns a task set into task ids. */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { modulesOf } from '../domain/environment-spec';
import { planSchema } from '../environments/split';
import { mixedTasks, seedTasks } from '../sandbox/seeds';
import { readJson } from './context';
import type { RollOutInput, TaskSet } from './types';

export async function resolveTasks(store: ArtifactStore, set: TaskSet): Promise<string[]> {
  switch (set.kind) {
    case 'plan':
      return (await readJson(store, set.plan, planSchema))[set.part];
    case 'seeds':
      return seedTasks(set);
    case 'mixed':
      return mixedTasks(set);
  }
}

/** What a batch of rollouts derives from besides its policy: the environment's modules, the plan. */
export function inputsOf({ environment, tasks }: Pick<RollOutInput, 'environment' | 'tasks'>): ArtifactRef[] {
  return [...modulesOf(environment), ...(tasks.kind === 'plan' ? [tasks.plan] : [])];
}
