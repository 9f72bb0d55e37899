/**
 * Comparisons of two arms over the same tasks. Invariants: a task counts once, by its mean over trials, and never for one arm only; everything
 * is deterministic.
 */
import type { ArtifactRef } from './artifacts';
import { comparable, type Estimate, mean, quantileOf, seededRandom } from './statistics';

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

/** How many tasks speak for each side, and whether that may be chance. */
export interface PairedTest {
  /** Tasks that the treatment solves more often. */
  better: number;
  /** Tasks that the control solves more often. */
  worse: number;
  /** Two-sided, of the sign-flip test. */
  p: number;
}

const FLIPS = 9_999;

/**
 * Mean of (treatment - control) over the same tasks, by one sign-flip test: were the two alike, each task's difference might as well have the
 * other sign. With one trial a task this is McNemar's exact test. The interval holds the differences that the test does not reject: its ends are
 * percentiles of the means of random subsets of the tasks (Hartigan's typical values), so it excludes zero just where p is below 1 - confidence.
 */
export function pairedDifference({
  confidence = 0.95,
  seed = 1,
  ...pairs
}: Pairs & { confidence?: number; seed?: number }): Estimate & { test: PairedTest } {
  const by = differences(pairs);
  const center = mean(by);
  const random = seededRandom('sign flips', seed);
  const subsets = Array.from({ length: FLIPS }, () => {
    let [sum, count, bits] = [0, 0, 0];
    by.forEach((difference, i) => {
      if (i % 32 === 0) bits = Math.floor(random() * 2 ** 32);
      if (((bits >>> (i % 32)) & 1) === 0) return;
      sum += difference;
      count += 1;
    });
    return count === 0 ? undefined : comparable(sum / count);
  });
  // Of no task at all, anything may be the mean.
  const sorted = (empty: number) => Float64Array.from(subsets, (value) => value ?? empty).sort();
  const [lows, highs] = [
    sorted(-1),
    sorted(1)
      .map((value) => 0 - value)
      .sort(),
  ];
  const better = by.filter((value) => value > 0).length;
  const worse = by.filter((value) => value < 0).length;
  const p = by.every((value) => Number.isInteger(value)) ? signTest(better, worse) : flipped(lows, highs);
  const level = comparable(1 - confidence);
  const rank = Math.max(0, Math.ceil(comparable((level * (FLIPS + 1)) / 2)) - 2);
  return {
    mean: center,
    low: end(lows, rank, p < level && center > 0),
    high: 0 - end(highs, rank, p < level && center < 0),
    n: by.length,
    test: { better, worse, p },
  };
}

/** Two-sided p of the draws: those that are as far on either side, the differences as they are among them. */
function flipped(lows: Float64Array, highs: Float64Array): number {
  const beyond = (sorted: Float64Array): number => sorted.filter((value) => value <= 0).length;
  return Math.min(1, (2 * (1 + Math.min(beyond(lows), beyond(highs)))) / (FLIPS + 1));
}

/** The mean of this rank, or, where the draws miss what the exact test says of zero, the next one on its right side. */
function end(sorted: Float64Array, rank: number, aboveZero: boolean): number {
  const step = aboveZero ? 1 : -1;
  let at = rank;
  while ((sorted[at] ?? 0) > 0 !== aboveZero && at + step >= 0 && at + step < sorted.length) at += step;
  return aboveZero ? (sorted[at] as number) : Math.min(0, sorted[at] as number);
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

/** Two arms in several batches of tasks, as one: a task that is in several of them counts once, by the mean of its means. */
export function together<Side extends Pick<TaskMeans, 'success' | 'trials'>>(
  batches: readonly { treatment: Side; control: Side }[],
): Record<'treatment' | 'control', Pick<TaskMeans, 'success' | 'trials'>> {
  const side = (own: 'treatment' | 'control', other: 'treatment' | 'control') => {
    const values = new Map<string, number[]>();
    for (const batch of batches)
      for (const [task, value] of batch[own].success)
        if (batch[other].success.has(task)) values.set(task, [...(values.get(task) ?? []), value]);
    const success = new Map([...values].map(([task, each]) => [task, mean(each)]));
    return { success, trials: Math.max(0, ...batches.map((batch) => batch[own].trials)) };
  };
  return { treatment: side('treatment', 'control'), control: side('control', 'treatment') };
}

/**
 * Whether an adapter has gained anything: on held-out seeds of its own environment, or on all tasks of the target together that it was tried on.
 * One rule for what is added up and for what is said.
 */
export const gainsAnything = (known: { own: Ends | undefined; target: Ends | undefined }): boolean =>
  direction(known.own) === 'up' || direction(known.target) === 'up';

/** The difference of two success rates over the tasks that both have; undefined where there are none. */
export function successDifference(o: {
  treatment: Pick<TaskMeans, 'success' | 'trials'>;
  control: Pick<TaskMeans, 'success' | 'trials'>;
  level: { confidence: number; seed: number };
  /** One is a bound over options of which the other is one: that it wins more tasks is no finding. */
  bound?: boolean | undefined;
}): (Estimate & { test?: PairedTest }) | undefined {
  const { treatment, control, level, bound = false } = o;
  const shared = (a: typeof treatment, b: typeof treatment) =>
    new Map([...a.success].filter(([task]) => b.success.has(task)));
  const pairs = { treatment: shared(treatment, control), control: shared(control, treatment) };
  if (pairs.treatment.size === 0) return undefined;
  const { test, ...estimate } = pairedDifference({ ...pairs, ...level });
  return { ...estimate, ...(!bound && { test }) };
}

type Ends = Pick<Estimate, 'low' | 'high'>;

/** Which way a difference points; undefined if it may be chance, or has no interval. */
export const direction = (interval: Ends | undefined): 'up' | 'down' | undefined => {
  if (interval === undefined) return undefined;
  if (interval.low > 0) return 'up';
  return interval.high < 0 ? 'down' : undefined;
};

/**
 * By how much a difference between two arms moves where both are trained again on the same rollouts, fixed seeds or not: its standard deviation
 * between training seeds, 4.7 points over 20 campaigns in 7 settings (docs/report.md), rounded up.
 */
export const TRAINING_SPREAD = 0.05;

/** An interval over tasks, widened so that it holds for other trainings too. The ends of the interval of one training each, or of the mean of several. */
export function acrossTrainings(
  { mean: value, low, high }: Pick<Estimate, 'mean' | 'low' | 'high'>,
  { level, runs = 1, spread = TRAINING_SPREAD }: { level: number; runs?: number; spread?: number },
): { low: number; high: number } {
  const reach = (quantileOf(level) * spread) / Math.sqrt(runs);
  const within = (end: number): number => Math.min(1, Math.max(-1, end));
  return {
    low: within(value - Math.hypot(value - low, reach)),
    high: within(value + Math.hypot(high - value, reach)),
  };
}
