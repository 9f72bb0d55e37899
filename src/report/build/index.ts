/** Builds the report of a campaign from its record. Invariant: every figure is computed here from the artifacts, not carried along. */
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { Task } from '../../domain/environment';
import type { CampaignRecord } from '../../domain/results';
import type { ReportDraft } from '../../domain/report';
import { stages } from '../../domain/stages';
import { armsOf } from './arms';
import { publishedOf } from './groups';
import { capabilitiesOf } from './capabilities';
import { routerOf } from './router';
import { selectionOf } from './selection';
import { totals } from './totals';

export async function buildReport(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  /** Of the target's test split. */
  tasks: readonly Task[];
  leakage?: ReportDraft['leakage'];
}): Promise<ReportDraft> {
  const { store, record, tasks, leakage } = o;
  const { campaign, prepared } = record;
  const level = { confidence: campaign.evaluation.confidence, seed: campaign.seed };
  const selection = await selectionOf(store, record);
  const arms = await armsOf({ store, record, tasks, level });
  return {
    campaign: {
      name: campaign.name,
      seed: campaign.seed,
      configSha256: digest(campaign),
      baseModel: prepared.base,
      target: prepared.target,
      startedAt: new Date(record.startedAt).toISOString(),
      finishedAt: new Date(record.finishedAt).toISOString(),
      status: record.stoppedAfter ? 'stopped_at_stage' : 'completed',
      stage: record.stoppedAfter ?? stages[stages.length - 1] ?? 'evaluation',
      workflowId: record.workflowId,
    },
    ...totals(record),
    ...selection,
    ...(await capabilitiesOf({ store, record, candidates: selection.selection?.candidates ?? [], level })),
    ...(await routerOf(store, record)),
    ...arms,
    ...publishedOf(prepared.target.name, arms.groups ?? []),
    ...(leakage && { leakage }),
  };
}
