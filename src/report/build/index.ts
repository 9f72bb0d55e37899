/**
 * Builds the report of a campaign from its record. Invariant: rates, rewards, differences, calibration, selection and what the router did
 * are computed here from the artifacts; numbers of rollouts, tokens and seconds are what the activities returned, and name what they are of.
 */
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { Task } from '../../domain/environment';
import type { PublishedArm } from '../../domain/published';
import type { ReportDraft } from '../../domain/report';
import type { CampaignRecord } from '../../domain/results';
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
  /** What others report on the target. */
  published?: readonly PublishedArm[] | undefined;
  leakage?: ReportDraft['leakage'] | undefined;
}): Promise<ReportDraft> {
  const { store, record, tasks, published = [], leakage } = o;
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
    ...(await routerOf({ store, record, level })),
    ...arms,
    ...publishedOf(published, arms.groups ?? []),
    ...(leakage && { leakage }),
  };
}
