/** The router in the report: cross-validation on the train split, and what it chose on the test split, from the rollouts that it routed. */
import { readJson, type ArtifactStore } from '../../store/store';
import type { ArtifactRef, Figure } from '../../domain/artifacts';
import { type Outcome, taskMeans } from '../../domain/outcomes';
import { policyNames } from '../../domain/policies';
import type { CampaignRecord } from '../../domain/results';
import { quantileOf, wilsonInterval } from '../../domain/statistics';
import { type CrossValidated, fittedRouterSchema } from '../../routing/router';
import type { ReportDraft, ReportedRouter } from '../model';
import type { Evidence } from './evidence';
import { rateFigure, slug } from './figures';

export async function routerOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  evidence: Evidence;
}): Promise<Pick<ReportDraft, 'router'>> {
  const { store, record, evidence } = o;
  const { level, test } = evidence;
  // One that was not fitted is the routed policy's reason (evaluation.failed).
  if (!record.router?.router) return {};
  const { router: ref, options, failed, notMerged } = record.router;
  const { crossValidation, maker, constant } = await readJson(store, ref, fittedRouterSchema);
  const width = quantileOf(level.confidence);
  const figure = (name: string, { mean: value, standardError, n }: CrossValidated): Figure => {
    // Tasks with equal outcomes have a standard error of 0.
    const { low, high } =
      standardError === 0
        ? wilsonInterval({ successes: value * n, trials: n, confidence: level.confidence })
        : { low: Math.max(0, value - width * standardError), high: Math.min(1, value + width * standardError) };
    const method = standardError === 0 ? 'wilson' : 'normal over tasks';
    const interval = { low, high, level: level.confidence, method };
    return { id: `router.cross_validation.${name}`, value, n, unit: 'fraction', interval, from: [ref] };
  };
  const { routed, base, bestSingle, unionCeiling, form: kept, forms, helps } = crossValidation;
  const chosen = test.get(policyNames.routed);
  return {
    router: {
      kind: maker.kind,
      constant,
      crossValidation: {
        routed: figure('routed', routed),
        base: figure('base', base),
        bestSingle: { option: bestSingle.option, successRate: figure('best_single', bestSingle) },
        oracle: figure('oracle', unionCeiling),
        forms: forms?.map(({ form, ...scored }) => ({
          form,
          successRate: figure(`forms.${slug(form)}`, scored),
          kept: form === kept,
        })),
      },
      helps,
      notMerged,
      failed: failed.length > 0 ? failed : undefined,
      choices: chosen && choicesOf(chosen.from[0]!, options, evidence),
    },
  };
}

type RoutedOutcome = Extract<Outcome, { status: 'scored' }> & { routed: object };

/** Counts the router's choices, with their success, in the rollouts of the routed policy. */
function choicesOf(
  ref: ArtifactRef,
  options: readonly string[],
  { outcomes, level }: Evidence,
): ReportedRouter['choices'] {
  const routed = outcomes(ref).filter(
    (one): one is RoutedOutcome => one.status === 'scored' && one.routed !== undefined,
  );
  const chosen = new Set([...options, ...routed.map((one) => one.routed.chosen)]);
  return [...chosen].map((option) => {
    const id = `router.choices.${slug(option)}`;
    const given = routed.filter((one) => one.routed.chosen === option);
    const share = routed.length === 0 ? null : given.length / routed.length;
    return {
      option,
      share: { id, value: share, n: routed.length, unit: 'fraction', from: [ref] },
      successRate: rateFigure(`${id}.success_rate`, taskMeans(given, ref), level),
    };
  });
}
