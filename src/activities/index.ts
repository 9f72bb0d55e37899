/** The activities by task queue: every function that one of these files exports. It takes the dependencies of its worker and its input. */
import * as analyse from './analyse';
import type { Dependencies, GpuDependencies, PolicyDependencies } from './context';
import * as decisions from './decisions';
import { createResolver } from '../rollout/resolve';
import { mapped } from './errors';
import * as prepare from './prepare';
import * as report from './report';
import * as rollOut from './roll-out';
import * as router from './router';
import * as searchPrompt from './search-prompt';
import * as synthesis from './synthesis';
import * as train from './train';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- each step has its own dependencies and input
type Step = (deps: any, input: any) => Promise<unknown>;

type Bound<Steps> = {
  [Name in keyof Steps]: Steps[Name] extends (deps: never, input: infer Input) => infer Result
    ? (input: Input) => Result
    : never;
};

const bound = <Deps extends Dependencies, Steps extends Record<string, Step>>(deps: Deps, steps: Steps): Bound<Steps> =>
  mapped(
    Object.fromEntries(Object.entries(steps).map(([name, step]) => [name, (input: unknown) => step(deps, input)])),
    deps,
  ) as Bound<Steps>;

export const createControlActivities = (deps: Dependencies) =>
  bound(deps, { ...prepare, ...analyse, ...synthesis, ...decisions, ...report });

export function createRolloutActivities(deps: PolicyDependencies) {
  const { store, kinds, python, client } = deps;
  const resolve = createResolver({ store, routers: kinds.routers, context: { python, client } });
  return bound({ ...deps, resolve }, { ...rollOut, ...router, ...searchPrompt });
}

export const createGpuActivities = (deps: GpuDependencies) => bound(deps, { ...train });

export type ControlActivities = ReturnType<typeof createControlActivities>;
export type RolloutActivities = ReturnType<typeof createRolloutActivities>;
export type GpuActivities = ReturnType<typeof createGpuActivities>;
export type Activities = ControlActivities & RolloutActivities & GpuActivities;
