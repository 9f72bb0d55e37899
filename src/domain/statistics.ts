/**
 * Intervals and estimates for reports. Invariants: everything is deterministic (bootstraps are seeded); tasks are the unit, so
 * several trials of a task enter as that task's mean and never widen n; an estimate that its inputs do not allow is an error, not NaN;
 * no mean depends on the order of its values.
 */

/** FNV-1a over UTF-16 code units: 32 bits. */
export function hash(text: string, basis = 0x811c9dc5): number {
  let h = basis;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/** A generator of numbers in [0, 1) (sfc32), a function of `parts` alone: `seededRandom('labels', 7, 2)`. */
export function seededRandom(...parts: (string | number)[]): () => number {
  const text = JSON.stringify(parts);
  let [a, b, c, counter] = [hash(text, 0x811c9dc5), hash(text, 0x9e3779b9), hash(text, 0x85ebca6b), 1];
  const next = () => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return (t >>> 0) / 4294967296;
  };
  // The first outputs still show the structure of the seed.
  for (let i = 0; i < 12; i++) next();
  return next;
}

/** `n` is the number of units (tasks, or trials for a proportion). */
export interface Estimate {
  mean: number;
  low: number;
  high: number;
  n: number;
}

/** In sorted order, so that the order of the values does not show in the last bit. */
export const sumOf = (values: readonly number[]): number =>
  Float64Array.from(values)
    .sort()
    .reduce((sum, value) => sum + value, 0);

export function mean(values: readonly number[]): number {
  if (values.length === 0) throw new Error('mean: no values; give at least one');
  return sumOf(values) / values.length;
}

/** Of a sample; 0 of one value. */
export function standardDeviation(values: readonly number[]): number {
  const center = mean(values);
  return Math.sqrt(sumOf(values.map((value) => (value - center) ** 2)) / Math.max(1, values.length - 1));
}

/**
 * The mean of shares, `part` of `of` each, as one division of whole counts: such a rate is equal to a decimal threshold where the counts are. A
 * sum of rounded shares may miss it by the last bit.
 */
export function meanShare(shares: readonly { part: number; of: number }[]): number {
  const divisor = (a: bigint, b: bigint): bigint => (b === 0n ? a : divisor(b, a % b));
  const counts = shares.map(({ part, of }) => ({ part: BigInt(part), of: BigInt(of) }));
  const whole = counts.reduce((multiple, { of }) => (multiple / divisor(multiple, of)) * of, 1n);
  const parts = counts.reduce((sum, { part, of }) => sum + part * (whole / of), 0n);
  const all = whole * BigInt(counts.length);
  const common = divisor(all, parts);
  return Number(parts / common) / Number(all / common);
}

/** What is a sum of floats, as it is held against a threshold or another one: to 8 decimals, as rewards count as equal. */
export const comparable = (value: number): number => Number(value.toFixed(8));

/** The middle value, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return mean(sorted.slice(Math.floor(middle), Math.ceil(middle) + 1));
}

/** Population standard deviation (divides by n): 0 for one value. */
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
export function wilsonInterval({
  successes,
  trials,
  confidence = 0.95,
}: {
  successes: number;
  trials: number;
  confidence?: number;
}): Estimate {
  if (!Number.isInteger(trials) || trials < 1) {
    throw new Error(`wilsonInterval: trials is ${trials}; it must be a whole number above 0`);
  }
  if (!(successes >= 0 && successes <= trials)) {
    throw new Error(`wilsonInterval: successes is ${successes}; it must lie between 0 and trials (${trials})`);
  }
  const z = quantileOf(confidence);
  const p = successes / trials;
  const scale = 1 + (z * z) / trials;
  const center = (p + (z * z) / (2 * trials)) / scale;
  const half = (z / scale) * Math.sqrt((p * (1 - p)) / trials + (z * z) / (4 * trials * trials));
  // The bounds are exact at the ends; round-off must not move them.
  const low = successes === 0 ? 0 : center - half;
  const high = successes === trials ? 1 : center + half;
  return { mean: p, low, high, n: trials };
}

/** Standard errors from the middle to the ends of a normal interval: 1.96 for 0.95. */
export function quantileOf(confidence: number): number {
  checkConfidence(confidence);
  return normalQuantile(0.5 + confidence / 2);
}

function checkConfidence(confidence: number): void {
  if (!(confidence > 0 && confidence < 1)) {
    throw new Error(`confidence is ${confidence}; it must lie between 0 and 1, both excluded, e.g. 0.95`);
  }
}

/**
 * Percentile bootstrap interval of the mean of per-task means. With no spread among the tasks it has no width: for one trial a
 * task with outcomes 0 and 1 use `wilsonInterval`.
 */
export function meanInterval({
  values,
  confidence = 0.95,
  seed = 1,
  resamples = 10_000,
}: {
  values: readonly number[];
  confidence?: number;
  seed?: number;
  resamples?: number;
}): Estimate {
  const center = mean(values);
  const random = seededRandom('bootstrap of a mean', seed);
  const means = Float64Array.from({ length: resamples }, () => {
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[Math.floor(random() * values.length)] ?? 0;
    return sum / values.length;
  });
  return { mean: center, ...percentiles(means, confidence), n: values.length };
}

/** Ends of the percentile interval of resampled means; they are sorted in place. */
export function percentiles(means: Float64Array, confidence: number): { low: number; high: number } {
  checkConfidence(confidence);
  means.sort();
  const last = means.length - 1;
  const at = (p: number) => means[Math.min(last, Math.max(0, Math.round(p * last)))] as number;
  return { low: at((1 - confidence) / 2), high: at((1 + confidence) / 2) };
}

/**
 * Rate of success over units that were tried several times each, or once: Wilson's interval where no unit is solved in part and each was tried
 * once, or all came out alike (a bootstrap of equal values would say that it is sure); else the bootstrap over the units.
 */
export function successRate({
  taskMeans,
  trials,
  confidence = 0.95,
  ...more
}: {
  taskMeans: readonly number[];
  trials: number;
  confidence?: number;
  seed?: number;
  resamples?: number;
}): Estimate & { method: 'wilson' | 'bootstrap' } {
  const successes = taskMeans.filter((value) => value === 1).length;
  const binary = taskMeans.every((value) => value === 0 || value === 1);
  const alike = successes === 0 || successes === taskMeans.length;
  return binary && (trials === 1 || alike)
    ? { ...wilsonInterval({ successes, trials: taskMeans.length, confidence }), method: 'wilson' }
    : { ...meanInterval({ values: taskMeans, confidence, ...more }), method: 'bootstrap' };
}

/** Unbiased estimate of the chance that at least one of k attempts succeeds, from `successes` of `trials` attempts at one task. */
export function passAtK({ trials, successes, k }: { trials: number; successes: number; k: number }): number {
  if (!Number.isInteger(k) || k < 1 || k > trials) {
    throw new Error(`passAtK: k is ${k}; it must be a whole number between 1 and trials (${trials})`);
  }
  if (!Number.isInteger(successes) || successes < 0 || successes > trials) {
    throw new Error(`passAtK: successes is ${successes}; it must be a whole number between 0 and trials (${trials})`);
  }
  // 1 - C(trials - successes, k) / C(trials, k), as a product, which neither overflows nor cancels.
  let allFail = 1;
  for (let i = 0; i < k; i++) allFail *= Math.max(0, trials - successes - i) / (trials - i);
  return 1 - allFail;
}
