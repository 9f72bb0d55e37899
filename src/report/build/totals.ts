/** What a campaign made in all: rollouts by purpose and error, tokens, wall time, as the activities returned them. */
import type { Purpose } from '../../domain/purposes';
import type { ReportDraft } from '../../domain/report';
import type { CampaignRecord, RolloutSummary } from '../../domain/results';
import { stages } from '../../domain/stages';
import { distinct } from './evidence';
import { plainFigure } from './figures';

interface Batches {
  purpose: Purpose;
  batches: Pick<RolloutSummary, 'ref' | 'scored' | 'broken' | 'promptTokens' | 'completionTokens' | 'errors'>[];
}

/** Every batch of the campaign under what it was for. */
export function batchesByPurpose(record: CampaignRecord): Batches[] {
  const { baseRollouts, baseHeldOut, capabilities = [], arms = [], router, evaluation } = record;
  const works = [...capabilities.map(({ trained }) => trained), ...arms];
  const of = (purpose: Purpose, batches: (RolloutSummary | undefined)[]): Batches => ({
    purpose,
    batches: distinct(batches.filter((batch) => batch !== undefined)),
  });
  const found: Batches[] = [
    of('base_rollouts', [baseRollouts]),
    of(
      'calibration',
      capabilities.flatMap((c) => c.rounds.map((round) => round.calibrationRollouts)),
    ),
    {
      purpose: 'training',
      batches: works
        .flatMap((work) => work?.training ?? [])
        .map((training) => ({
          ref: training.metrics,
          scored: training.rollouts,
          broken: training.brokenRollouts,
          promptTokens: training.promptTokens,
          completionTokens: training.completionTokens,
          errors: {},
        })),
    },
    of('held_out', [
      baseHeldOut,
      ...works.flatMap((work) => work?.iterations?.map(({ heldOut }) => heldOut)),
      ...capabilities.flatMap(({ trained: t }) => (t ? [t.synthesized.before, t.target.after] : [])),
    ]),
    of('outcome_matrix', router?.outcomes.map((o) => o.rollouts) ?? []),
    of('test', evaluation?.policies.map(({ rollouts }) => rollouts) ?? []),
  ];
  return found.filter(({ batches }) => batches.length > 0);
}

export function totals(record: CampaignRecord): Pick<ReportDraft, 'rollouts' | 'cost'> {
  const purposes = batchesByPurpose(record);
  const all = purposes.flatMap(({ batches }) => batches);
  const sum = (id: string, batches: typeof all, field: 'scored' | 'broken' | 'promptTokens' | 'completionTokens') => {
    const value = batches.reduce((total, batch) => total + batch[field], 0);
    const n = batches.reduce((total, batch) => total + batch.scored + batch.broken, 0);
    const unit = field.endsWith('Tokens') ? 'tokens' : 'count';
    return plainFigure({ id, value, n, unit, from: batches.map((batch) => batch.ref) });
  };
  const errorTypes = [...new Set(all.flatMap((batch) => Object.keys(batch.errors)))].sort();
  return {
    rollouts: {
      scored: sum('rollouts.scored', all, 'scored'),
      broken: sum('rollouts.broken', all, 'broken'),
      brokenByError: errorTypes.map((errorType) => {
        const having = all.filter((batch) => batch.errors[errorType]);
        const value = having.reduce((total, batch) => total + (batch.errors[errorType] ?? 0), 0);
        const id = `rollouts.broken_by_error.${errorType.toLowerCase()}`;
        return {
          errorType,
          rollouts: plainFigure({ id, value, n: value, unit: 'count', from: having.map((b) => b.ref) }),
        };
      }),
      byPurpose: purposes.map(({ purpose, batches }) => {
        const id = `rollouts.${purpose}`;
        return {
          purpose,
          scored: sum(`${id}.scored`, batches, 'scored'),
          broken: sum(`${id}.broken`, batches, 'broken'),
          promptTokens: sum(`${id}.prompt_tokens`, batches, 'promptTokens'),
          completionTokens: sum(`${id}.completion_tokens`, batches, 'completionTokens'),
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
