/**
 * Builds the report of a campaign from its record. Invariant: rates, rewards, differences, calibration, selection, what the router did and
 * numbers of rollouts and tokens are computed here from the artifacts; of trainings, of stages' seconds and of what language models cost, it is what
 * the activities returned.
 */
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { Task } from '../../domain/environment';
import type { Spent } from '../../domain/endpoints';
import type { PublishedArm } from '../../domain/presets';
import type { ReportDraft } from '../../domain/report';
import type { CampaignRecord } from '../../domain/results';
import { stages } from '../../domain/campaign';
import { armsOf } from './arms';
import { baseOf } from './base';
import { publishedOf } from './groups';
import { contentsOf } from './counted';
import { capabilitiesOf } from './capabilities';
import { languageModelCost } from './language-model';
import { routerOf } from './router';
import { secondsPerRollout } from './seconds';
import { selectionOf } from './selection';
import { batchesToRead, totals } from './totals';

export async function buildReport(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  /** Of the target's test split. */
  tasks: readonly Task[];
  /** Of its train split. */
  trainTasks?: readonly Task[];
  /** What others report on the target. */
  published?: readonly PublishedArm[] | undefined;
  leakage?: ReportDraft['leakage'] | undefined;
  /** By step: what language models cost. */
  spent: readonly Spent[];
}): Promise<ReportDraft> {
  const { store, record, tasks, trainTasks = [], published = [], leakage, spent } = o;
  const { campaign, prepared } = record;
  const level = { confidence: campaign.evaluation.confidence, seed: campaign.seed };
  const selection = await selectionOf(store, record);
  const contents = await contentsOf(store, batchesToRead(record));
  const all = totals(record, contents);
  const router = await routerOf({ store, record, level });
  const arms = await armsOf({ store, record, contents, tasks, constant: router.router?.constant, level });
  return {
    campaign: {
      name: campaign.name,
      seed: campaign.seed,
      ...(campaign.trainingSeed !== undefined && { trainingSeed: campaign.trainingSeed }),
      configSha256: digest(campaign),
      baseModel: prepared.base,
      target: prepared.target,
      startedAt: new Date(record.startedAt).toISOString(),
      finishedAt: new Date(record.finishedAt).toISOString(),
      status: record.stoppedAfter ? 'stopped_at_stage' : 'completed',
      stage: record.stoppedAfter ?? stages[stages.length - 1] ?? 'evaluation',
      workflowId: record.workflowId,
    },
    ...baseCheckOf(record),
    ...all,
    cost: { ...all.cost, ...(await secondsPerRollout(store, record)), ...languageModelCost(spent, campaign) },
    ...(await baseOf({ store, ref: record.baseRollouts.ref, tasks: trainTasks, level })),
    ...selection,
    ...(await capabilitiesOf({ store, record, candidates: selection.selection?.candidates ?? [], level })),
    ...router,
    ...arms,
    ...publishedOf(published, arms.groups ?? []),
    ...(leakage && { leakage }),
  };
}

function baseCheckOf({ baseCheck }: CampaignRecord): Pick<ReportDraft, 'baseCheck'> {
  if (!baseCheck) return {};
  const findings = [...baseCheck.problems, ...baseCheck.warnings];
  return findings.length === 0 ? {} : { baseCheck: { findings, from: [baseCheck.rollouts] } };
}
