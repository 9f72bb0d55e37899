/** Step 1 of the method as activities: discover candidates, label them N times, select. */
import { type Analysis, discoverCandidates, labelPass, selectCandidates } from '../analyst/steps';
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { SelectionRule } from '../domain/campaign';
import type { Environment } from '../domain/environment';
import { type EnvironmentSpec, kindOf, type KindSpec } from '../domain/kinds';
import { openingOf } from '../domain/messages';
import type { SelectedCapability } from '../domain/results';
import type { ScoredRollout } from '../domain/rollout';
import { readScored } from '../rollout/read';
import type { Dependencies } from './context';
import { working } from './heartbeat';
import { asking } from './ledger';
import { leaked } from './leakage';
import { taskText, TEST_TEXTS, testTexts } from './tasks';
import type { Payer } from './types';

export interface AnalysisInput extends Payer {
  target: EnvironmentSpec;
  analyst: KindSpec;
  rollouts: ArtifactRef;
  seed: number;
}

export async function discover(
  deps: Dependencies,
  { rule, ...input }: AnalysisInput & { rule: SelectionRule },
): Promise<{ ref: ArtifactRef; selects: 'by labels' | 'outright' }> {
  const { store } = deps;
  const { campaign, budget, target } = input;
  const environment = await deps.environments.paidBy({ campaign, budget, step: TEST_TEXTS }).get(target);
  const analysis = await openAnalysis(deps, input, environment);
  const ref = await discoverCandidates(analysis, {
    rule,
    quotable: (rollouts) => quotableOf({ store, environment, rollouts }),
    work: () => asking({ campaign, budget, store, role: 'analyst', title: 'discover candidates' }),
  });
  return { ref, selects: analysis.analyst.selects };
}

export async function label(
  deps: Dependencies,
  { candidates, pass, ...input }: AnalysisInput & { candidates: ArtifactRef; pass: number },
): Promise<ArtifactRef> {
  const { campaign, budget, target } = input;
  const analysis = await openAnalysis(deps, input, await deps.environments.get(target));
  const payer = { campaign, budget, store: deps.store, role: 'analyst' as const };
  const work = () => asking({ ...payer, title: `labeling pass ${pass + 1}` });
  return labelPass(analysis, { candidates, pass, work });
}

export async function select(
  { store }: Pick<Dependencies, 'store'>,
  { rollouts, ...input }: Omit<Parameters<typeof selectCandidates>[1], 'progress'> & { rollouts: ArtifactRef },
): Promise<{ ref: ArtifactRef; selected: SelectedCapability[] }> {
  const { progress } = working('read the labeling passes');
  const { ref, selected } = await selectCandidates(analysed(store, rollouts), { ...input, progress });
  // Citations quote conversations, which Temporal must not hold: `synthesize` reads them from `candidates`.
  return { ref, selected: selected.map((one) => ({ ...one, candidate: { ...one.candidate, citations: undefined } })) };
}

const analysed = (store: ArtifactStore, rollouts: ArtifactRef) => ({
  store,
  rollouts,
  readRollouts: () => readScored({ store, ref: rollouts }),
});

async function openAnalysis(
  { store, kinds }: Pick<Dependencies, 'store' | 'kinds'>,
  { analyst: spec, rollouts, seed }: AnalysisInput,
  environment: Environment,
): Promise<Analysis> {
  const analyst = await kindOf(kinds.analysts, spec).open(spec, undefined);
  return { ...analysed(store, rollouts), analyst, description: await environment.describe(), seed };
}

/** Returns the keys of rollouts that may become examples in later prompts: their task text must not contain a test task's text. */
async function quotableOf(o: {
  store: ArtifactStore;
  environment: Environment;
  rollouts: readonly ScoredRollout[];
}): Promise<Set<string>> {
  const tests = await testTexts({ ...o, progress: working('read the test tasks').progress });
  const isQuotable = ({ messages }: ScoredRollout) => leaked(tests, taskText(openingOf(messages))) === undefined;
  return new Set(o.rollouts.filter(isQuotable).map(({ key }) => key));
}
