/** The activities by task queue, with their dependencies passed in. */
import { createAnalysis } from './analyse';
import { createApproval, createKeep } from './results';
import { createCheckBase } from './check-base';
import type { Dependencies, GpuDependencies, PolicyDependencies } from './context';
import { mapped } from './failures';
import { createFindGains } from './find-gains';
import { createFineTune, createTrain } from './train';
import { createFitRouter, createWeighAdapters } from './router';
import { createPrepare } from './prepare';
import { createWriteReport } from './report';
import { createRollOut } from './roll-out';
import { createSearchPrompt } from './search-prompt';
import { createSynthesis } from './synthesis';
import { createTakeConversations, createTakeModules } from './arm-inputs';
import type { AnalysisActivities, ControlActivities, GpuActivities, RolloutActivities } from './types';

export const createControlActivities = (deps: Dependencies): ControlActivities & AnalysisActivities =>
  mapped(
    {
      ...createPrepare(deps),
      ...createAnalysis(deps),
      ...createSynthesis(deps),
      ...createTakeModules(deps),
      ...createTakeConversations(deps),
      ...createApproval(deps),
      ...createFindGains(deps),
      ...createKeep(deps),
      ...createWriteReport(deps),
    },
    deps,
  );

export const createRolloutActivities = (deps: PolicyDependencies): RolloutActivities =>
  mapped(
    {
      ...createRollOut(deps),
      ...createSearchPrompt(deps),
      ...createFitRouter(deps),
      ...createCheckBase(deps),
    },
    deps,
  );

export const createGpuActivities = (deps: GpuDependencies): GpuActivities =>
  mapped({ ...createTrain(deps), ...createFineTune(deps), ...createWeighAdapters(deps) }, deps);
