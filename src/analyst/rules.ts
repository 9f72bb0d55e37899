/**
 * The analyst by rules: candidates and labels from comparing what was done with what the reference says was needed. Invariants: broken
 * rollouts never enter; the result does not depend on the order of the rollouts; a pass is a function of (rollouts, seed, pass).
 */
import type { SelectionRule } from '../domain/campaign';
import { errorClassSchema, type Candidate, type ErrorClass, type Label, type LabelPass } from '../domain/capability';
import type { EnvironmentDescription } from '../domain/environment';
import { seededRandom } from '../domain/random';
import { isSuccess, type Rollout, type ScoredRollout } from '../domain/rollout';
import { compare } from './comparison';
import { capabilities } from './definitions';
import { errorLabels } from './errors';
import { toolKnowledge } from './tool-knowledge';

interface LabeledRollout {
  key: string;
  passed: boolean;
  labels: Record<ErrorClass, Label>;
}

/** Labels of every scored rollout, sorted by key. Throws if one has no reference. */
function labelRollouts({
  rollouts,
  description,
}: {
  rollouts: readonly Rollout[];
  description: EnvironmentDescription;
}): LabeledRollout[] {
  const knowledge = toolKnowledge(description.tools);
  const scored = rollouts.filter((rollout): rollout is ScoredRollout => rollout.status === 'scored');
  // Without rules any text to tell may be a plain fact ("white"): none of them is taken for a refusal.
  const denials = (description.rules ?? []).flatMap((rule) => (rule.kind === 'precondition' ? [rule.denial] : []));
  return scored
    .map((rollout) => ({
      key: rollout.key,
      passed: isSuccess(rollout),
      labels: errorLabels({ comparison: compare({ rollout, knowledge, denials }), knowledge, denials }),
    }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

/**
 * Candidates for the classes of error that were seen, the most frequent among the failures first. None if there is no failure or no success:
 * with nothing to contrast, nothing is proposed.
 */
export function discover({
  rollouts,
  description,
  rule,
}: {
  rollouts: readonly Rollout[];
  description: EnvironmentDescription;
  rule: Pick<SelectionRule, 'maxCandidates'>;
}): Candidate[] {
  const labeled = labelRollouts({ rollouts, description });
  if (!labeled.some(({ passed }) => passed) || labeled.every(({ passed }) => passed)) return [];
  const withLabel = (errorClass: ErrorClass, label: Label, passed: boolean) =>
    labeled.filter((one) => one.labels[errorClass] === label && one.passed === passed).map(({ key }) => key);
  return errorClassSchema.options
    .map((errorClass) => ({
      errorClass,
      lacking: withLabel(errorClass, 'LACKING', false),
      present: withLabel(errorClass, 'PRESENT', true),
    }))
    .filter(({ lacking }) => lacking.length > 0)
    .sort((a, b) => b.lacking.length - a.lacking.length)
    .slice(0, rule.maxCandidates)
    .map(({ errorClass, lacking, present }) => ({
      ...capabilities[errorClass],
      examples: [...lacking.slice(0, 2), ...present.slice(0, 2)],
      errorClass,
    }));
}

/**
 * One labeling pass on a bootstrap sample: as many draws with replacement as there are scored rollouts. A rollout that is drawn again gets
 * the ids `<key>#2`, `<key>#3`, ..., so that the lists stay a partition and every id leads back to its rollout.
 */
export function label({
  rollouts,
  candidates,
  description,
  pass,
  seed,
}: {
  rollouts: readonly Rollout[];
  candidates: readonly Candidate[];
  description: EnvironmentDescription;
  pass: number;
  seed: number;
}): LabelPass {
  const labeled = labelRollouts({ rollouts, description });
  const sample = bootstrapSample({ labeled, random: seededRandom('labels', seed, pass) });
  return {
    attempt: pass,
    totals: {
      total_failed: sample.filter(({ passed }) => !passed).length,
      total_passed: sample.filter(({ passed }) => passed).length,
    },
    labels: Object.fromEntries(
      candidates.map(({ name, errorClass }) => {
        if (!errorClass)
          throw new Error(`candidate "${name}": no errorClass; the analyst by rules labels its own candidates only`);
        const ids = (wanted: Label, passed: boolean) =>
          sample.filter((one) => one.labels[errorClass] === wanted && one.passed === passed).map(({ id }) => id);
        const labels = {
          lacking_failed: ids('LACKING', false),
          present_failed: ids('PRESENT', false),
          na_failed: ids('NA', false),
          lacking_passed: ids('LACKING', true),
          present_passed: ids('PRESENT', true),
          na_passed: ids('NA', true),
        };
        return [name, labels];
      }),
    ),
  };
}

function bootstrapSample({ labeled, random }: { labeled: LabeledRollout[]; random: () => number }) {
  const times = new Map<string, number>();
  return labeled.flatMap(() => {
    const drawn = labeled[Math.floor(random() * labeled.length)];
    if (!drawn) return [];
    const time = (times.get(drawn.key) ?? 0) + 1;
    times.set(drawn.key, time);
    return [{ ...drawn, id: time === 1 ? drawn.key : `${drawn.key}#${time}` }];
  });
}
