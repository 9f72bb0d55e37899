/** Turns a task set into task ids. */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { modulesOf } from '../domain/kinds';
import type { Work } from '../domain/work';
import { planSchema } from '../environments/split';
import { mixedTasks, seedsOfEach, seedTasks } from '../sandbox/seeds';
import { readJson } from './context';
import type { EnvironmentPool } from './environments';
import { leftOut } from './left-out';
import type { RollOutInput } from './types';

type Of = Pick<RollOutInput, 'environment' | 'tasks'>;

export async function resolveTasks(
  o: { store: ArtifactStore; environments: EnvironmentPool; progress?: Work['progress'] },
  { environment, tasks: set }: Of,
): Promise<string[]> {
  if (set.kind === 'plan') return (await readJson(o.store, set.plan, planSchema))[set.part];
  const { from, count, unlike } = set;
  const modules = modulesOf(environment);
  const progress = o.progress ?? (() => undefined);
  const without = async (module: ArtifactRef | undefined, needed: number): Promise<number[]> => {
    if (!module || !unlike) return [];
    return (await leftOut({ ...o, progress }, { module, unlike, range: { from, count: needed } })).seeds;
  };
  if (set.kind === 'mixed') {
    const each = seedsOfEach(modules.length, count);
    const of = await Promise.all(modules.map(async (module) => ({ from, without: await without(module, each) })));
    return mixedTasks({ of, count });
  }
  return seedTasks({ from, count, without: await without(modules[0], count) });
}

/** What a batch of rollouts derives from besides its policy: the environment's modules, the plan. */
export function inputsOf({ environment, tasks }: Of): ArtifactRef[] {
  return [...modulesOf(environment), ...(tasks.kind === 'plan' ? [tasks.plan] : [])];
}
