/** The router in the report: cross-validation on the train split, and what it chose on the test split, from the rollouts that it routed. */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { ReportDraft } from '../../domain/report';
import type { FailureType } from '../../domain/failures';
import { policyNames } from '../../domain/policy-names';
import type { CampaignRecord } from '../../domain/results';
import { quantileOf } from '../../domain/statistics';
import { fittedRouterSchema, type CrossValidated } from '../../routing/router';
import { readRollouts } from '../../rollout/read';
import { readArtifact } from './evidence';
import { plainFigure, slug, type Level } from './figures';

const NOT_ROUTED: FailureType = 'RouterFailed';

export async function routerOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  level: Level;
}): Promise<Pick<ReportDraft, 'router'>> {
  const { store, record, level } = o;
  // One that was not fitted is the routed policy's reason (evaluation.failed).
  if (!record.router?.router) return {};
  const { router: ref, options, failed } = record.router;
  const fitted = await readArtifact({ store, ref, schema: fittedRouterSchema, what: 'a fitted router' });
  const { crossValidation: cv, maker, constant } = fitted;
  const width = quantileOf(level.confidence);
  const figure = (name: string, { mean: value, standardError, n }: CrossValidated) => ({
    ...plainFigure({ id: `router.cross_validation.${name}`, value, n, unit: 'fraction', from: [ref] }),
    interval: {
      low: Math.max(0, value - width * standardError),
      high: Math.min(1, value + width * standardError),
      level: level.confidence,
      method: 'normal over tasks',
    },
  });
  const tested = record.evaluation?.policies.find(({ name }) => name === policyNames.routed);
  return {
    router: {
      kind: maker.kind,
      ...(constant !== undefined && { constant }),
      crossValidation: {
        routed: figure('routed', cv.routed),
        base: figure('base', cv.base),
        bestSingle: { option: cv.bestSingle.option, successRate: figure('best_single', cv.bestSingle) },
        unionCeiling: figure('union_ceiling', cv.unionCeiling),
      },
      helps: cv.helps,
      ...(failed && { failed }),
      ...(tested && (await routedOf({ store, ref: tested.rollouts.ref, options }))),
    },
  };
}

/** What the rollouts of the routed policy say of the router. */
async function routedOf(o: { store: ArtifactStore; ref: ArtifactRef; options: readonly string[] }) {
  const { store, ref } = o;
  const chosen = new Map(o.options.map((option) => [option, 0]));
  const probabilities = new Map<string, { sum: number; n: number }>();
  let [all, routed, failed] = [0, 0, 0];
  for await (const rollout of readRollouts({ store, ref })) {
    all += 1;
    if (rollout.status === 'broken') {
      if (rollout.error.type === NOT_ROUTED) failed += 1;
    } else if (rollout.routed) {
      routed += 1;
      const { chosen: option, probabilities: given } = rollout.routed;
      chosen.set(option, (chosen.get(option) ?? 0) + 1);
      for (const [name, value] of Object.entries(given)) {
        const { sum, n } = probabilities.get(name) ?? { sum: 0, n: 0 };
        probabilities.set(name, { sum: sum + value, n: n + 1 });
      }
    }
  }
  const count = { n: routed, unit: 'fraction' as const, from: [ref] };
  return {
    choices: [...chosen].map(([option, times]) => {
      const given = probabilities.get(option);
      const id = `router.choices.${slug(option)}`;
      return {
        option,
        share: plainFigure({ ...count, id, value: routed === 0 ? null : times / routed }),
        ...(given && {
          probability: plainFigure({ ...count, id: `${id}.probability`, value: given.sum / given.n, n: given.n }),
        }),
      };
    }),
    errors: plainFigure({ id: 'router.errors', value: failed, n: all, unit: 'count', from: [ref] }),
  };
}
