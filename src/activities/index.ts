/** The activities by task queue, each a function of the worker's dependencies and its input. */
import type { ActivityOn } from '../domain/work';
import { discover, label, select } from './analyse';
import { takeModules, train } from './train';
import { checkAdapters, checkBase, rollOut } from './roll-out';
import type { Dependencies, GpuDependencies, PolicyDependencies } from './context';
import { mapped } from './failures';
import { findGains, fitRouter } from './router';
import { prepare } from './prepare';
import { writeReport } from './report';
import { keepDecision, recallDecision } from './decisions';
import { searchPrompt } from './search-prompt';
import { calibrate, selfTest, synthesize } from './synthesis';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- each step has its own dependencies and input
type Step = (deps: any, input: any) => Promise<unknown>;

/** The steps as Temporal calls them: with their input. */
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
  bound(deps, {
    prepare,
    discover,
    label,
    select,
    synthesize,
    selfTest,
    calibrate,
    takeModules,
    recallDecision,
    keepDecision,
    findGains,
    writeReport,
  } satisfies Record<ActivityOn<'control'>, Step>);

export const createRolloutActivities = (deps: PolicyDependencies) =>
  bound(deps, { rollOut, searchPrompt, checkBase, checkAdapters, fitRouter } satisfies Record<
    ActivityOn<'rollouts'>,
    Step
  >);

export const createGpuActivities = (deps: GpuDependencies) =>
  bound(deps, { train } satisfies Record<ActivityOn<'gpu'>, Step>);

export type ControlActivities = ReturnType<typeof createControlActivities>;
export type RolloutActivities = ReturnType<typeof createRolloutActivities>;
export type GpuActivities = ReturnType<typeof createGpuActivities>;
/** The activities of all queues. */
export type Activities = ControlActivities & RolloutActivities & GpuActivities;
