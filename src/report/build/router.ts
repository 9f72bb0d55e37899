/** The router in the report: cross-validation on the train split, and what it chose on the test split. */
import type { ArtifactStore } from '../../artifacts/store';
import type { CampaignRecord } from '../../domain/results';
import type { ReportDraft } from '../../domain/report';
import { routerSchema, type CrossValidated } from '../../routing/router';
import { plainFigure, slug } from './figures';

export async function routerOf(store: ArtifactStore, record: CampaignRecord): Promise<Pick<ReportDraft, 'router'>> {
  if (!record.router) return {};
  const { router: ref, options, helps } = record.router;
  const router = routerSchema.parse(JSON.parse((await store.read(ref)).toString('utf8')));
  const { crossValidation: cv } = router;
  const figure = (name: string, { mean, standardError, n }: CrossValidated) => ({
    ...plainFigure({ id: `router.cross_validation.${name}`, value: mean, n, unit: 'fraction' as const, from: [ref] }),
    interval: {
      low: Math.max(0, mean - 1.96 * standardError),
      high: Math.min(1, mean + 1.96 * standardError),
      level: 0.95,
      method: 'normal over tasks',
    },
  });
  const chosen = record.evaluation?.trace;
  const routed = chosen?.chosen.reduce((sum, { rollouts }) => sum + rollouts.scored + rollouts.broken, 0) ?? 0;
  return {
    router: {
      kind: router.constant === undefined ? router.kind : 'constant',
      crossValidation: {
        routed: figure('routed', cv.routed),
        base: figure('base', cv.base),
        bestSingle: { option: cv.bestSingle.option, successRate: figure('best_single', cv.bestSingle) },
        unionCeiling: figure('union_ceiling', cv.unionCeiling),
      },
      helps,
      ...(chosen && {
        choices: options.map((option) => {
          const batch = chosen.chosen.find((c) => c.option === option)?.rollouts;
          const count = batch ? batch.scored + batch.broken : 0;
          const value = count / routed;
          return {
            option,
            share: plainFigure({
              id: `router.choices.${slug(option)}`,
              value,
              n: routed,
              unit: 'fraction',
              from: [chosen.assignment],
            }),
          };
        }),
        // An error of the router fails the step and is tried again: a report is only written when every task was routed.
        errors: plainFigure({ id: 'router.errors', value: 0, n: routed, unit: 'count', from: [chosen.assignment] }),
      }),
    },
  };
}
