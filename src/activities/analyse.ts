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
import type { AnalysisActivities, ControlActivities } from './types';

export function createAnalysis({
  store,
  environments,
  kinds,
}: Dependencies): Pick<AnalysisActivities, 'discover' | 'label'> & Pick<ControlActivities, 'select'> {
  const rolloutsIn = (rollouts: ArtifactRef) => ({
    ...{ store, rollouts, readRollouts: () => readScored({ store, ref: rollouts }) },
  });

  async function open(
    input: { target: EnvironmentSpec; analyst: KindSpec; rollouts: ArtifactRef; seed: number },
    environment: Environment,
  ): Promise<Analysis> {
    const analyst = await kindOf(kinds.analysts, input.analyst).open(input.analyst, undefined);
    return { ...rolloutsIn(input.rollouts), analyst, description: await environment.describe(), seed: input.seed };
  }

  return {
    async discover({ rule, campaign, budget, ...input }) {
      const environment = await environments.paidBy({ campaign, budget, step: TEST_TEXTS }).get(input.target);
      const analysis = await open(input, environment);
      const ref = await discoverCandidates(analysis, {
        rule,
        quotable: (rollouts) => quotableOf({ store, environment, rollouts }),
        work: () => asking({ campaign, budget, store, role: 'analyst', title: 'discover candidates' }),
      });
      return { ref, selects: analysis.analyst.selects };
    },

    async label({ candidates, pass, campaign, budget, ...input }) {
      const analysis = await open(input, await environments.get(input.target));
      const work = () => asking({ campaign, budget, store, role: 'analyst', title: `labeling pass ${pass + 1}` });
      return labelPass(analysis, { candidates, pass, work });
    },

    async select({ rollouts, ...input }) {
      const { progress } = working('read the labeling passes');
      const { ref, selection } = await selectCandidates(rolloutsIn(rollouts), { ...input, progress });
      const candidates = await readCandidates(store, input.candidates);
      return {
        ref,
        selected: selection.capabilities.flatMap(({ name, votes, selected }) => {
          const candidate = candidates.find((one) => one.name === name);
          return selected && candidate ? [{ candidate, votes }] : [];
        }),
      };
    },
  };
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
