/**
 * A campaign: base rollouts -> discover -> label x N -> select -> one child per capability and per arm, side by side -> fit the router
 * -> final evaluation -> report. Invariant: what a step found is in the artifact store; the workflow holds references and summaries.
 */
import { upsertMemo, workflowInfo } from '@temporalio/workflow';
import { type Stage, stages } from '../domain/campaign';
import { type EndedArm, type EndedCapability, failedIn, type KeptRecord } from '../domain/results';
import { rolloutsStage, selectionStage } from './analysis';
import { armWorkflow } from './arm';
import type { ArmKind } from './arms/arm';
import { capability } from './capability';
import { capabilitiesStage } from './children';
import type { CampaignInput, CampaignResult, ChildRef, Memo } from './messages';
import { evaluationStage, routerStage } from './router';
import { required, type Run } from './run';
import { CampaignStatus, withOutcome } from './status';
import { activity, keep } from './steps';

const stageOf: Record<Stage, (run: Run) => Promise<void>> = {
  rollouts: rolloutsStage,
  selection: selectionStage,
  capabilities: capabilitiesStage,
  router: routerStage,
  evaluation: evaluationStage,
};

/** The workflow over the kinds of arms that there are. */
export const campaignWorkflow = (arms: readonly ArmKind[]) =>
  function campaign(input: CampaignInput): Promise<CampaignResult> {
    return withOutcome(() => toReport(arms, input));
  };

async function toReport(
  arms: readonly ArmKind[],
  { campaign: given, until, force = false, kept = [] }: CampaignInput,
): Promise<CampaignResult> {
  const startedAt = Date.now();
  const status = new CampaignStatus(given);
  const prepared = await activity(given, 'check the parts and split the tasks').prepare({
    campaign: given,
    ...(until && { until }),
  });
  const { pool } = prepared;
  // Whoever starts workers later has to know it.
  upsertMemo({ pool } satisfies Memo);
  const config = { ...given, workers: { ...given.workers, pool } };
  const trains = until !== 'rollouts' && until !== 'selection';
  const run: Run = { config, arms, prepared, force, trains, kept, status, found: {} };
  for (const stage of stages) {
    await status.stage(stage, () => stageOf[stage](run));
    if (stage === until) break;
  }
  const record: KeptRecord = {
    campaign: given,
    workflowId: workflowInfo().workflowId,
    startedAt,
    finishedAt: Date.now(),
    stageSeconds: status.stageSeconds,
    prepared,
    ...run.found,
    baseRollouts: required(run.found.baseRollouts),
    ...(until && until !== 'evaluation' && { stoppedAfter: until }),
  };
  const all = await keep(config, 'the record', record);
  const written = await activity(config, 'write the report').writeReport({ record: all });
  status.ended(written.verdict);
  const { capabilities = [], arms: ended = [] } = record;
  const refs = (kind: ChildRef['kind'], children: readonly (EndedCapability | EndedArm)[]) =>
    children.map(({ workflowId, name, status: came }) => ({ workflowId, kind, name, status: came }));
  return {
    status: record.stoppedAfter ? 'stopped_at_stage' : 'completed',
    ...written,
    children: [...refs('capability', capabilities), ...refs('arm', ended)],
    failed: failedIn(record),
  };
}

export const createWorkflows = (arms: readonly ArmKind[]) => ({
  campaign: campaignWorkflow(arms),
  capability,
  arm: armWorkflow(arms),
});
