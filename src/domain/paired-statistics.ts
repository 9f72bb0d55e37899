/**
 * Comparisons of two arms over the same tasks. Invariants: a task counts once, by its mean over trials, and never for one arm only; everything
 * is deterministic.
 */
import type { ArtifactRef } from './artifacts';
import type { Figure } from './figure';
import { seededRandom } from './random';
import { mean, meanInterval, percentiles, type Estimate } from './statistics';

/** Two arms over the same tasks; each side maps a task to its mean over trials. */
export interface Pairs {
  treatment: ReadonlyMap<string, number>;
  control: ReadonlyMap<string, number>;
}

/** treatment - control by task. Sorted, so that no bootstrap depends on the order in which rollouts finished. */
function differences({ treatment, control }: Pairs): number[] {
  const unpaired = [...treatment.keys()]
    .filter((task) => !control.has(task))
    .concat([...control.keys()].filter((task) => !treatment.has(task)));
  if (unpaired.length > 0) {
    throw new Error(`tasks of one arm only: ${unpaired.slice(0, 8).join(', ')}; compare arms on the same tasks`);
  }
  return [...treatment].sort(([a], [b]) => (a < b ? -1 : 1)).map(([task, value]) => value - (control.get(task) ?? 0));
}

/** Mean of (treatment - control) over the same tasks. Pairing removes the spread of the tasks. */
export function pairedDifference({
  confidence = 0.95,
  seed = 1,
  ...pairs
}: Pairs & { confidence?: number; seed?: number }): Estimate {
  return meanInterval({ values: differences(pairs), confidence, seed });
}

/** McNemar's exact test: tasks that one arm alone solves, and the two-sided p of a coin that is as uneven. */
export interface McNemar {
  /** The treatment alone solves. */
  better: number;
  /** The control alone solves. */
  worse: number;
  p: number;
}

/** Undefined where a task is neither solved nor failed whole: the test is of outcomes 0 and 1, one trial each. */
export function mcnemar(pairs: Pairs): McNemar | undefined {
  const outcomes = [...pairs.treatment.values(), ...pairs.control.values()];
  if (!outcomes.every((value) => value === 0 || value === 1)) return undefined;
  const by = differences(pairs);
  const better = by.filter((value) => value > 0).length;
  const worse = by.filter((value) => value < 0).length;
  return { better, worse, p: signTest(better, worse) };
}

/** Two-sided p of `a` against `b` under a fair coin: twice the smaller tail, at most 1. Summed as logarithms, which do not underflow. */
function signTest(a: number, b: number): number {
  const n = a + b;
  let [term, tail] = [-n * Math.LN2, 0];
  for (let k = 0; k <= Math.min(a, b); k++) {
    tail += Math.exp(term);
    term += Math.log((n - k) / (k + 1));
  }
  return Math.min(1, 2 * tail);
}

/** Means over the trials, by task. */
export interface TaskMeans {
  success: Map<string, number>;
  reward: Map<string, number>;
  /** Of the tasks that are of one. */
  branch: Map<string, string>;
  /** Most trials that a task has. */
  trials: number;
  from: ArtifactRef[];
}

/** The difference of two success rates over the tasks that both have; undefined where there are none. */
export function successDifference(o: {
  treatment: Pick<TaskMeans, 'success' | 'trials'>;
  control: Pick<TaskMeans, 'success' | 'trials'>;
  level: { confidence: number; seed: number };
  /** One is a bound over options of which the other is one: that it wins more tasks is no finding. */
  bound?: boolean | undefined;
}): { estimate: Estimate; mcnemar?: McNemar } | undefined {
  const { treatment, control, level, bound = false } = o;
  const shared = (a: typeof treatment, b: typeof treatment) =>
    new Map([...a.success].filter(([task]) => b.success.has(task)));
  const pairs = { treatment: shared(treatment, control), control: shared(control, treatment) };
  if (pairs.treatment.size === 0) return undefined;
  const once = treatment.trials === 1 && control.trials === 1 && !bound;
  const test = once ? mcnemar(pairs) : undefined;
  return { estimate: pairedDifference({ ...pairs, ...level }), ...(test && { mcnemar: test }) };
}

/**
 * Which way a difference points; undefined if it may be chance, or has no interval. It counts where its interval excludes zero and, where each
 * task was tried once, McNemar's exact test says the same: of few tasks that only one side solves a bootstrap is too sure (4 of 60 against
 * none: +1.7 to +13.3 points, p 0.125).
 */
export const direction = ({ interval, mcnemar }: Counted): 'up' | 'down' | undefined => {
  if (interval === undefined) return undefined;
  if (mcnemar !== undefined && mcnemar.p >= 1 - interval.level) return undefined;
  if (interval.low > 0) return 'up';
  return interval.high < 0 ? 'down' : undefined;
};
type Counted = Pick<Figure, 'mcnemar'> & { interval?: Omit<Figure['interval'] & object, 'method'> | undefined };

/**
 * Percentile bootstrap of the mean of a table, one row a run, one column a task, over both: runs and tasks are drawn anew each time, so that
 * the interval holds for other tasks and for other runs. Of few runs it is too narrow: of three, their spread counts for two thirds of what it is.
 */
export function crossedInterval(o: {
  rows: readonly (readonly number[])[];
  confidence?: number;
  seed?: number;
  resamples?: number;
}): Estimate {
  const { rows, confidence = 0.95, seed = 1, resamples = 4_000 } = o;
  const columns = rows[0]?.length ?? 0;
  if (columns === 0 || rows.some((row) => row.length !== columns)) {
    const lengths = rows.map((row) => row.length).join(', ') || 'none';
    throw new Error(`crossedInterval: rows of lengths ${lengths}; give rows of one length above 0`);
  }
  const random = seededRandom('bootstrap over runs and tasks', seed);
  const drawnRows = new Int32Array(rows.length);
  const means = Float64Array.from({ length: resamples }, () => {
    for (let i = 0; i < rows.length; i++) drawnRows[i] = Math.floor(random() * rows.length);
    let sum = 0;
    for (let i = 0; i < columns; i++) {
      const column = Math.floor(random() * columns);
      for (const row of drawnRows) sum += rows[row]?.[column] as number;
    }
    return sum / (rows.length * columns);
  });
  return { mean: mean(rows.map(mean)), ...percentiles(means, confidence), n: columns };
}
