/**
 * A campaign's curves, from what its store has: every training by optimizer step, held-out and test success, what was rolled out and paid. Invariant:
 * a curve is a function of the store, so that whoever draws it anew, on any host and after any stop, comes to the same points.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ifThere } from '../artifacts/durable-file';
import { digest } from '../artifacts/hash';
import { readJson, type ArtifactStore } from '../artifacts/store';
import { notesOf } from '../artifacts/usage';
import { type ArtifactRef, artifactRefSchema } from '../domain/artifacts';
import type { Spent } from '../domain/endpoints';
import { isFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { type Outcome, summarise } from '../domain/outcomes';
import { trainingResultSchema } from '../domain/results';
import { readOutcomes } from '../rollout/read';
import { purposeOf } from './rollouts';

export interface Curve {
  /** A capability, an arm or a policy; `campaign`: all of it. */
  run: string;
  rows: { step: number; values: Record<string, number> }[];
}

/** What was paid at once, in the order of the payments. */
export type Payment = Pick<Spent, 'role' | 'requests' | 'dollars' | 'promptTokens' | 'completionTokens'>;

interface CurvesOptions {
  store: ArtifactStore;
  /** Folder of the campaigns: learners that have not ended write their metrics there. */
  home: string;
  campaign: string;
  payments: () => Promise<Payment[]>;
}

const stepSchema = z.number().int().nonnegative();
/** Of a training's journal, what curves are made of (src/training). */
const nameRecord = z.object({ kind: z.literal('name'), name: z.string() });
const batchRecord = z.object({ kind: z.literal('batch'), step: stepSchema, ref: artifactRefSchema });
const stateRecord = z.object({ kind: z.literal('state'), step: stepSchema, metrics: z.array(z.string()) });
/** Of what a capability or an arm came to: steps with the same policy have one batch, which its title can't tell. */
const outcomeSchema = z.object({
  training: z.object({ metrics: artifactRefSchema }),
  iterations: z.array(z.object({ step: stepSchema, heldOut: z.object({ ref: artifactRefSchema }) })),
});
const resultSchema = jsonText.pipe(
  z.union([z.object({ trained: outcomeSchema }).transform(({ trained }) => trained), outcomeSchema]),
);
const metricsLine = jsonText.pipe(z.looseObject({ step: stepSchema }));

type Figures = ReturnType<typeof summarise>;
type Batch = Figures & ReturnType<typeof purposeOf> & { outcomes: readonly Outcome[] };
interface Training {
  of: string;
  /** The batch that the step was learned from. */
  batches: ReadonlyMap<number, ArtifactRef>;
  lines: string[];
  /** What its metrics are once it has ended. */
  metrics?: ArtifactRef;
}

/** Reads again only what may have changed since. */
export function createCurves({ store, home, campaign, payments }: CurvesOptions) {
  const batches = new Map<string, Batch>();
  const refs = new Map<string, ArtifactRef>();
  const ended = new Map<string, Training>();
  const outcomes = new Map<string, z.infer<typeof outcomeSchema> | undefined>();

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
      const training = { of: name, batches: learned, lines, metrics };
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

  async function outcomeOf(key: string) {
    if (outcomes.has(key)) return outcomes.get(key);
    const ref = await store.find(key);
    if (ref) outcomes.set(key, resultSchema.safeParse((await store.read(ref)).toString('utf8')).data);
    return outcomes.get(key);
  }

  /** Something that is damaged, or gone, is made anew by the campaign: until then it is in no curve. */
  async function whole<Kept>(read: Promise<Kept>): Promise<Kept | undefined> {
    return read.catch((error: unknown) => {
      if (isFailure(error, 'ArtifactDamaged')) return undefined;
      throw error;
    });
  }

  return async (): Promise<Curve[]> => {
    const { keys, journals } = await notesOf(store, campaign);
    const values = new Map<string, Map<number, Record<string, number>>>();
    const add = (run: string, step: number, more: Record<string, number>): void => {
      const rows = values.get(run) ?? new Map<number, Record<string, number>>();
      values.set(run, rows.set(step, { ...rows.get(step), ...more }));
    };
    const total = { 'rollouts/scored': 0, 'rollouts/broken': 0, 'tokens/prompt': 0, 'tokens/completion': 0 };
    // What several batches hold was played once, and is scored if one of them has it scored.
    const counted = new Map<string, Outcome['status']>();
    for (const key of keys.filter((one) => one.startsWith('rollouts/'))) {
      const ref = refs.get(key) ?? (await whole(store.find(key)));
      const batch = ref && (await whole(batchIn(ref)));
      if (!batch) continue;
      refs.set(key, ref);
      for (const outcome of batch.outcomes) {
        const { key, status } = outcome;
        const before = counted.get(key);
        if (before === 'scored' || before === status) continue;
        if (before) total[`rollouts/${before}`] -= 1;
        counted.set(key, status);
        total[`rollouts/${status}`] += 1;
        if (status !== 'scored') continue;
        total['tokens/prompt'] += outcome.promptTokens;
        total['tokens/completion'] += outcome.completionTokens;
      }
      add(ALL, total['rollouts/scored'] + total['rollouts/broken'], { ...total });
      const step = evaluatedAt(batch);
      if (step !== undefined) add(batch.of, step, figuresOf(batch, batch.purpose.replaceAll(' ', '_')));
    }
    const trainings = [...new Set([...keys, ...journals])].filter((key) => /^training\/[^/]+$/.test(key));
    // What was trained again under one name came after, and counts.
    const byName = new Map<string, Training>();
    for (const key of trainings) {
      const training = await whole(trainingOf(key));
      if (training && training.of !== '') byName.set(training.of, training);
    }
    for (const [of, training] of byName) {
      for (const line of training.lines) {
        const { step, ...metrics } = metricsLine.safeParse(line).data ?? {};
        if (step === undefined) continue;
        const numbers = Object.entries(metrics).filter((one): one is [string, number] => typeof one[1] === 'number');
        const named = numbers.map(([name, value]) => [`train/${name}`, value]);
        const ref = training.batches.get(step);
        const batch = ref && (await whole(batchIn(ref)));
        add(of, step, { ...(batch && figuresOf(batch, 'train')), ...(Object.fromEntries(named) as object) });
      }
    }
    for (const key of keys.filter((one) => one.startsWith('result/'))) {
      const { training, iterations = [] } = (await whole(outcomeOf(key))) ?? {};
      const [of] = [...byName].find(([, { metrics }]) => metrics?.sha256 === training?.metrics.sha256) ?? [];
      for (const { step, heldOut } of of === undefined ? [] : iterations) {
        const batch = await whole(batchIn(heldOut.ref));
        if (batch && of !== undefined) add(of, step, figuresOf(batch, HELD_OUT));
      }
    }
    for (const [step, row] of costs(await payments())) add(COSTS, step, row);
    return [...values].map(([run, rows]) => ({
      run: folderName(run),
      rows: [...rows].sort(([a], [b]) => a - b).map(([step, row]) => ({ step, values: finite(row) })),
    }));
  };
}

