/** The curves of the live page, made from the store: the reward of every training by optimizer step, and how many rollouts there are. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ifThere } from '../artifacts/durable-file';
import { readJson, type ArtifactStore } from '../artifacts/store';
import { notesOf } from '../artifacts/usage';
import { type ArtifactRef, artifactRefSchema } from '../domain/artifacts';
import { isFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { type Outcome, summarise } from '../domain/outcomes';
import { trainingResultSchema } from '../domain/results';
import { readOutcomes } from '../rollout/read';
import { purposeOf } from './rollouts';

interface Point {
  step: number;
  reward: number;
}

export interface TrainingCurve {
  /** The capability or arm. */
  name: string;
  points: Point[];
  branches: { branch: string; points: Point[] }[];
  heldOut: Point[];
}

export interface Curves {
  trainings: TrainingCurve[];
  /** Without a finished batch there are none. */
  rollouts?: { scored: number; broken: number };
}

interface CurvesOptions {
  store: ArtifactStore;
  /** Folder of the campaigns: learners that have not ended write their metrics there. */
  home: string;
  campaign: string;
}

const stepSchema = z.number().int().nonnegative();
/** Of a training's journal, what curves are made of (src/training). */
const nameRecord = z.object({ kind: z.literal('name'), name: z.string() });
const batchRecord = z.object({ kind: z.literal('batch'), step: stepSchema, ref: artifactRefSchema });
const stateRecord = z.object({ kind: z.literal('state'), step: stepSchema, metrics: z.array(z.string()) });
const metricsLine = jsonText.pipe(z.object({ step: stepSchema, reward: z.unknown().optional() }));

type Batch = ReturnType<typeof summarise> & ReturnType<typeof purposeOf> & { outcomes: readonly Outcome[] };
interface Training {
  of: string;
  /** The batch that the step was learned from. */
  batches: ReadonlyMap<number, ArtifactRef>;
  lines: string[];
}

