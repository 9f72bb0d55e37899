/**
 * Intervals, estimates and comparisons over tasks. Everything is deterministic (bootstraps are seeded, no mean depends on the order of its
 * values); several trials of a task enter as their mean; a comparison counts the tasks of both sides.
 */
import type { ArtifactRef } from './artifacts';
import { seededRandom } from './seeds';

export function countsOf<Value>(values: Iterable<Value>): Map<Value, number> {
  const counts = new Map<Value, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** Groups items by key, in the order of first occurrence. */
export function groupBy<Key, Item>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.get(key)?.push(item)) groups.set(key, [item]);
  }
  return groups;
}

/** `n` is the number of units (tasks, or trials for a proportion). */
export interface Estimate {
  value: number;
  low: number;
  high: number;
  n: number;
}

/** Adds the values in sorted order, so that the sum does not depend on their order. */
export const sumOf = (values: readonly number[]): number =>
  Float64Array.from(values)
    .sort()
    .reduce((sum, value) => sum + value, 0);

export function mean(values: readonly number[]): number {
  if (values.length === 0) throw new Error('mean: no values; give at least one');
  return sumOf(values) / values.length;
}

/** Rounds a sum of floats to 8 decimals, to compare it with a threshold or another sum. */
export const comparable = (value: number): number => Number(value.toFixed(8));

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return mean(sorted.slice(Math.floor(middle), Math.ceil(middle) + 1));
}

export function populationStd(values: readonly number[]): number {
  const center = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - center) ** 2)));
}

/** Inverse of the standard normal distribution (Acklam's rational approximation, relative error below 1.2e-9). */
export function normalQuantile(p: number): number {
  if (!(p > 0 && p < 1)) throw new Error(`normalQuantile: p is ${p}; it must lie between 0 and 1, both excluded`);
  const horner = (x: number, coefficients: readonly number[]) => coefficients.reduce((sum, c) => sum * x + c, 0);
  const c = [
    -7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968,
    2.938163982698783,
  ];
  const d = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1];
  const tail = (q: number) => horner(q, c) / horner(q, d);
  if (p < 0.02425) return tail(Math.sqrt(-2 * Math.log(p)));
  if (p > 1 - 0.02425) return -tail(Math.sqrt(-2 * Math.log(1 - p)));
  const a = [
    -3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1,
    2.506628277459239,
  ];
  const b = [
    -5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1,
  ];
  const q = p - 0.5;
  return (q * horner(q * q, a)) / horner(q * q, b);
}

/** Wilson's score interval of a proportion: honest at 0 and at 1, where the normal interval has no width. */
export function wilsonInterval(o: { successes: number; trials: number; confidence?: number }): Estimate {
  const { successes, trials, confidence = 0.95 } = o;
  if (!(successes >= 0 && successes <= trials && trials > 0))
    throw new Error(`wilsonInterval: there are ${successes} successes of ${trials} trials; pass counts of trials`);
  const z = quantileOf(confidence);
  const p = successes / trials;
  const scale = 1 + (z * z) / trials;
  const center = (p + (z * z) / (2 * trials)) / scale;
  const half = (z / scale) * Math.sqrt((p * (1 - p)) / trials + (z * z) / (4 * trials * trials));
  // The bounds are exact at the ends; round-off must not move them.
  const low = successes === 0 ? 0 : center - half;
  const high = successes === trials ? 1 : center + half;
  return { value: p, low, high, n: trials };
}

/** Standard errors from the middle to the ends of a normal interval: 1.96 for 0.95. */
export const quantileOf = (confidence: number): number => normalQuantile(0.5 + confidence / 2);

/** Returns whether shares or rewards are all the same. Their bootstrap interval would have no width; outcomes 0 and 1 vary most at a given mean. */
export const isAlike = (values: readonly number[]): boolean =>
  values.every((value) => value === values[0] && value >= 0 && value <= 1);

interface Bootstrap {
  confidence?: number;
  seed?: number;
  resamples?: number;
}

/** Percentile bootstrap interval of the mean of per-task means; Wilson's where these are all alike. */
export function meanInterval(o: { values: readonly number[] } & Bootstrap): Estimate {
  const { values, confidence = 0.95, seed = 1, resamples = 10_000 } = o;
  const center = mean(values);
  if (isAlike(values)) return wilsonInterval({ successes: sumOf(values), trials: values.length, confidence });
  const random = seededRandom('bootstrap of a mean', seed);
  const means = Float64Array.from({ length: resamples }, () => {
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[Math.floor(random() * values.length)] ?? 0;
    return sum / values.length;
  });
  means.sort();
  const at = (p: number) => means[Math.round(p * (means.length - 1))]!;
  return { value: center, low: at((1 - confidence) / 2), high: at((1 + confidence) / 2), n: values.length };
}

