/**
 * The steps of an analysis, for whoever runs them: the activities of a campaign, and `campaign analyse` in its own process. Invariants: a step
 * looks up its result by what it is made of before it makes it, so that each finds what the other paid for; a labeling pass is used as it is or
 * not at all.
 */
import { digest } from '../artifacts/hash';
import { keptJson, readJson } from '../artifacts/json';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { SelectionRule } from '../domain/campaign';
import { discoverySchema, labelPassSchema, selectionSchema } from '../domain/capability';
import type { Candidate, LabelPass, Selection } from '../domain/capability';
import type { EnvironmentDescription } from '../domain/environment';
import { OutsideFailure } from '../domain/failures';
import type { ScoredRollout } from '../domain/rollout';
import { checkPartition, selectCapabilities, selectOutright } from '../domain/selection';
import { requireDifference } from '../domain/transcript';
import type { Work } from '../domain/work';
import type { Ledger } from '../language-model/types';
import type { Analyst, DiscoverInput } from './analyst';

/** The rollouts that are analysed, as an artifact and read where they are needed. */
interface AnalysedRollouts {
  store: ArtifactStore;
  rollouts: ArtifactRef;
  readRollouts: () => Promise<readonly ScoredRollout[]>;
}

export interface Analysis extends AnalysedRollouts {
  analyst: Analyst;
  description: EnvironmentDescription;
  seed: number;
}

type Asking = Work & { ledger: Ledger };
type Keyed = Pick<Analysis, 'rollouts' | 'description' | 'seed'> & {
  analyst: Pick<Analyst, 'identity' | 'ignoresSeed'>;
};

export function candidatesKey(o: Keyed & Pick<DiscoverInput, 'rule'>): string {
  const { analyst, rollouts: ref, description, seed, rule } = o;
  const inputs = { form: '2', maker: analyst.identity, ref, version: description.version };
  return `candidates/${digest({ ...inputs, maxCandidates: rule.maxCandidates, ...(!analyst.ignoresSeed && { seed }) })}`;
}

export function labelsKey(o: Keyed & { candidates: ArtifactRef; pass: number }): string {
  const { analyst, rollouts, candidates: ref, description, pass, seed } = o;
  return `labels/${digest({ maker: analyst.identity, rollouts, ref, version: description.version, pass, seed })}`;
}

/** Discovery. `quotable`: which of the rollouts may be named as examples. */
export async function discoverCandidates(
  analysis: Analysis,
  o: Pick<DiscoverInput, 'rule'> & {
    quotable: (rollouts: readonly ScoredRollout[]) => Promise<ReadonlySet<string>>;
    work: () => Asking;
  },
): Promise<ArtifactRef> {
  const { store, analyst, description, seed } = analysis;
  const key = candidatesKey({ ...analysis, rule: o.rule });
  return keptJson(store, { key, producer: 'discover', inputs: [analysis.rollouts] }, async () => {
    const rollouts = await analysis.readRollouts();
    const quotable = await o.quotable(rollouts);
    return analyst.discover({ rollouts, quotable, description, rule: o.rule, seed, ...o.work() });
  });
}

export const readCandidates = async (store: ArtifactStore, ref: ArtifactRef): Promise<Candidate[]> =>
  (await readJson(store, ref, discoverySchema)).candidates;

/** One labeling pass over all candidates. */
export async function labelPass(
  analysis: Analysis,
  o: { candidates: ArtifactRef; pass: number; work: () => Asking },
): Promise<ArtifactRef> {
  const { store, analyst, description, seed, rollouts: ref } = analysis;
  const { pass } = o;
  const key = labelsKey({ ...analysis, ...o });
  return keptJson(store, { key, producer: 'label', inputs: [ref, o.candidates] }, async () => {
    const candidates = await readCandidates(store, o.candidates);
    const rollouts = await analysis.readRollouts();
    const labels = await analyst.label({ rollouts, description, candidates, pass, seed, ...o.work() });
    return checkedPass(labels, candidates);
  });
}

function checkedPass(pass: LabelPass, candidates: readonly Candidate[]): LabelPass {
  const [problem] = checkPartition(pass);
  if (problem !== undefined) throw new OutsideFailure('LabelsInvalid', problem);
  const [wanted, labeled] = [candidates.map(({ name }) => name), Object.keys(pass.labels)].map((names) =>
    names.sort().join(', '),
  );
  if (wanted !== labeled)
    throw new OutsideFailure('LabelsInvalid', `the pass labels ${labeled}; the candidates are ${wanted}`);
  return pass;
}

/** Selection; without `labels` all candidates are selected as they are. */
export async function selectCandidates(
  { store, rollouts, readRollouts }: AnalysedRollouts,
  o: { rule: SelectionRule; candidates: ArtifactRef; labels?: readonly ArtifactRef[]; progress: Work['progress'] },
): Promise<{ ref: ArtifactRef; selection: Selection }> {
  const { rule, candidates, labels } = o;
  const key = `selection/${digest({ version: '3', rule, rollouts, ref: candidates, labels })}`;
  const inputs = [rollouts, candidates, ...(labels ?? [])];
  const ref = await keptJson(store, { key, producer: 'select', inputs }, async () => {
    const passes: LabelPass[] = [];
    for (const pass of labels ?? [])
      o.progress(passes.push(await readJson(store, pass, labelPassSchema)), labels?.length ?? 0);
    const selection = labels
      ? selectCapabilities({ passes, rule })
      : selectOutright(await readCandidates(store, candidates));
    return requireDifference(selection, await readRollouts());
  });
  return { ref, selection: await readJson(store, ref, selectionSchema) };
}
