/** The activities by task queue, with their dependencies passed in. */
import { createAnalysis } from './analyse';
import { mapped, type Dependencies, type GpuDependencies, type PolicyDependencies } from './context';
import { createPrepare } from './prepare';
import { createWriteReport } from './report';
import { createRollOut } from './roll-out';
import { createRoute } from './route';
import { createSynthesis } from './synthesise';
import { createTrain } from './train';
import type { ControlActivities, GpuActivities, RolloutActivities } from './types';

export const createControlActivities = (deps: Dependencies): ControlActivities =>
  mapped({
    ...createPrepare(deps),
    ...createAnalysis(deps),
    ...createSynthesis(deps),
    ...createRoute(deps),
    ...createWriteReport(deps),
  });

export const createRolloutActivities = (deps: PolicyDependencies): RolloutActivities => mapped(createRollOut(deps));

export const createGpuActivities = (deps: GpuDependencies): GpuActivities => mapped(createTrain(deps));
