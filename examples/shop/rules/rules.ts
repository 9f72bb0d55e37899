/**
 * The analyst by rules: candidates and labels from comparing what was done with what the reference says was needed. The result does not depend on
 * the order of the rollouts; a pass is a function of (rollouts, seed, pass).
 */
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
} from 'trace-campaign/plugin';
import { capabilities, type Capability, errorKinds, errorLabels } from './errors';

export const rules = defineKind({
  kind: 'rules',
  version: '2',
  options: {},
  open: (_, identity): Analyst => ({ identity, ignoresSeed: true, selects: 'by labels', unsuited, discover, label }),
});

const unsuited = ({ name, hasReference }: EnvironmentDescription): string | undefined =>
  name === 'shop' && hasReference
    ? undefined
    : `analyst.kind is "rules": it reads conversations of the shop alone, not of "${name}"; ` +
      'write analyst: {kind: llm, url: URL, model: NAME} for a language model (docs/language-models.md), ' +
      'or {kind: given, capabilities: FILE}';

type Comparing = Pick<LabelInput, 'rollouts' | 'progress' | 'signal'>;

/** The labels of each rollout. Throws if one has no reference. */
function compare({ rollouts, progress, signal }: Comparing): Map<ScoredRollout, Record<Capability, Label>> {
  signal.throwIfAborted();
  const labels = new Map(rollouts.map((rollout) => [rollout, errorLabels(rollout)]));
  progress(labels.size, rollouts.length);
  return labels;
}

/**
 * Candidates for the classes of error that were seen, the most frequent among the failures first. None if there is no failure or no success:
 * with nothing to contrast, nothing is proposed.
 */
async function discover({ quotable, rule, ...input }: DiscoverInput): Promise<Discovery> {
  const labels = [...compare({ ...input, rollouts: byKey(input.rollouts) })];
  const [passed, failed] = [true, false].map((outcome) => labels.filter(([one]) => isSuccess(one) === outcome));
  if (!passed?.length || !failed?.length) return { candidates: [], faults: [] };
  const examplesOf = (among: typeof labels, name: Capability, label: Label) =>
    among.flatMap(([{ key }, own]) => (own[name] === label && quotable.has(key) ? [key] : [])).slice(0, 2);
  const candidates = capabilities
    .map((name) => ({ name, lacking: failed.filter(([, own]) => own[name] === 'LACKING').length }))
    .filter(({ lacking }) => lacking > 0)
    .sort((a, b) => b.lacking - a.lacking)
    .slice(0, rule.maxCandidates)
    .map(({ name }) => ({
      name,
      definition: errorKinds[name].definition,
      examples: [...examplesOf(failed, name, 'LACKING'), ...examplesOf(passed, name, 'PRESENT')],
    }));
  return { candidates, faults: [] };
}

/** One labeling pass over a random half of the rollouts: the labels are deterministic, so passes differ in what they look at. */
async function label({ candidates, pass, seed, ...input }: LabelInput): Promise<LabelPass> {
  const names = candidates.map(({ name }) => name);
  const unknown = names.find((name) => !Object.hasOwn(errorKinds, name));
  if (unknown !== undefined)
    throw new OutsideFailure(
      'BadInput',
      `candidate "${unknown}": no class of error is named so; the analyst by rules labels ${capabilities.join(', ')}`,
    );
  const half = randomHalf({ rollouts: input.rollouts, seed, pass });
  const labels = compare({ ...input, rollouts: half });
  const labelOf = (rollout: ScoredRollout, name: string) => labels.get(rollout)?.[name as Capability];
  return passFrom({ attempt: pass, rollouts: half, names, labelOf });
}

/** Artifacts hold rollouts in the order in which they finished. */
const byKey = (rollouts: readonly ScoredRollout[]): ScoredRollout[] =>
  [...rollouts].sort((a, b) => (a.key < b.key ? -1 : 1));

/**
 * Draws the rollouts of one labeling pass: a random half without replacement (the larger half of an odd number), sorted by key. A mean over m of n drawn
 * in this way has the variance S^2 (1/m - 1/n), which at m = n/2 is S^2/n: the spread between passes is a bootstrap's.
 */
export function randomHalf(o: { rollouts: readonly ScoredRollout[]; seed: number; pass: number }): ScoredRollout[] {
  const random = seededRandom('labels', o.seed, o.pass);
  const drawn = byKey(o.rollouts)
    .map((rollout) => ({ rollout, place: random() }))
    .sort((a, b) => a.place - b.place);
  return byKey(drawn.slice(0, Math.ceil(drawn.length / 2)).map(({ rollout }) => rollout));
}
