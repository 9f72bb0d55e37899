/** The curves of the live page, made from the store: the reward of every training by optimizer step, and how many rollouts there are. */
import { readJson, type ArtifactStore } from '../store/store';
import { keysOf } from '../store/campaign-index';
import { isFailure } from '../domain/failures';
import { trainingResultSchema } from '../domain/results';
import { mean } from '../domain/statistics';
import { type MetricsLine, metricsLine } from '../report/build/evidence';
import { curvesOf } from '../report/build/training';
import { Markers, trainingPath, withBranches } from '../training/markers';
import { type IndexedBatch, purposeOf, type RolloutIndex, titleOf } from './rollouts';

type LearnerCurves = ReturnType<typeof curvesOf>;

export interface TrainingCurve {
  /** The capability or arm. */
  name: string;
  curves: LearnerCurves;
  /** Held-out mean reward by step. */
  heldOut: { step: number; value: number }[];
}

export interface Curves {
  trainings: TrainingCurve[];
  /** Without a finished batch there are none. */
  rollouts?: { scored: number; broken: number };
}

interface CurvesOptions {
  store: ArtifactStore;
  campaign: string;
  /** Of the campaign's rollouts, refreshed by the caller. */
  index: RolloutIndex;
}

interface Training {
  of: string;
  /** The learner's metrics, with the mean reward of every branch. */
  lines: string[];
}

/** Reads again only what may have changed since. */
export function createCurves({ store, campaign, index }: CurvesOptions) {
  const ended = new Map<string, Training>();
  const markers = new Map<string, Markers>();

  async function trainingOf(id: string): Promise<Training | undefined> {
    const known = ended.get(id);
    if (known) return known;
    const own = markers.get(id) ?? new Markers(store, trainingPath(campaign, id));
    markers.set(id, own);
    await own.read();
    const name = own.line.at(-1)?.name;
    const result = await store.find(`training/${id}`);
    if (result) {
      const { metrics } = await readJson(store, result, trainingResultSchema);
      // One that was found has no markers of this campaign.
      const [batch] = name === undefined ? (await store.provenance(metrics)).inputs : [];
      const of = name ?? (batch ? purposeOf(titleOf(await store.provenance(batch))).of : '');
      const training = { of, lines: (await store.read(metrics)).toString('utf8').split('\n') };
      ended.set(id, training);
      return training;
    }
    if (name === undefined) return undefined;
    const metrics = own.line.flatMap((marker) => marker.metrics).join('\n');
    const batches = own.line.flatMap((marker) => marker.batches);
    return { of: name, lines: withBranches(Buffer.from(metrics), batches).toString('utf8').split('\n') };
  }

  /** The ids of the campaign's trainings, the latest last. */
  async function trainingIds(keys: readonly string[]): Promise<string[]> {
    const found = keys.flatMap((key) => /^training\/([^/]+)$/.exec(key)?.[1] ?? []);
    const listed = await store.files.list(trainingPath(campaign, ''));
    const begun = listed.sort((a, b) => a.changedMs - b.changedMs).map(({ path }) => path.split('/')[2]!);
    return [...new Set([...found.filter((id) => !begun.includes(id)), ...begun])];
  }

  /** Something that is damaged, or gone, is made anew by the campaign: until then it is in no curve. */
  async function whole<Kept>(read: Promise<Kept>): Promise<Kept | undefined> {
    return read.catch((error: unknown) => {
      if (isFailure(error, 'ArtifactDamaged')) return undefined;
      throw error;
    });
  }

  return async (): Promise<Curves> => {
    const keys = await keysOf(store.files, campaign);
    const heldOut = new Map<string, Map<number, number>>();
    for (const batch of index.batches()) {
      const step = heldOutStep(batch);
      const rewards = batch.rows.flatMap(({ reward }) => reward ?? []);
      if (step !== undefined && rewards.length > 0)
        heldOut.set(batch.of, (heldOut.get(batch.of) ?? new Map<number, number>()).set(step, mean(rewards)));
    }
    // A later training replaces an earlier one of the same name.
    const byName = new Map<string, Training>();
    for (const id of await trainingIds(keys)) {
      const training = await whole(trainingOf(id));
      if (training && training.of !== '') byName.set(training.of, training);
    }
    const trainings: TrainingCurve[] = [];
    for (const [name, training] of byName) {
      const curves = learnerCurves(training);
      const means = [...(heldOut.get(name) ?? [])].sort(([a], [b]) => a - b);
      if (curves.points.length > 0)
        trainings.push({ name, curves, heldOut: means.map(([step, value]) => ({ step, value })) });
    }
    const once = index.all().filter(({ isRepeated }) => !isRepeated);
    const broken = once.filter(({ outcome }) => outcome === 'broken').length;
    return { trainings, ...(once.length > 0 && { rollouts: { scored: once.length - broken, broken } }) };
  };
}

/** Returns the curves of the lines that are whole; of a step that was done again, the last. */
function learnerCurves({ lines }: Training): LearnerCurves {
  const steps = new Map<number, MetricsLine>();
  for (const line of lines) {
    const { data } = metricsLine.safeParse(line);
    if (data) steps.set(data.step, data);
  }
  return curvesOf([...steps.values()].sort((a, b) => a.step - b.step));
}

/** The step of the policy that a held-out batch evaluates; 0 for what a training starts from. Undefined for other batches. */
function heldOutStep({ of, what }: IndexedBatch): number | undefined {
  const [, step, start] = /^held out(?: at step (\d+)|(, [^,]*))$/.exec(what) ?? [];
  if (of === '' || (step === undefined && start === undefined)) return undefined;
  return Number(step ?? 0);
}
