/** The router in the report: cross-validation on the train split, and what it chose on the test split, from the rollouts that it routed. */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { ReportDraft } from '../model';
import type { FailureType } from '../../domain/failures';
import type { TaskMeans } from '../../domain/paired-statistics';
import { policyNames } from '../../domain/policies';
import type { CampaignRecord } from '../../domain/results';
import { type Choice, SUCCESS } from '../../domain/rollout';
import { mean, median, quantileOf } from '../../domain/statistics';
import { type CrossValidated, fittedRouterSchema } from '../../routing/router';
import { readOutcomes, readTaskMeans } from '../../rollout/read';
import { unionOf } from './arms';
import { differenceFigure, type Level, plainFigure, rateFigure, readArtifact, slug } from './figures';

const NOT_ROUTED: FailureType = 'RouterFailed';

export async function routerOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  level: Level;
}): Promise<Pick<ReportDraft, 'router'>> {
  const { store, record, level } = o;
  // One that was not fitted is the routed policy's reason (evaluation.failed).
  if (!record.router?.router) return {};
  const { router: ref, options, failed, noSums } = record.router;
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
        ...(cv.forms && {
          forms: cv.forms.map(({ form, ...scored }) => ({
            form,
            successRate: figure(`forms.${slug(form)}`, scored),
            kept: form === cv.form,
          })),
        }),
      },
      helps: cv.helps,
      ...(noSums !== undefined && { noSums }),
      ...(failed && { failed }),
      ...(tested && (await routedOf({ store, ref: tested.rollouts.ref, options, level }))),
      ...(await regretOf({ store, record, level })),
    },
  };
}

/** What the rollouts of the routed policy say of the router. */
async function routedOf(o: { store: ArtifactStore; ref: ArtifactRef; options: readonly string[]; level: Level }) {
  const { store, ref, level } = o;
  const chosen = new Map(o.options.map((option) => [option, [] as Routed[]]));
  let [all, failed] = [0, 0];
  for (const rollout of await readOutcomes({ store, ref })) {
    all += 1;
    if (rollout.status === 'broken') {
      if (rollout.error.type === NOT_ROUTED) failed += 1;
    } else if (rollout.routed) {
      const { task, routed } = rollout;
      const given = chosen.get(routed.chosen) ?? [];
      given.push({ task, success: rollout.reward >= SUCCESS, choice: routed });
      chosen.set(routed.chosen, given);
    }
  }
  const routed = [...chosen.values()].flat();
  const times = routed.flatMap(({ choice }) => choice.milliseconds ?? []);
  const from = [ref];
  return {
    choices: [...chosen].map(([option, given]) => {
      const id = `router.choices.${slug(option)}`;
      const predicted = routed.flatMap(({ choice }) => choice.probabilities[option] ?? []);
      const count = { n: routed.length, unit: 'fraction' as const, from };
      const { length: n } = predicted;
      return {
        option,
        share: plainFigure({ ...count, id, value: routed.length === 0 ? null : given.length / routed.length }),
        successRate: rateFigure({ id: `${id}.success_rate`, means: meansOf(given, from), level }),
        ...(n > 0 && { probability: plainFigure({ ...count, id: `${id}.probability`, value: mean(predicted), n }) }),
      };
    }),
    errors: plainFigure({ id: 'router.errors', value: failed, n: all, unit: 'count', from }),
    ...(times.length > 0 && {
      latency: plainFigure({ id: 'router.latency', value: median(times), n: times.length, unit: 'milliseconds', from }),
    }),
  };
}

/** A conversation that was given to an option. */
interface Routed {
  task: string;
  success: boolean;
  choice: Omit<Choice, 'policy'>;
}

function meansOf(conversations: readonly Routed[], from: ArtifactRef[]): TaskMeans {
  const tasks = new Map<string, number[]>();
  for (const { task, success } of conversations) tasks.set(task, [...(tasks.get(task) ?? []), success ? 1 : 0]);
  const success = new Map([...tasks].map(([task, trials]) => [task, mean(trials)]));
  const trials = Math.max(0, ...[...tasks.values()].map(({ length }) => length));
  return { success, reward: new Map(), branch: new Map(), trials, from };
}

/** Of what every option solves on test, what the routed policy did not; unknown where one of them was not evaluated. */
async function regretOf(o: { store: ArtifactStore; record: CampaignRecord; level: Level }) {
  const { store, record, level } = o;
  const policies = new Map((record.evaluation?.policies ?? []).map(({ name, rollouts }) => [name, rollouts.ref]));
  const routed = policies.get(policyNames.routed);
  const options = (record.router?.options ?? []).map((option) => policies.get(option));
  if (!routed || options.some((ref) => ref === undefined)) return {};
  const columns: TaskMeans[] = [];
  for (const ref of options) if (ref) columns.push(await readTaskMeans(store, ref));
  const [treatment, control] = [unionOf(columns), await readTaskMeans(store, routed)];
  return { regret: differenceFigure({ id: 'router.regret', treatment, control, level, bound: true }) };
}
