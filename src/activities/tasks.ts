/** Turns a task set into task ids. */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { moduleOf } from '../domain/environment-spec';
import { planSchema } from '../environments/split';
import { seedTasks } from '../sandbox/seeds';
import { readJson } from './context';
import type { RollOutInput, TaskSet } from './types';

export async function resolveTasks(store: ArtifactStore, set: TaskSet): Promise<string[]> {
  return set.kind === 'seeds' ? seedTasks(set) : (await readJson(store, set.plan, planSchema))[set.part];
}

/** What a batch of rollouts derives from besides its policy: the environment's module, the plan. */
export function inputsOf({ environment, tasks }: Pick<RollOutInput, 'environment' | 'tasks'>): ArtifactRef[] {
  const module = moduleOf(environment);
  return [...(module ? [module] : []), ...(tasks.kind === 'plan' ? [tasks.plan] : [])];
}
