/**
 * Runs a campaign: base rollouts, discovery, N labeling passes, selection, one child per capability and per arm side by side, the router, the evaluation
 * and the report. Texts and weights are in the store; the workflow holds references and figures.
 */
import { upsertMemo, workflowInfo } from '@temporalio/workflow';
import { type Stage, stages } from '../domain/campaign';
import { type CampaignChild, type CampaignRecord, type ChildResult, failedIn } from '../domain/results';
import { rolloutsStage, selectionStage } from './analysis';
import { capabilitiesStage } from './children';
import type { CampaignInput, CampaignResult, Memo } from './messages';
import { evaluationStage, routerStage } from './router';
import { required, type Run } from './run';
import { CampaignStatus, withOutcome } from './status';
import { control } from './steps';

const stageOf: Record<Stage, (run: Run) => Promise<void>> = {
  rollouts: rolloutsStage,
  selection: selectionStage,
  capabilities: capabilitiesStage,
  router: routerStage,
  evaluation: evaluationStage,
};

export const campaignRun = (input: CampaignInput): Promise<CampaignResult> => withOutcome(() => runCampaign(input));

async function runCampaign({
  campaign: given,
  until,
  force = false,
  kept = [],
}: CampaignInput): Promise<CampaignResult> {
  const startedAt = Date.now();
  const status = new CampaignStatus(given);
  const prepared = await control(given, 'check the parts and split the tasks').prepare({
    campaign: given,
    ...(until && { until }),
  });
  const { pool } = prepared;
  // Workers for this pool can be started later, by what the memo says.
  upsertMemo({ pool } satisfies Memo);
  const config = { ...given, workers: { ...given.workers, pool } };
  const trains = until !== 'rollouts' && until !== 'selection';
  const run: Run = { config, prepared, force, trains, kept, status, found: {} };
  for (const stage of stages) {
    await status.stage(stage, () => stageOf[stage](run));
    if (stage === until) break;
  }
  const record: CampaignRecord = {
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
  const written = await control(config, 'write the report').writeReport({ record });
  status.ended(written.verdict);
  const { capabilities = [], arms = [] } = record;
  const refs = (kind: CampaignChild['kind'], children: readonly ChildResult[]) =>
    children.map(({ workflowId, name, status: outcome }) => ({ workflowId, kind, name, status: outcome }));
  return {
    status: 'completed',
    ...(record.stoppedAfter && { stoppedAfter: record.stoppedAfter }),
    ...written,
    children: [...refs('capability', capabilities), ...refs('arm', arms)],
    failed: failedIn(record),
  };
}
