/**
 * The cost of a campaign: rollouts and tokens by purpose, seconds, and language models. Invariant: a rollout that batches share counts once, for
 * the first purpose that it was made for, so that the purposes add up to the total.
 */
import { type Campaign, stages } from '../../domain/campaign';
import { type Spent, sumOf } from '../../domain/endpoints';
import type { Figure } from '../../domain/artifacts';
import type { CampaignRecord } from '../../domain/results';
import { causesOf, purposes } from '../../domain/rollout';
import { median } from '../../domain/statistics';
import type { ReportDraft } from '../model';
import { batchesOf, countGroups, type Evidence, refsOf } from './evidence';
import { countFigure, slug } from './figures';

type Cost = NonNullable<ReportDraft['cost']>;

export function rolloutsAndCost(o: {
  record: CampaignRecord;
  evidence: Evidence;
  /** Costs of language models by step. */
  spent: readonly Spent[];
}): Pick<ReportDraft, 'rollouts' | 'cost'> {
  const { record, evidence, spent } = o;
  const { stageSeconds, campaign } = record;
  const batches = batchesOf(record);
  const groups = purposes
    .map((purpose) => ({ purpose, batches: batches.filter((batch) => batch.purpose === purpose) }))
    .filter((group) => group.batches.length > 0);
  const counts = countGroups(
    evidence,
    groups.map((group) => group.batches),
  );
  const all = groups.map((group, n) => ({ ...group, count: counts[n]! }));

  const sum = (
    id: string,
    over: typeof all,
    field: 'scored' | 'broken' | 'promptTokens' | 'completionTokens',
  ): Figure => ({
    id,
    value: over.reduce((total, { count }) => total + count[field], 0),
    n: over.reduce((total, { count }) => total + count.scored + count.broken, 0),
    unit: field.endsWith('Tokens') ? 'tokens' : 'count',
    from: refsOf(over.flatMap((group) => group.batches)),
  });

  const causes = causesOf(all.flatMap(({ count }) => count.causes));
  const brokenByError = causes.map(({ type: errorType, message, task, count }, n) => {
    const having = batches.filter(
      ({ ref, counted }) =>
        !counted && evidence.outcomes(ref).some((one) => one.status === 'broken' && one.error.type === errorType),
    );
    const id = `rollouts.broken_by_error.${slug(errorType)}_${n + 1}`;
    return { errorType, message, task, rollouts: countFigure(id, count, refsOf(having)) };
  });
  return {
    rollouts: {
      scored: sum('rollouts.scored', all, 'scored'),
      broken: sum('rollouts.broken', all, 'broken'),
      brokenByError,
      byPurpose: all.map((group) => ({
        purpose: group.purpose,
        scored: sum(`rollouts.${group.purpose}.scored`, [group], 'scored'),
        broken: sum(`rollouts.${group.purpose}.broken`, [group], 'broken'),
        promptTokens: sum(`rollouts.${group.purpose}.prompt_tokens`, [group], 'promptTokens'),
        completionTokens: sum(`rollouts.${group.purpose}.completion_tokens`, [group], 'completionTokens'),
      })),
    },
    cost: {
      wallSeconds: stages.flatMap((stage) => {
        const seconds = stageSeconds[stage];
        return seconds === undefined ? [] : [{ stage, seconds }];
      }),
      secondsPerRollout: secondsPerRollout(record, evidence),
      promptTokens: sum('cost.prompt_tokens', all, 'promptTokens'),
      completionTokens: sum('cost.completion_tokens', all, 'completionTokens'),
      languageModel: languageModelCost(spent, campaign.budget),
    },
  };
}

/**
 * Base rollouts are alone on the policy server, and their seconds are those of the attempt that finished the batch: outages ended earlier
 * attempts. Where that attempt played less than half of the batch, the rest of it is no measure of the rate.
 */
function secondsPerRollout(record: CampaignRecord, evidence: Evidence): Cost['secondsPerRollout'] {
  const { scored, broken, reused = 0, seconds } = record.baseRollouts;
  const played = scored + broken - reused;
  const rollout = played > 0 && played >= reused ? seconds / played : undefined;
  const training = secondsPerTrainingRollout(record, evidence);
  return rollout === undefined && training === undefined ? undefined : { rollout, training };
}

/** The median step over its rollouts, so that a step with an outage in it does not count; trainings that run side by side share the time. Undefined of learners that do not time their steps. */
function secondsPerTrainingRollout(record: CampaignRecord, { metrics }: Evidence): number | undefined {
  const { training, workers } = record.campaign;
  const timed = batchesOf(record).flatMap(({ ref, counted }) => {
    const steps = (counted ? metrics(ref) : []).flatMap(({ rollouts_seconds: played, update_seconds: updated }) =>
      played === undefined || updated === undefined ? [] : [played + updated],
    );
    return steps.length > 0 ? [steps] : [];
  });
  if (timed.length === 0) return undefined;
  return (
    median(timed.flat()) / (training.groupsPerStep * training.groupSize) / Math.min(workers.gpuSlots, timed.length)
  );
}

/** Undefined where nothing was asked. */
export function languageModelCost(steps: readonly Spent[], budget: Campaign['budget']): Cost['languageModel'] {
  if (steps.length === 0) return undefined;
  return { steps: [...steps], total: { step: 'all', ...sumOf(steps) }, budget };
}
