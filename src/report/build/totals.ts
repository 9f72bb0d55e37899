/**
 * What a campaign made in all: rollouts by purpose and error, tokens, wall time. Invariant: a rollout that batches share counts once, for the
 * first purpose in the order of `batchesByPurpose`, so that the purposes add up to the total.
 */
import type { ArtifactRef } from '../../domain/artifacts';
import { causesOf, type Purpose, type RolloutSummary } from '../../domain/rollout';
import type { ReportDraft } from '../../domain/report';
import type { CampaignRecord, TrainingSummary } from '../../domain/results';
import { stages } from '../../domain/campaign';
import { brokenBy, calibrationBatches, countGroups, type Contents, type Count } from './counted';
import { distinct } from './evidence';
import { plainFigure } from './figures';

interface Batches {
  purpose: Purpose;
  batches: { ref: ArtifactRef }[];
  /** Of trainings, whose batches are behind their metrics: as the activities returned it. */
  counted?: Count;
}

export const trainingsOf = ({ capabilities = [], arms = [] }: CampaignRecord): TrainingSummary[] =>
  [...capabilities.map(({ trained }) => trained), ...arms].flatMap((work) => work?.training ?? []);

/** Every batch of the campaign under what it was for. */
export function batchesByPurpose(record: CampaignRecord): Batches[] {
  const { baseRollouts, baseHeldOut, capabilities = [], arms = [], router, evaluation } = record;
  const works = [...capabilities.map(({ trained }) => trained), ...arms];
  const trainings = trainingsOf(record);
  const of = (purpose: Purpose, batches: (RolloutSummary | undefined)[]): Batches => ({
    purpose,
    batches: distinct(batches.filter((batch) => batch !== undefined)),
  });
  const found: Batches[] = [
    of('base_rollouts', [baseRollouts]),
    of(
      'calibration',
      capabilities.flatMap(({ rounds }) => calibrationBatches(rounds)),
    ),
    { purpose: 'training', batches: trainings.map(({ metrics: ref }) => ({ ref })), counted: countOf(trainings) },
    of('held_out', [
      baseHeldOut,
      ...works.flatMap((work) => work?.iterations?.map(({ heldOut }) => heldOut)),
      ...capabilities.flatMap(({ trained: t, parts }) =>
        // Of the base, the target is held out for all of them at once.
        t ? [t.synthesized.before, t.synthesized.after, parts && t.target.before, t.target.after] : [],
      ),
    ]),
    of('outcome_matrix', router?.outcomes.map((o) => o.rollouts) ?? []),
    of('test', evaluation?.policies.map(({ rollouts }) => rollouts) ?? []),
  ];
  return found.filter(({ batches }) => batches.length > 0);
}

/** Without what counts as base rollouts. */
const countOf = (trainings: TrainingSummary[]): Count => {
  const sum = (count: (training: TrainingSummary) => number) => trainings.reduce((total, one) => total + count(one), 0);
  const own = (field: 'rollouts' | 'promptTokens' | 'completionTokens') =>
    sum(({ shared, ...all }) => all[field] - (shared?.[field] ?? 0));
  return {
    scored: own('rollouts'),
    broken: sum(({ brokenRollouts }) => brokenRollouts),
    promptTokens: own('promptTokens'),
    completionTokens: own('completionTokens'),
    causes: [],
  };
};

const refsOf = (batches: { ref: ArtifactRef }[]): ArtifactRef[] => distinct(batches).map(({ ref }) => ref);

/** The batches whose rollouts are counted one by one. */
export const batchesToRead = (record: CampaignRecord): { ref: ArtifactRef }[] =>
  batchesByPurpose(record).flatMap(({ batches, counted }) => (counted ? [] : batches));

type Totals = { [Part in 'rollouts' | 'cost']: NonNullable<ReportDraft[Part]> };

export function totals(record: CampaignRecord, contents: Contents): Totals {
  const purposes = batchesByPurpose(record);
  const counts = countGroups(
    contents,
    purposes.map(({ batches, counted }) => (counted ? [] : batches)),
  );
  const all = purposes.map((one, i) => ({ ...one, count: one.counted ?? counts[i]! }));
  const sum = (id: string, over: typeof all, field: 'scored' | 'broken' | 'promptTokens' | 'completionTokens') => {
    const value = over.reduce((total, { count }) => total + count[field], 0);
    const n = over.reduce((total, { count }) => total + count.scored + count.broken, 0);
    const unit = field.endsWith('Tokens') ? 'tokens' : 'count';
    return plainFigure({ id, value, n, unit, from: refsOf(over.flatMap(({ batches }) => batches)) });
  };
  const causes = causesOf(all.flatMap(({ count }) => count.causes));
  const before = (type: string, n: number): number => causes.slice(0, n).filter((one) => one.type === type).length;
  return {
    rollouts: {
      scored: sum('rollouts.scored', all, 'scored'),
      broken: sum('rollouts.broken', all, 'broken'),
      brokenByError: causes.map(({ type: errorType, message, task, count: value }, n) => {
        const having = all.filter(({ count }) => count.causes.some(({ type }) => type === errorType));
        const earlier = before(errorType, n);
        const id = `rollouts.broken_by_error.${errorType.toLowerCase()}${earlier > 0 ? `_${earlier + 1}` : ''}`;
        const from = refsOf(having.flatMap(({ batches }) => brokenBy(contents, batches, errorType)));
        return { errorType, message, task, rollouts: plainFigure({ id, value, n: value, unit: 'count', from }) };
      }),
      byPurpose: all.map((one) => {
        const id = `rollouts.${one.purpose}`;
        return {
          purpose: one.purpose,
          scored: sum(`${id}.scored`, [one], 'scored'),
          broken: sum(`${id}.broken`, [one], 'broken'),
          promptTokens: sum(`${id}.prompt_tokens`, [one], 'promptTokens'),
          completionTokens: sum(`${id}.completion_tokens`, [one], 'completionTokens'),
        };
      }),
    },
    cost: {
      wallSeconds: stages.flatMap((stage) => {
        const seconds = record.stageSeconds[stage];
        return seconds === undefined ? [] : [{ stage, seconds }];
      }),
      rollouts: sum('cost.rollouts', all, 'scored'),
      promptTokens: sum('cost.prompt_tokens', all, 'promptTokens'),
      completionTokens: sum('cost.completion_tokens', all, 'completionTokens'),
    },
  };
}