/** Reads again only what may have changed since. */
export function createCurves({ store, home, campaign }: CurvesOptions) {
  const batches = new Map<string, Batch>();
  const refs = new Map<string, ArtifactRef>();
  const ended = new Map<string, Training>();

  async function batchIn(ref: ArtifactRef): Promise<Batch> {
    const known = batches.get(ref.sha256);
    if (known) return known;
    const { producer } = await store.provenance(ref);
    const of = purposeOf(producer.replace(/^rollouts: /, ''));
    const outcomes = await readOutcomes({ store, ref });
    const batch = { ...summarise(outcomes), ...of, outcomes };
    batches.set(ref.sha256, batch);
    return batch;
  }

  async function trainingOf(key: string): Promise<Training> {
    const known = ended.get(key);
    if (known) return known;
    const records = [...(await store.records(key)).values()];
    const of = <Kept>(schema: z.ZodType<Kept>) => records.flatMap((one) => schema.safeParse(one).data ?? []);
    const learned = new Map(of(batchRecord).map(({ step, ref }) => [step + 1, ref]));
    const [first] = learned.values();
    const name = of(nameRecord)[0]?.name ?? (first ? (await batchIn(first)).of : '');
    const result = await store.find(key);
    if (result) {
      const { metrics } = await readJson(store, result, trainingResultSchema);
      const lines = (await store.read(metrics)).toString('utf8').split('\n');
      const training = { of: name, batches: learned, lines };
      ended.set(key, training);
      return training;
    }
    if (!store.snapshots) return { of: name, batches: learned, lines: await linesIn(home, key) };
    const states = of(stateRecord);
    // Where another host went on from an earlier step, what lay beyond it is gone.
    const reached = states.at(-1)?.step ?? 0;
    const told = states.flatMap(({ metrics }) => metrics);
    const lines = told.filter((line) => (metricsLine.safeParse(line).data?.step ?? Infinity) <= reached);
    return { of: name, batches: learned, lines };
  }

  /** Something that is damaged, or gone, is made anew by the campaign: until then it is in no curve. */
  async function whole<Kept>(read: Promise<Kept>): Promise<Kept | undefined> {
    return read.catch((error: unknown) => {
      if (isFailure(error, 'ArtifactDamaged')) return undefined;
      throw error;
    });
  }

  return async (): Promise<Curves> => {
    const { keys, journals } = await notesOf(store, campaign);
    const heldOut = new Map<string, Map<number, number>>();
    const addHeldOut = (name: string, step: number, { scored, meanReward }: Batch): void => {
      if (scored > 0) heldOut.set(name, (heldOut.get(name) ?? new Map<number, number>()).set(step, meanReward));
    };
    // A rollout that several batches hold counts once, as scored if one of them has it scored.
    const statuses = new Map<string, Outcome['status']>();
    for (const key of keys.filter((one) => one.startsWith('rollouts/'))) {
      const ref = refs.get(key) ?? (await whole(store.find(key)));
      const batch = ref && (await whole(batchIn(ref)));
      if (!batch) continue;
      refs.set(key, ref);
      for (const { key, status } of batch.outcomes) if (statuses.get(key) !== 'scored') statuses.set(key, status);
      const step = heldOutStep(batch);
      if (step !== undefined) addHeldOut(batch.of, step, batch);
    }
    const keysOfTrainings = [...new Set([...keys, ...journals])].filter((key) => /^training\/[^/]+$/.test(key));
    // A later training replaces an earlier one of the same name.
    const byName = new Map<string, Training>();
    for (const key of keysOfTrainings) {
      const training = await whole(trainingOf(key));
      if (training && training.of !== '') byName.set(training.of, training);
    }
    const trainings: TrainingCurve[] = [];
    for (const [name, training] of byName) {
      const rewards = await rewardsOf(training);
      if (rewards.points.length > 0) trainings.push({ name, ...rewards, heldOut: pointsOf(heldOut.get(name)) });
    }
    const counts = [...statuses.values()];
    const scored = counts.filter((status) => status === 'scored').length;
    return {
      trainings,
      ...(counts.length > 0 && { rollouts: { scored, broken: counts.length - scored } }),
    };
  };

  /** The mean reward of each finished step, of the whole batch and of its branches. */
  async function rewardsOf({ lines, batches: learned }: Training) {
    const rewards = new Map<number, number>();
    const branches = new Map<string, Map<number, number>>();
    for (const line of lines) {
      const values = metricsLine.safeParse(line).data;
      if (!values) continue;
      const { step, reward } = values;
      const ref = learned.get(step);
      const batch = ref && (await whole(batchIn(ref)));
      const own = typeof reward === 'number' ? reward : batch && batch.scored > 0 ? batch.meanReward : undefined;
      if (own !== undefined) rewards.set(step, own);
      for (const [branch, { meanReward }] of Object.entries(batch?.branches ?? {}))
        branches.set(branch, (branches.get(branch) ?? new Map<number, number>()).set(step, meanReward));
    }
    const sorted = [...branches].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      points: pointsOf(rewards),
      branches: sorted.map(([branch, own]) => ({ branch, points: pointsOf(own) })),
    };
  }
}

const pointsOf = (rewards: ReadonlyMap<number, number> = new Map()): Point[] =>
  [...rewards].sort(([a], [b]) => a - b).map(([step, reward]) => ({ step, reward }));

/** The step of the policy that a held-out batch evaluates; 0 for what a training starts from. Undefined for other batches. */
function heldOutStep({ of, what }: Batch): number | undefined {
  const [, step, start] = /^held out(?: at step (\d+)|(, [^,]*))$/.exec(what) ?? [];
  if (of === '' || (step === undefined && start === undefined)) return undefined;
  return Number(step ?? 0);
}

/** As far as a learner has come that has not ended, on a disk that is its home's. */
async function linesIn(home: string, key: string): Promise<string[]> {
  const folder = join(home, 'trainings');
  const short = key.slice('training/'.length).slice(0, 12);
  const own = ((await ifThere(readdir(folder))) ?? []).find((name) => name.endsWith(`-${short}`));
  const text = own && (await ifThere(readFile(join(folder, own, 'metrics.jsonl'), 'utf8')));
  return (text ?? '').split('\n');
}
