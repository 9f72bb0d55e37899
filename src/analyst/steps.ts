/**
 * The steps of an analysis. The activities of a campaign run them, and so does `campaign analyse` in its own process. A step looks up its result by
 * its inputs first, so that each of the two reuses what the other paid for. A labeling pass is used whole or not at all.
 */
import { digest } from '../store/hash';
import { keptJson, readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { SelectionRule } from '../domain/campaign';
import {
  discoverySchema,
  labelPassSchema,
  selectionSchema,
  type Candidate,
  type LabelPass,
} from '../domain/capability';
import { OutsideFailure } from '../domain/failures';
import type { SelectedCapability } from '../domain/results';
import type { ScoredRollout } from '../domain/rollout';
import { partitionProblem, selectCapabilities, selectOutright } from '../domain/selection';
import type { Work } from '../domain/work';
import type { Analyst, DiscoverInput } from './analyst';

/** The rollouts that are analysed, as an artifact and read where they are needed. */
interface AnalysedRollouts {
  store: ArtifactStore;
  rollouts: ArtifactRef;
  readRollouts: () => Promise<readonly ScoredRollout[]>;
}

export interface Analysis extends AnalysedRollouts, Pick<DiscoverInput, 'description' | 'seed'> {
  analyst: Analyst;
}

/** Made where the step is not done already. */
type OpenWork = () => Pick<DiscoverInput, 'progress' | 'signal' | 'ledger'>;

function candidatesKey(analysis: Analysis, { maxCandidates }: DiscoverInput['rule']): string {
  const { analyst, rollouts: ref, description, seed } = analysis;
  const inputs = { form: '2', maker: analyst.identity, ref, version: description.version, maxCandidates };
  return `candidates/${digest({ ...inputs, ...(!analyst.ignoresSeed && { seed }) })}`;
}

function labelsKey(analysis: Analysis, ref: ArtifactRef, pass: number): string {
  const { analyst, rollouts, description, seed } = analysis;
  return `labels/${digest({ maker: analyst.identity, rollouts, ref, version: description.version, pass, seed })}`;
}

/** Discovery. `quotable`: which of the rollouts may be named as examples. */
export async function discoverCandidates(
  analysis: Analysis,
  o: Pick<DiscoverInput, 'rule' | 'failuresAlone'> & {
    quotable: (rollouts: readonly ScoredRollout[]) => Promise<ReadonlySet<string>>;
    work: OpenWork;
  },
): Promise<ArtifactRef> {
  const { store, analyst, description, seed } = analysis;
  const { rule, failuresAlone } = o;
  const made = { key: candidatesKey(analysis, rule), producer: 'discover', inputs: [analysis.rollouts] };
  return keptJson(store, made, async () => {
    const rollouts = await analysis.readRollouts();
    const quotable = await o.quotable(rollouts);
    return analyst.discover({ rollouts, quotable, description, rule, failuresAlone, seed, ...o.work() });
  });
}

export const readCandidates = async (store: ArtifactStore, ref: ArtifactRef): Promise<Candidate[]> =>
  (await readJson(store, ref, discoverySchema)).candidates;

/** One labeling pass over all candidates. */
export async function labelPass(
  analysis: Analysis,
  { candidates: ref, pass, work }: { candidates: ArtifactRef; pass: number; work: OpenWork },
): Promise<ArtifactRef> {
  const { store, analyst, description, seed } = analysis;
  const made = { key: labelsKey(analysis, ref, pass), producer: 'label', inputs: [analysis.rollouts, ref] };
  return keptJson(store, made, async () => {
    const candidates = await readCandidates(store, ref);
    const rollouts = await analysis.readRollouts();
    const labels = await analyst.label({ rollouts, description, candidates, pass, seed, ...work() });
    requirePartition(labels, candidates);
    return labels;
  });
}

/** @throws LabelsInvalid where the lists are no partition of the trajectories, or are not of the candidates. */
function requirePartition(pass: LabelPass, candidates: readonly Candidate[]): void {
  const listed = (names: readonly string[]) => [...names].sort().join(', ');
  const [wanted, labeled] = [listed(candidates.map(({ name }) => name)), listed(Object.keys(pass.labels))];
  const other = wanted === labeled ? undefined : `the pass labels ${labeled}; the candidates are ${wanted}`;
  const problem = partitionProblem(pass) ?? other;
  if (problem !== undefined) throw new OutsideFailure('LabelsInvalid', problem);
}

/** Selection; without `labels` all candidates are selected as they are. */
export async function selectCandidates(
  { store, rollouts }: AnalysedRollouts,
  o: { rule: SelectionRule; candidates: ArtifactRef; labels?: readonly ArtifactRef[]; progress?: Work['progress'] },
): Promise<{ ref: ArtifactRef; selected: SelectedCapability[] }> {
  const { rule, candidates, labels } = o;
  const key = `selection/${digest({ version: '4', rule, rollouts, ref: candidates, labels })}`;
  const inputs = [rollouts, candidates, ...(labels ?? [])];
  const ref = await keptJson(store, { key, producer: 'select', inputs }, async () => {
    const passes: LabelPass[] = [];
    for (const pass of labels ?? []) {
      passes.push(await readJson(store, pass, labelPassSchema));
      o.progress?.(passes.length, inputs.length - 2);
    }
    return labels ? selectCapabilities({ passes, rule }) : selectOutright(await readCandidates(store, candidates));
  });
  const { capabilities } = await readJson(store, ref, selectionSchema);
  const found = await readCandidates(store, candidates);
  return {
    ref,
    selected: capabilities.flatMap(({ name, votes, selected }) => {
      const candidate = found.find((one) => one.name === name);
      return selected && candidate ? [{ candidate, votes }] : [];
    }),
  };
}
