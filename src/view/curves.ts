/** The curves of the live page, made from the store: the reward of every training by optimizer step, and how many rollouts there are. */
import type { ArtifactStore } from '../store/store';
import { getOrMake } from '../domain/maps';
import { mean } from '../domain/statistics';
import { metricsLine } from '../report/build/evidence';
import { curvesOf } from '../report/build/training';
import type { LearnerCurves } from '../report/capability-model';
import { type Marker, Markers, trainingPath } from '../training/markers';
import type { Curves, TrainingCurve } from './api';
import type { IndexedBatch, RolloutIndex } from './rollouts';

interface CurvesOptions {
  store: ArtifactStore;
  campaign: string;
  /** Index of the campaign's rollouts, refreshed by the caller. */
  index: RolloutIndex;
}

/** Returns a function that computes the present curves. Trainings that were reused from the store have their curves in the report. */
export function createCurves({ store, campaign, index }: CurvesOptions) {
  const known = new Map<string, Markers>();

  /** The markers of the campaign's trainings, the latest last. */
  async function begun(): Promise<Markers[]> {
    const listed = await store.files.list(trainingPath(campaign, ''));
    const ids = listed.sort((a, b) => a.changedMs - b.changedMs).map(({ path }) => path.split('/')[2]!);
    return Promise.all(
      [...new Set(ids)].map(async (id) => {
        const markers = getOrMake(known, id, () => new Markers(store, trainingPath(campaign, id)));
        await markers.read();
        return markers;
      }),
    );
  }

  return async (): Promise<Curves> => {
    const heldOut = new Map<string, Map<number, number>>();
    for (const batch of index.batches()) {
      const step = heldOutStep(batch);
      const { of, rewards } = batch;
      if (step !== undefined && rewards.length > 0)
        getOrMake(heldOut, of, () => new Map<number, number>()).set(step, mean(rewards));
    }
    // A later training replaces an earlier one of the same name.
    const byName = new Map<string, LearnerCurves>();
    for (const { line } of await begun()) if (line.length > 0) byName.set(line.at(-1)!.name, learnerCurves(line));
    const trainings = [...byName].flatMap(([name, curves]): TrainingCurve[] => {
      const means = [...(heldOut.get(name) ?? [])].sort(([a], [b]) => a - b);
      return curves.points.length > 0
        ? [{ name, curves, heldOut: means.map(([step, value]) => ({ step, value })) }]
        : [];
    });
    const once = index.all().filter(({ isRepeated }) => !isRepeated);
    const broken = once.filter(({ outcome }) => outcome === 'broken').length;
    return { trainings, ...(once.length > 0 && { rollouts: { scored: once.length - broken, broken } }) };
  };
}

/** Returns the curves of the lines that are whole. */
function learnerCurves(markers: readonly Marker[]): LearnerCurves {
  const values = markers.flatMap((marker) => marker.metrics).flatMap((line) => metricsLine.safeParse(line).data ?? []);
  // The last line of a step that was done again counts.
  const bySteps = new Map(values.map((value) => [value.step, value]));
  return curvesOf([...bySteps.values()].sort((a, b) => a.step - b.step));
}

/** Returns the step of the policy that a held-out batch evaluates: 0 for the start of a training, undefined for other batches. */
function heldOutStep({ of, what }: IndexedBatch): number | undefined {
  const [, step, start] = /^held out(?: at step (\d+)|(, [^,]*))$/.exec(what) ?? [];
  if (of === '' || (step === undefined && start === undefined)) return undefined;
  return Number(step ?? 0);
}