const HELD_OUT = 'held_out';
/** Beside policies, capabilities and arms, whose names have no dash. */
const ALL = 'all-rollouts';
const COSTS = 'all-costs';

/** The step of a policy that was evaluated: of what no step has made, and of what was chosen among steps, 0. Undefined of other batches. */
function evaluatedAt({ of, purpose, what }: Batch): number | undefined {
  if (of === '') return undefined;
  if (purpose === 'test' || of === 'base') return 0;
  const [, step, start] = /^held out(?: at step (\d+)|(, [^,]*))$/.exec(what) ?? [];
  if (start !== undefined) return 0;
  return step === undefined ? undefined : Number(step);
}

function figuresOf(batch: Figures, under: string): Record<string, number> {
  const { scored, broken, meanReward, successRate, promptTokens, completionTokens, branches = {} } = batch;
  const shares = { [`${under}/broken_share`]: broken / Math.max(1, scored + broken) };
  if (scored === 0) return shares;
  return {
    ...shares,
    [`${under}/reward`]: meanReward,
    [`${under}/success`]: successRate,
    [`${under}/prompt_tokens`]: promptTokens / scored,
    [`${under}/completion_tokens`]: completionTokens / scored,
    ...Object.fromEntries(
      Object.entries(branches).map(([branch, figures]) => [`${under}/reward/${branch}`, figures.meanReward]),
    ),
  };
}

/** Payments up to one, by how many requests they were, at every 1st, at 100 every 10th, at 1000 every 100th, and at the last. */
function costs(payments: readonly Payment[]): Map<number, Record<string, number>> {
  const rows = new Map<number, Record<string, number>>();
  const sums: Record<string, number> = {};
  let requests = 0;
  for (const [n, { role = 'unknown', requests: made, dollars, promptTokens, completionTokens }] of payments.entries()) {
    requests += made;
    const add = (tag: string, value: number) => (sums[tag] = (sums[tag] ?? 0) + value);
    add('costs/prompt_tokens', promptTokens);
    add('costs/completion_tokens', completionTokens);
    if (dollars !== undefined) for (const tag of ['costs/dollars', `costs/dollars/${role}`]) add(tag, dollars);
    const every = 10 ** Math.max(0, Math.floor(Math.log10(n + 1)) - 1);
    if ((n + 1) % every === 0 || n === payments.length - 1) rows.set(requests, { ...sums });
  }
  return rows;
}

/** As far as a learner has come that has not ended, on a disk that is its home's. */
async function linesIn(home: string, key: string): Promise<string[]> {
  const folder = join(home, 'trainings');
  const short = key.slice('training/'.length).slice(0, 12);
  const own = ((await ifThere(readdir(folder))) ?? []).find((name) => name.endsWith(`-${short}`));
  const text = own && (await ifThere(readFile(join(folder, own, 'metrics.jsonl'), 'utf8')));
  return (text ?? '').split('\n');
}

const LONGEST = 120;
/** What a folder can be called, also where names come from a model: no separators, and not longer than file systems take. */
function folderName(run: string): string {
  const name = run.replaceAll(/[^\w+.-]/g, '_').replace(/^\./, '_');
  return name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 9)}-${digest(run).slice(0, 8)}`;
}

const finite = (row: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => Number.isFinite(value)));
