/**
 * What one rollout took, for plans of campaigns like this one. Invariant: what was found in the store counts for nothing: times of stages are
 * divided by the rollouts that were played in them, and a training has its trainer's own clock, whichever run it was made in.
 */
import type { ArtifactStore } from '../../artifacts/store';
import type { CampaignRecord, TrainingSummary } from '../../domain/results';
import type { ReportDraft } from '../../domain/report';
import type { RolloutSummary } from '../../domain/rollout';
import type { Stage } from '../../domain/campaign';
import { median } from '../../domain/statistics';
import { readMetrics } from './training';
import { trainingsOf } from './totals';

type SecondsPerRollout = Pick<NonNullable<ReportDraft['cost']>, 'secondsPerRollout'>;

/** Stages that do little else than rollouts without gradient. */
const PLAIN: readonly Stage[] = ['rollouts', 'router', 'evaluation'];

export async function secondsPerRollout(store: ArtifactStore, record: CampaignRecord): Promise<SecondsPerRollout> {
  const rollout = perPlain(record);
  const training = await perTraining(store, record);
  if (rollout === undefined && training === undefined) return {};
  return {
    secondsPerRollout: { ...(rollout !== undefined && { rollout }), ...(training !== undefined && { training }) },
  };
}

function perPlain({ baseRollouts, router, evaluation, stageSeconds }: CampaignRecord): number | undefined {
  const batches = [baseRollouts, ...[router?.outcomes, evaluation?.policies].flatMap(batchesOf)];
  const played = batches.reduce((sum, { scored, broken, reused = 0 }) => sum + scored + broken - reused, 0);
  const seconds = PLAIN.reduce((sum, stage) => sum + (stageSeconds[stage] ?? 0), 0);
  return played > 0 ? seconds / played : undefined;
}

const batchesOf = (parts: readonly { rollouts: RolloutSummary }[] = []): RolloutSummary[] =>
  parts.map(({ rollouts }) => rollouts);

/** The median step over its rollouts; trainings that run side by side share the time. */
async function perTraining(store: ArtifactStore, record: CampaignRecord): Promise<number | undefined> {
  const { training, workers } = record.campaign;
  const steps: number[] = [];
  let trainings = 0;
  for (const one of trainingsOf(record)) {
    const seconds = await stepSeconds(store, one);
    steps.push(...seconds);
    if (seconds.length > 0) trainings += 1;
  }
  if (steps.length === 0) return undefined;
  return median(steps) / (training.groupsPerStep * training.groupSize) / Math.min(workers.gpuSlots, trainings);
}

/** None of a learner that does not time its steps. */
const stepSeconds = async (store: ArtifactStore, { metrics }: TrainingSummary): Promise<number[]> =>
  (await readMetrics(store, metrics)).flatMap(({ rollouts_seconds, update_seconds }) =>
    rollouts_seconds === undefined || update_seconds === undefined ? [] : [rollouts_seconds + update_seconds],
  );
