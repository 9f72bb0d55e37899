/**
 * The analyst by rules: candidates and labels from comparing what was done with what the reference says was needed. The result does not depend on
 * the order of the rollouts; a pass is a function of (rollouts, seed, pass).
 */
import { setImmediate } from 'node:timers/promises';
import {
  type Analyst,
  defineKind,
  type DiscoverInput,
  type Discovery,
  type EnvironmentDescription,
  isSuccess,
  type Label,
  type LabelInput,
  type LabelPass,
  OutsideFailure,
  passFrom,
  type ScoredRollout,
  seededRandom,
} from 'campaign/plugin';
import { policyRulesOf, policyRulesProblem } from '../policy-rules';
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

/** Rollouts that are compared before the event loop has its turn: heartbeats and other activities wait for it. */
const BREATH = 200;

type Comparing = Pick<LabelInput, 'rollouts' | 'description' | 'progress' | 'signal'>;

/** The labels of each rollout. Throws if one has no reference. */
async function compare(o: Comparing): Promise<Map<ScoredRollout, Record<ErrorClass, Label>>> {
  const { rollouts, description, progress, signal } = o;
  const knowledge = toolKnowledge(description.tools);
  // Without rules any text to tell may be a plain fact ("white"): none of them is taken for a refusal.
  const denials = policyRulesOf(description).flatMap((rule) => (rule.kind === 'precondition' ? [rule.denial] : []));
  const labels = new Map<ScoredRollout, Record<ErrorClass, Label>>();
  for (let from = 0; from < rollouts.length; from += BREATH) {
    signal.throwIfAborted();
    for (const rollout of rollouts.slice(from, from + BREATH))
      labels.set(rollout, errorLabels({ rollout, knowledge, denials }));
    progress(labels.size, rollouts.length);
    await setImmediate();
  }
  signal.throwIfAborted();
  return labels;
}

/**
 * Candidates for the classes of error that were seen, the most frequent among the failures first. None if there is no failure or no success:
 * with nothing to contrast, nothing is proposed.
 */
async function discover({ quotable, rule, ...input }: DiscoverInput): Promise<Discovery> {
  const labels = [...(await compare({ ...input, rollouts: byKey(input.rollouts) }))];
  const [passed, failed] = [true, false].map((outcome) => labels.filter(([one]) => isSuccess(one) === outcome));
  if (!passed?.length || !failed?.length) return { candidates: [], faults: [] };
  const examplesOf = (among: typeof labels, errorClass: ErrorClass, label: Label) =>
    among.flatMap(([{ key }, own]) => (own[errorClass] === label && quotable.has(key) ? [key] : [])).slice(0, 2);
  const candidates = errorClasses
    .map((one) => ({ one, lacking: failed.filter(([, own]) => own[one] === 'LACKING').length }))
    .filter(({ lacking }) => lacking > 0)
    .sort((a, b) => b.lacking - a.lacking)
    .slice(0, rule.maxCandidates)
    .map(({ one }) => ({
      name: capabilities[one].name,
      definition: capabilities[one].definition,
      examples: [...examplesOf(failed, one, 'LACKING'), ...examplesOf(passed, one, 'PRESENT')],
    }));
  return { candidates, faults: [] };
}

/** One labeling pass over a random half of the rollouts: the labels are deterministic, so passes differ in what they look at. */
async function label({ candidates, pass, seed, ...input }: LabelInput): Promise<LabelPass> {
  const classes = new Map(candidates.map(({ name }) => [name, classOf(name)]));
  const half = randomHalf({ rollouts: input.rollouts, seed, pass });
  const labels = await compare({ ...input, rollouts: half });
  return passFrom({
    attempt: pass,
    rollouts: half,
    names: [...classes.keys()],
    labelOf: (rollout, name) => labels.get(rollout)?.[classes.get(name) as ErrorClass],
  });
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

/** Artifacts hold rollouts in the order in which they finished. */
const byKey = (rollouts: readonly ScoredRollout[]): ScoredRollout[] =>
  [...rollouts].sort((a, b) => (a.key < b.key ? -1 : 1));

/**
 * What one labeling pass looks at: a random half of the rollouts without replacement, sorted by key; of an odd number the larger half. A mean
 * over m of n drawn so has the variance S^2 (1/m - 1/n), which at m = n/2 is S^2/n: the spread between passes is a bootstrap's.
 */
export function randomHalf(o: { rollouts: readonly ScoredRollout[]; seed: number; pass: number }): ScoredRollout[] {
  const random = seededRandom('labels', o.seed, o.pass);
  const drawn = byKey(o.rollouts)
    .map((rollout) => ({ rollout, place: random() }))
    .sort((a, b) => a.place - b.place);
  return byKey(drawn.slice(0, Math.ceil(drawn.length / 2)).map(({ rollout }) => rollout));
}