/** Success rate: Wilson's interval if each unit was tried once or all units have the same mean, else the bootstrap over the units. */
export function successRate(
  o: { taskMeans: readonly number[]; trials: number } & Bootstrap,
): Estimate & { method: 'wilson' | 'bootstrap' } {
  const { taskMeans, trials, ...how } = o;
  const binary = taskMeans.every((value) => value === 0 || value === 1);
  return (binary && trials === 1) || isAlike(taskMeans)
    ? { ...wilsonInterval({ successes: sumOf(taskMeans), trials: taskMeans.length, ...how }), method: 'wilson' }
    : { ...meanInterval({ values: taskMeans, ...how }), method: 'bootstrap' };
}

export interface Pairs {
  treatment: ReadonlyMap<string, number>;
  control: ReadonlyMap<string, number>;
}

/** treatment - control of each task of both. Sorted, so that no bootstrap depends on the order in which rollouts finished. */
const differences = ({ treatment, control }: Pairs): number[] =>
  [...treatment]
    .filter(([task]) => control.has(task))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([task, value]) => value - control.get(task)!);

export interface PairedTest {
  better: number;
  worse: number;
  p: number;
}

const FLIPS = 9_999;
/** Least number of tasks: random subsets of fewer give too narrow an interval. */
const FEW = 10;

/**
 * Mean of (treatment - control) over the same tasks, with a sign-flip test: under the null hypothesis each task's difference is as likely to have the
 * other sign. With one trial a task this is McNemar's exact test. The interval holds the differences that the test does not reject: its ends are
 * percentiles of the means of random subsets of the tasks (Hartigan's typical values), so it excludes zero exactly if p is below 1 - confidence.
 * If fewer than 10 tasks differ, the interval is extended to that of Bonett and Price, which adds one task for each side, but not across zero.
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
  // The mean of an empty subset may be anything.
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
  const [low, high] = [end(lows, rank, p < level && center > 0), 0 - end(highs, rank, p < level && center < 0)];
  const wide = better + worse < FEW ? withOneMoreEach(by, confidence) : { low, high };
  return {
    value: center,
    low: low > 0 && wide.low <= 0 ? low : Math.min(low, wide.low),
    high: high < 0 && wide.high >= 0 ? high : Math.max(high, wide.high),
    n: by.length,
    test: { better, worse, p },
  };
}

/** The normal interval of the mean difference with a task more that speaks for each side (Bonett and Price, 2012). */
function withOneMoreEach(differences: readonly number[], confidence: number): { low: number; high: number } {
  const all = [...differences, 1, -1];
  const center = mean(all);
  const half = (quantileOf(confidence) * populationStd(all)) / Math.sqrt(all.length);
  return { low: Math.max(-1, center - half), high: Math.min(1, center + half) };
}

/** Two-sided p value from the random subsets; the observed differences count as one more draw. */
function flipped(lows: Float64Array, highs: Float64Array): number {
  const beyond = (sorted: Float64Array): number => sorted.filter((value) => value <= 0).length;
  return Math.min(1, (2 * (1 + Math.min(beyond(lows), beyond(highs)))) / (FLIPS + 1));
}

/** Returns the mean of this rank; if it contradicts the exact test at zero, the next mean on the side of zero that the test gives. */
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

/** pass^k of one task (tau-bench, arXiv 2406.12045): the unbiased estimate that k further trials all succeed. Needs k trials. */
export const passPower = ({ successes, trials, k }: { successes: number; trials: number; k: number }): number =>
  Array.from({ length: k }, (_, i) => (successes - i) / (trials - i)).reduce((all, one) => all * Math.max(0, one), 1);

export interface TaskMean {
  success: number;
  /** Scored rollouts. */
  trials?: number;
  reward: number;
  branch?: string;
}
export interface TaskMeans {
  tasks: ReadonlyMap<string, TaskMean>;
  trials: number;
  from: ArtifactRef[];
}
export type Successes = Pick<TaskMeans, 'trials'> & { tasks: ReadonlyMap<string, Pick<TaskMean, 'success'>> };

