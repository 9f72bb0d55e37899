/**
 * The smallest difference of two success rates that a campaign can find. The model is the least favourable one: all tasks are equally hard, and the two
 * policies succeed independently on each. Tasks that both solve, or both fail, make smaller differences visible.
 */
import { normalQuantile, quantileOf } from './statistics';

export interface Comparison {
  /** Test tasks, which both policies play. */
  tasks: number;
  /** Trials per task. */
  trials: number;
  /** Success rate of the base model. */
  base: number;
  /** Chance that the difference is found. */
  power?: number;
  confidence?: number;
}

const HALVINGS = 20;

/** Returns the smallest gain over the base that `pairedDifference` finds with this power; undefined if it finds none. */
export function detectableDifference(o: Comparison): number | undefined {
  const { power = 0.8, base } = o;
  let [low, high] = [0, 1 - base];
  if (powerOf(o, high) < power) return undefined;
  for (let n = 0; n < HALVINGS; n++) {
    const middle = (low + high) / 2;
    if (powerOf(o, middle) < power) low = middle;
    else high = middle;
  }
  return high;
}

const powerOf = (o: Comparison, difference: number): number =>
  o.trials === 1 ? signTestPower(o, difference) : signFlipPower(o, difference);

/** With one trial a task the test is the sign test over the tasks on which the policies differ. */
function signTestPower({ tasks, base, confidence = 0.95 }: Comparison, difference: number): number {
  const better = (1 - base) * (base + difference);
  const differ = better + base * (1 - base - difference);
  if (differ === 0) return 0;
  const logs = logFactorials(tasks);
  const binomial = (n: number, k: number, p: number): number => {
    if (p <= 0 || p >= 1) return k === (p <= 0 ? 0 : n) ? 1 : 0;
    return Math.exp(logs[n]! - logs[k]! - logs[n - k]! + k * Math.log(p) + (n - k) * Math.log1p(-p));
  };
  let power = 0;
  for (let m = 0; m <= tasks; m++) {
    const chance = binomial(tasks, m, differ);
    if (chance < 1e-9) continue;
    // Both tails of a fair coin together stay below the level.
    for (let [k, tail] = [m, 0]; k > m / 2; k--) {
      tail += binomial(m, k, 0.5);
      if (2 * tail >= 1 - confidence) break;
      power += chance * binomial(m, k, better / differ);
    }
  }
  return power;
}

/**
 * The normal approximation of the sign-flip test: under flipped signs the variance of a sum of differences is the sum of their squares. Simulated with
 * 30 to 100 tasks, the true power of an 80% difference is 77 to 83%.
 */
function signFlipPower({ tasks, trials, base, confidence = 0.95 }: Comparison, difference: number): number {
  const rate = base + difference;
  const variance = (base * (1 - base) + rate * (1 - rate)) / trials;
  if (variance === 0) return difference > 0 ? 1 : 0;
  const least = quantileOf(confidence) * Math.sqrt((variance + difference ** 2) / tasks);
  return normalShare((difference - least) / Math.sqrt(variance / tasks));
}

function logFactorials(n: number): Float64Array {
  const logs = new Float64Array(n + 1);
  for (let k = 2; k <= n; k++) logs[k] = logs[k - 1]! + Math.log(k);
  return logs;
}

/** The share of a standard normal distribution below z: the inverse of `normalQuantile`. */
function normalShare(z: number): number {
  let [low, high] = [1e-12, 1 - 1e-12];
  for (let n = 0; n < 40; n++) {
    const middle = (low + high) / 2;
    if (normalQuantile(middle) < z) low = middle;
    else high = middle;
  }
  return low;
}
