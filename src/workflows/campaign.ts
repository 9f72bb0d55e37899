/** Runs a campaign: its stages in order, then the report. */
import { upsertMemo, workflowInfo } from '@temporalio/workflow';
import { type Stage, stages } from '../domain/campaign';
import { type CampaignChild, type CampaignRecord, type ChildResult, failedIn } from '../domain/results';
import { LAST_STAGE } from '../domain/work';
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

async function runCampaign({ campaign, until = LAST_STAGE, force = false }: CampaignInput): Promise<CampaignResult> {
  const startedAt = Date.now();
  const status = new CampaignStatus(campaign);
  const prepared = await control(campaign, 'check the parts and split the tasks').prepare({ campaign, until });
  const { pool } = prepared;
  upsertMemo({ pool } satisfies Memo);
  const config = { ...campaign, workers: { ...campaign.workers, pool } };
  const trains = until !== 'rollouts' && until !== 'selection';
  const run: Run = { config, prepared, force, trains, status, results: {} };
  for (const stage of stages) {
    await status.stage(stage, () => stageOf[stage](run));
    if (stage === until) break;
  }
  const record: CampaignRecord = {
    campaign,
    workflowId: workflowInfo().workflowId,
    startedAt,
    finishedAt: Date.now(),
    stageSeconds: status.stageSeconds,
    prepared,
    ...run.results,
    baseRollouts: required(run.results.baseRollouts),
    ...(until !== LAST_STAGE && { stoppedAfter: until }),
  };
  const written = await control(config, 'write the report').writeReport({ record });
  const { capabilities = [], arms = [], stoppedAfter } = record;
  const refs = (kind: CampaignChild['kind'], children: readonly ChildResult[]) =>
    children.map(({ workflowId, name, status: outcome }) => ({ workflowId, kind, name, status: outcome }));
  return {
    status: 'completed',
    ...(stoppedAfter && { stoppedAfter }),
    ...written,
    children: [...refs('capability', capabilities), ...refs('arm', arms)],
    failed: failedIn(record),
  };
}