/** Joins two arms over several batches of tasks: a task of several batches counts once, with the mean of its means. */
export function together(
  batches: readonly { treatment: Successes; control: Successes }[],
): Record<'treatment' | 'control', Successes> {
  const side = (own: 'treatment' | 'control', other: 'treatment' | 'control'): Successes => {
    const shared = batches.flatMap((batch) => [...batch[own].tasks].filter(([task]) => batch[other].tasks.has(task)));
    const tasks = new Map(
      [...groupBy(shared, ([task]) => task)].map(([task, each]) => [
        task,
        { success: mean(each.map(([, { success }]) => success)) },
      ]),
    );
    return { tasks, trials: Math.max(0, ...batches.map((batch) => batch[own].trials)) };
  };
  return { treatment: side('treatment', 'control'), control: side('control', 'treatment') };
}

/** Returns whether an adapter has gained anything, on held-out seeds of its own environment or on the target's tasks. */
export const gainsAnything = (known: { own: Ends | undefined; target: Ends | undefined }): boolean =>
  direction(known.own) === 'up' || direction(known.target) === 'up';

/** The difference of two success rates over the tasks that both have; undefined where there are none. */
export function successDifference(o: {
  treatment: Successes;
  control: Successes;
  level: { confidence: number; seed: number };
}): (Estimate & { test?: PairedTest }) | undefined {
  const { treatment, control, level } = o;
  if (![...treatment.tasks.keys()].some((task) => control.tasks.has(task))) return undefined;
  const of = ({ tasks }: Successes) => new Map([...tasks].map(([task, { success }]) => [task, success]));
  return pairedDifference({ treatment: of(treatment), control: of(control), ...level });
}

type Ends = Pick<Estimate, 'low' | 'high'>;

/** Returns the direction of a difference; undefined if it may be chance, or has no interval. */
export const direction = (interval: Ends | undefined): 'up' | 'down' | undefined => {
  if (interval === undefined) return undefined;
  if (interval.low > 0) return 'up';
  return interval.high < 0 ? 'down' : undefined;
};

/** p-values of one family in the order given, corrected by Holm's step-down method, however the tests depend on each other. */
export function holm(ps: readonly number[]): number[] {
  const corrected = new Array<number>(ps.length);
  let largest = 0;
  [...ps.keys()]
    .sort((a, b) => ps[a]! - ps[b]!)
    .forEach((place, rank) => {
      largest = Math.max(largest, Math.min(1, (ps.length - rank) * ps[place]!));
      corrected[place] = largest;
    });
  return corrected;
}

/**
 * The interval of a mean over several trainings, for other tasks and other trainings: the interval over tasks, and Student's t interval of the
 * trainings' own means, added as independent errors. With one training the spread between trainings is unknown, and there is no such interval.
 */
export function acrossTrainings(
  { value, low, high }: Ends & Pick<Estimate, 'value'>,
  { means, confidence }: { means: readonly number[]; confidence: number },
): Ends | undefined {
  if (means.length < 2) return undefined;
  // The standard deviation of the sample, divided by the root of its size.
  const error = populationStd(means) / Math.sqrt(means.length - 1);
  const reach = studentQuantile(confidence, means.length - 1) * error;
  return { low: value - Math.hypot(value - low, reach), high: value + Math.hypot(high - value, reach) };
}

/** Standard errors from the middle to the ends of Student's t interval: 12.71 for 0.95 and 1 degree of freedom, 4.30 for 2. */
export function studentQuantile(confidence: number, degrees: number): number {
  // Abramowitz and Stegun 26.7.3 and 26.7.4: the chance of |t| below sqrt(degrees) * tan(angle).
  const within = (angle: number): number => {
    const isOdd = degrees % 2 === 1;
    let [term, sum] = [isOdd ? Math.cos(angle) : 1, 0];
    for (let k = isOdd ? 1 : 0; k < degrees - 1; k += 2) {
      sum += term;
      term *= ((k + 1) / (k + 2)) * Math.cos(angle) ** 2;
    }
    return isOdd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum;
  };
  let [low, high] = [0, Math.PI / 2];
  for (let halvings = 0; halvings < 60; halvings++) {
    const middle = (low + high) / 2;
    if (within(middle) < confidence) low = middle;
    else high = middle;
  }
  return Math.sqrt(degrees) * Math.tan(low);
}
