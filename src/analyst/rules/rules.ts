/**
 * The analyst by rules: candidates and labels from comparing what was done with what the reference says was needed. Invariants: the result
 * does not depend on the order of the rollouts; a pass is a function of (rollouts, seed, pass).
 */
import { setImmediate } from 'node:timers/promises';
import type { Discovery, Label, LabelPass } from '../../domain/capability';
import type { EnvironmentDescription } from '../../domain/environment';
import { OutsideFailure } from '../../domain/failures';
import { defineKind } from '../../domain/kinds';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { seededRandom } from '../../domain/statistics';
import { policyRulesOf, policyRulesProblem } from '../../environments/policy-rules';
import { type Analyst, type DiscoverInput, type LabelInput, passFrom } from '../analyst';
import { capabilities, type ErrorClass, errorClasses, errorClassOf, errorLabels } from './errors';
import { toolKnowledge } from './tools';

export const rules = defineKind({
  kind: 'rules',
  version: '2',
  options: {},
  open: (_, identity): Analyst => ({ identity, ignoresSeed: true, selects: 'by labels', unsuited, discover, label }),
});

function unsuited(description: EnvironmentDescription): string | undefined {
  if (description.hasReference) return policyRulesProblem(description);
  return (
    `analyst.kind is "rules": it compares trajectories with reference actions, which "${description.name}" does not tell (hasReference is false); ` +
    'write analyst: {kind: llm, url: URL, model: NAME} for a language model that needs none (docs/language-models.md), ' +
    'or {kind: given, capabilities: FILE}, or take a target that tells reference actions'
  );
}

interface LabeledRollout {
  key: string;
  passed: boolean;
  labels: Record<ErrorClass, Label>;
}

/** Rollouts that are compared before the event loop has its turn: heartbeats and other activities wait for it. */
const BREATH = 200;

/** Labels of the rollouts, in their order. Throws if one has no reference. */
async function labelRollouts({
  rollouts,
  description,
  progress,
  signal,
}: Pick<LabelInput, 'description' | 'progress' | 'signal'> & {
  rollouts: readonly ScoredRollout[];
}): Promise<LabeledRollout[]> {
  const knowledge = toolKnowledge(description.tools);
  // Without rules any text to tell may be a plain fact ("white"): none of them is taken for a refusal.
  const denials = policyRulesOf(description).flatMap((rule) => (rule.kind === 'precondition' ? [rule.denial] : []));
  const labeled: LabeledRollout[] = [];
  for (let from = 0; from < rollouts.length; from += BREATH) {
    signal.throwIfAborted();
    for (const rollout of rollouts.slice(from, from + BREATH)) {
      const labels = errorLabels({ rollout, knowledge, denials });
      labeled.push({ key: rollout.key, passed: isSuccess(rollout), labels });
    }
    progress(labeled.length, rollouts.length);
    await setImmediate();
  }
  signal.throwIfAborted();
  return labeled;
}

/**
 * Candidates for the classes of error that were seen, the most frequent among the failures first. None if there is no failure or no success:
 * with nothing to contrast, nothing is proposed.
 */
async function discover({ rollouts, quotable, rule, ...work }: DiscoverInput): Promise<Discovery> {
  const labeled = await labelRollouts({ rollouts: byKey(rollouts), ...work });
  if (!labeled.some(({ passed }) => passed) || labeled.every(({ passed }) => passed))
    return { candidates: [], faults: [] };
  const withLabel = (errorClass: ErrorClass, label: Label, passed: boolean) =>
    labeled.filter((one) => one.labels[errorClass] === label && one.passed === passed).map(({ key }) => key);
  const shown = (keys: string[]) => keys.filter((key) => quotable.has(key)).slice(0, 2);
  const candidates = errorClasses
    .map((errorClass) => ({
      errorClass,
      lacking: withLabel(errorClass, 'LACKING', false),
      present: withLabel(errorClass, 'PRESENT', true),
    }))
    .filter(({ lacking }) => lacking.length > 0)
    .sort((a, b) => b.lacking.length - a.lacking.length)
    .slice(0, rule.maxCandidates)
    .map(({ errorClass, lacking, present }) => ({
      name: capabilities[errorClass].name,
      definition: capabilities[errorClass].definition,
      examples: [...shown(lacking), ...shown(present)],
    }));
  return { candidates, faults: [] };
}

/** One labeling pass over a random half of the rollouts: the labels are deterministic, so passes differ in what they look at. */
async function label({ rollouts, candidates, pass, seed, ...work }: LabelInput): Promise<LabelPass> {
  const classes = new Map(candidates.map(({ name }) => [name, classOf(name)]));
  const half = randomHalf({ rollouts, seed, pass });
  const labeled = new Map((await labelRollouts({ rollouts: half, ...work })).map(({ key, labels }) => [key, labels]));
  const labelOf = ({ key }: ScoredRollout, name: string) => labeled.get(key)?.[classes.get(name) ?? classOf(name)];
  return passFrom({ attempt: pass, rollouts: half, names: [...classes.keys()], labelOf });
}

function classOf(name: string): ErrorClass {
  const errorClass = errorClassOf(name);
  if (errorClass) return errorClass;
  const known = errorClasses.map((one) => capabilities[one].name).join(', ');
  throw new OutsideFailure(
    'BadInput',
    `candidate "${name}": no class of error is named so; the analyst by rules labels ${known}`,
  );
}

/** Sorted by key: artifacts hold rollouts in the order in which they finished. */
export const byKey = (rollouts: readonly ScoredRollout[]): ScoredRollout[] =>
  [...rollouts].sort((a, b) => (a.key < b.key ? -1 : 1));

/**
 * What one labeling pass looks at: a random half of the rollouts without replacement, sorted by key; of an odd number the larger half. A mean
 * over m of n drawn so has the variance S^2 (1/m - 1/n), which at m = n/2 is S^2/n: the spread between passes is a bootstrap's.
 */
export function randomHalf({
  rollouts,
  seed,
  pass,
}: {
  rollouts: readonly ScoredRollout[];
  seed: number;
  pass: number;
}): ScoredRollout[] {
  const random = seededRandom('labels', seed, pass);
  const shuffled = byKey(rollouts)
    .map((rollout) => ({ rollout, place: random() }))
    .sort((a, b) => a.place - b.place);
  return byKey(shuffled.slice(0, Math.ceil(shuffled.length / 2)).map(({ rollout }) => rollout));
}
