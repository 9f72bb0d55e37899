/** The activities by task queue, with their dependencies passed in. */
import { createAnalysis } from './analyse';
import { createApproval } from './approval';
import { createCheckBase } from './check-base';
import { mapped, type Dependencies, type GpuDependencies, type PolicyDependencies } from './context';
import { createFindGains } from './find-gains';
import { createFineTune } from './fine-tune';
import { createFitRouter } from './fit-router';
import { createKeep } from './keep';
import { createPrepare } from './prepare';
import { createWriteReport } from './report';
import { createRollOut } from './roll-out';
import { createSearchPrompt } from './search-prompt';
import { createSynthesis } from './synthesise';
import { createTakeConversations } from './take-conversations';
import { createTakeModules } from './take-modules';
import { createTrain } from './train';
import { createWeighAdapters } from './weigh-adapters';
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
