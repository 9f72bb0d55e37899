/** Step 1 of the method as activities: discover candidates, label them N times, select. */
import { type Analysis, discoverCandidates, labelPass, readCandidates, selectCandidates } from '../analyst/steps';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment } from '../domain/environment';
import { type EnvironmentSpec, kindOf, type KindSpec } from '../domain/kinds';
import { openingOf } from '../domain/messages';
import type { ScoredRollout } from '../domain/rollout';
import { readScored } from '../rollout/read';
import { asking, type Dependencies, working } from './context';
import { leaked } from './leakage';
import { taskText, TEST_TEXTS, testTexts } from './tasks';
import type { Payer } from './types';
import type { SelectionRule } from '../domain/campaign';
import type { SelectedCapability } from '../domain/results';

interface AnalysisInput extends Payer {
  target: EnvironmentSpec;
  analyst: KindSpec;
  rollouts: ArtifactRef;
  seed: number;
}

export async function discover(
  { store, environments, kinds }: Dependencies,
  { rule, campaign, budget, ...input }: AnalysisInput & { rule: SelectionRule },
): Promise<{ ref: ArtifactRef; selects: 'by labels' | 'outright' }> {
  const environment = await environments.paidBy({ campaign, budget, step: TEST_TEXTS }).get(input.target);
  const analysis = await openAnalysis({ store, kinds }, input, environment);
  const ref = await discoverCandidates(analysis, {
    rule,
    quotable: (rollouts) => quotableOf({ store, environment, rollouts }),
    work: () => asking({ campaign, budget, store, role: 'analyst', title: 'discover candidates' }),
  });
  return { ref, selects: analysis.analyst.selects };
}

export async function label(
  { store, environments, kinds }: Dependencies,
  { candidates, pass, campaign, budget, ...input }: AnalysisInput & { candidates: ArtifactRef; pass: number },
): Promise<ArtifactRef> {
  const analysis = await openAnalysis({ store, kinds }, input, await environments.get(input.target));
  const work = () => asking({ campaign, budget, store, role: 'analyst', title: `labeling pass ${pass + 1}` });
  return labelPass(analysis, { candidates, pass, work });
}

export async function select(
  { store }: Pick<Dependencies, 'store'>,
  {
    rollouts,
    ...input
  }: {
    rule: SelectionRule;
    /** What was labeled: trajectories that are all the same select nothing. */
    rollouts: ArtifactRef;
    candidates: ArtifactRef;
    /** Absent: all candidates are selected outright. */
    labels?: ArtifactRef[];
  },
): Promise<{ ref: ArtifactRef; selected: SelectedCapability[] }> {
  const { progress } = working('read the labeling passes');
  const { ref, selection } = await selectCandidates(rolloutsIn(store, rollouts), { ...input, progress });
  const candidates = await readCandidates(store, input.candidates);
  return {
    ref,
    selected: selection.capabilities.flatMap(({ name, votes, selected }) => {
      const candidate = candidates.find((one) => one.name === name);
      return selected && candidate ? [{ candidate, votes }] : [];
    }),
  };
}

const rolloutsIn = (store: ArtifactStore, rollouts: ArtifactRef) => ({
  store,
  rollouts,
  readRollouts: () => readScored({ store, ref: rollouts }),
});

async function openAnalysis(
  { store, kinds }: Pick<Dependencies, 'store' | 'kinds'>,
  input: Omit<AnalysisInput, keyof Payer>,
  environment: Environment,
): Promise<Analysis> {
  const analyst = await kindOf(kinds.analysts, input.analyst).open(input.analyst, undefined);
  return { ...rolloutsIn(store, input.rollouts), analyst, description: await environment.describe(), seed: input.seed };
}

/**
 * Keys of the rollouts that may be examples. They are shown to others (a synthesizer, a router): none may hold a test task's text, not even as
 * a part of its own.
 */
async function quotableOf(o: {
  store: ArtifactStore;
  environment: Environment;
  rollouts: readonly ScoredRollout[];
}): Promise<Set<string>> {
  const { store, environment, rollouts } = o;
  const tests = await testTexts({ store, environment, progress: working('read the test tasks').progress });
  return new Set(
    rollouts.flatMap(({ key, messages }) => (leaked(tests, taskText(openingOf(messages))) === undefined ? [key] : [])),
  );
}
