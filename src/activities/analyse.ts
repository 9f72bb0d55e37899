/** Step 1 of the method: discover candidates, label them N times, select, look for a composite. Invariant: what was found is looked up before it is computed. */
import { candidatesKey, checkedPass, labelsKey, type Analyst } from '../analyst/analyst';
import { digest } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { requireDifference } from '../domain/transcript';
import { discoverySchema, labelPassSchema, selectionSchema, type LabelPass } from '../domain/capability';
import type { Environment } from '../domain/environment';
import { kindOf, type KindSpec } from '../domain/kinds';
import type { ScoredRollout } from '../domain/rollout';
import { openingOf } from '../domain/messages';
import { selectCapabilities, selectOutright } from '../domain/selection';
import { readScored } from '../rollout/read';
import { asking, type Dependencies, working } from './context';
import { keptJson, readJson } from '../artifacts/json';
import { leaked } from './leakage';
import { taskText, testTexts } from './tasks';
import type { AnalysisActivities, ControlActivities } from './types';

export function createAnalysis({
  store,
  environments,
  kinds,
}: Dependencies): Pick<AnalysisActivities, 'discover' | 'label'> & Pick<ControlActivities, 'select'> {
  const open = async (spec: KindSpec): Promise<Analyst> => kindOf(kinds.analysts, spec).open(spec, undefined);
  const candidatesOf = (ref: ArtifactRef) => readJson(store, ref, discoverySchema).then(({ candidates }) => candidates);

  async function passesOf(labels: readonly ArtifactRef[]): Promise<LabelPass[]> {
    const { progress } = working('read the labeling passes');
    const passes: LabelPass[] = [];
    for (const pass of labels) progress(passes.push(await readJson(store, pass, labelPassSchema)), labels.length);
    return passes;
  }

  return {
    async discover({ target, analyst: spec, rule, rollouts: ref, seed, ...payer }) {
      const analyst = await open(spec);
      const environment = await environments.get(target);
      const description = await environment.describe();
      const key = candidatesKey({ analyst, rollouts: ref, version: description.version, seed, rule });
      const found = await keptJson(store, { key, producer: 'discover', inputs: [ref] }, async () => {
        const rollouts = await readScored({ store, ref });
        const quotable = await quotableOf({ store, environment, rollouts });
        const work = asking({ ...payer, store, title: 'discover candidates' });
        return analyst.discover({ rollouts, quotable, description, rule, seed, ...work });
      });
      return { ref: found, selects: analyst.selects };
    },

    async label({ target, analyst: spec, rollouts, candidates: ref, pass, seed, ...payer }) {
      const analyst = await open(spec);
      const description = await (await environments.get(target)).describe();
      const key = labelsKey({ analyst, rollouts, candidates: ref, version: description.version, pass, seed });
      return keptJson(store, { key, producer: 'label', inputs: [rollouts, ref] }, async () => {
        const candidates = await candidatesOf(ref);
        const scored = await readScored({ store, ref: rollouts });
        const work = asking({ ...payer, store, title: `labeling pass ${pass + 1}` });
        const labels = await analyst.label({ rollouts: scored, candidates, description, pass, seed, ...work });
        return checkedPass(labels, candidates);
      });
    },

    async select({ rule, rollouts, candidates: ref, labels }) {
      const candidates = await candidatesOf(ref);
      const key = `selection/${digest({ version: '3', rule, rollouts, ref, labels })}`;
      const inputs = [rollouts, ref, ...(labels ?? [])];
      const stored = await keptJson(store, { key, producer: 'select', inputs }, async () => {
        const scored = await readScored({ store, ref: rollouts });
        if (!labels) return requireDifference(selectOutright(candidates), scored);
        return requireDifference(selectCapabilities({ passes: await passesOf(labels), rule }), scored);
      });
      const { capabilities } = await readJson(store, stored, selectionSchema);
      return {
        ref: stored,
        selected: capabilities.flatMap(({ name, votes, selected }) => {
          const candidate = candidates.find((c) => c.name === name);
          return selected && candidate ? [{ candidate, votes }] : [];
        }),
      };
    },
  };
}

/** Keys of those that may be examples. They are shown to others (a synthesizer, a router): none may hold a test task's text, not even as a part of its own. */
async function quotableOf(o: {
  store: ArtifactStore;
  environment: Environment;
  rollouts: readonly ScoredRollout[];
}): Promise<Set<string>> {
  const { rollouts, ...asked } = o;
  const tests = await testTexts({ ...asked, progress: working('read the test tasks').progress });
  return new Set(
    rollouts.flatMap(({ key, messages }) => (leaked(tests, taskText(openingOf(messages))) === undefined ? [key] : [])),
  );
}
