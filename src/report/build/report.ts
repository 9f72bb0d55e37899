/**
 * Builds the report of a campaign from its record. Figures are computed from artifacts, except those of trainings, stages' seconds and language models'
 * costs, which activities returned.
 */
import { digest } from '../../store/hash';
import { commitNow, version } from '../../store/project-root';
import type { ArtifactStore } from '../../store/store';
import type { Spent } from '../../domain/endpoints';
import type { Task } from '../../domain/environment';
import { policyNames } from '../../domain/policies';
import type { CampaignRecord } from '../../domain/results';
import { LAST_STAGE } from '../../domain/work';
import type { ReportDraft } from '../model';
import { armsOf } from './arms';
import { capabilitiesOf } from './capabilities';
import { rolloutsAndCost } from './cost';
import { readEvidence } from './evidence';
import { rateFigure, rewardFigure } from './figures';
import { groupsOf } from './groups';
import { routerOf } from './router';
import { selectionOf } from './selection';

export async function buildReport(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  /** Tasks of the target's test split. */
  tasks: readonly Task[];
  /** Tasks of its train split. */
  trainTasks?: readonly Task[];
  leakage?: ReportDraft['leakage'] | undefined;
  /** Costs of language models by step. */
  spent: readonly Spent[];
}): Promise<ReportDraft> {
  const { store, record, tasks, trainTasks = [], leakage, spent } = o;
  const { campaign, prepared, stoppedAfter, baseCheck } = record;
  const evidence = await readEvidence(store, record);
  const sources = { store, record, evidence };
  const { selection: result, baseRollouts } = record;
  const selection =
    result && (await selectionOf({ store, result, rollouts: baseRollouts.ref, rule: campaign.selection }));
  const { router } = await routerOf(sources);
  const { level } = evidence;
  const base = evidence.means(baseRollouts.ref);
  const columns = new Map([[policyNames.base, base]]);
  const { groups } = groupsOf({ columns, tasks: trainTasks, level, id: 'base_rollouts.groups' });
  const arms = armsOf({ record, evidence, tasks, constant: router?.constant });
  // The warnings are about the first rollouts: a later reward contradicts them.
  const warnings = baseRollouts.meanReward > 0 ? [] : (baseCheck?.warnings ?? []);
  const findings = [...(baseCheck?.problems ?? []), ...warnings];
  return {
    campaign: {
      name: campaign.name,
      seed: campaign.seed,
      trainingSeed: campaign.trainingSeed,
      configSha256: digest(campaign),
      writtenBy: { version, commit: commitNow() },
      config: campaign,
      baseModel: prepared.base,
      target: prepared.target,
      startedAt: new Date(record.startedAt).toISOString(),
      finishedAt: new Date(record.finishedAt).toISOString(),
      status: 'completed',
      stage: stoppedAfter ?? LAST_STAGE,
      workflowId: record.workflowId,
    },
    baseCheck: baseCheck && findings.length > 0 ? { findings, from: [baseCheck.rollouts] } : undefined,
    ...rolloutsAndCost({ record, evidence, spent }),
    base: {
      successRate: rateFigure('base_rollouts.success_rate', base, level),
      meanReward: rewardFigure('base_rollouts.mean_reward', base, level),
      groups,
    },
    selection,
    capabilities: capabilitiesOf(sources),
    router,
    ...arms,
    leakage,
  };
}
