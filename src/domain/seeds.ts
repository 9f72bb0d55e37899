/**
 * Seeded randomness, and the seeds of synthesized environments. The ranges are disjoint, so that no instance that was trained on calibrates or
 * validates. A task id is `seed-<n>`, n below 2^31; that of a mixture of environments `<environment>/seed-<n>`.
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

export const CALIBRATION_SEEDS = 0;
export const TRAINING_SEEDS = 10_000;
export const HELD_OUT_SEEDS = 1_000_000;

/** The seeds that tasks() lists; every other seed is a task as well. */
export const LISTED = {
  train: { from: TRAINING_SEEDS, count: 1_000 },
  test: { from: HELD_OUT_SEEDS, count: 1_000 },
} as const;

const LIMIT = 2 ** 31;

/** Seeds that belong together: a special instance and its twin. */
export const TOGETHER = 2;
const pairOf = (seed: number): number => Math.floor(seed / TOGETHER);

export interface Seeds {
  from: number;
  count: number;
  /** Seeds that must not be used: they are left out with those that belong to them, and the next take their places. */
  without?: readonly number[];
}

/** `count` task ids from seed `from` on: `seedTasks({ from: TRAINING_SEEDS, count: 400 })`. */
export function seedTasks({ from, count, without = [] }: Seeds): string[] {
  const excluded = new Set(without.map(pairOf));
  const tasks: string[] = [];
  for (let seed = from; tasks.length < count; seed += 1) if (!excluded.has(pairOf(seed))) tasks.push(`seed-${seed}`);
  return tasks;
}

/** The seed of a task id. Throws a RangeError that names the id if it is not `seed-<n>` with n below 2^31. */
export function seedOf(task: string): number {
  const seed = Number(/^seed-(\d{1,10})$/.exec(task)?.[1]);
  if (seed < LIMIT) return seed;
  throw new RangeError(`task "${task}": a synthesized environment's tasks are seed-<n>, n below 2^31`);
}

/** `count` task ids of a mixture: a pair of one environment, then of the next. Any `2 * environments` in a row hold a pair of each. */
export function mixedTasks({ of, count }: { of: readonly Omit<Seeds, 'count'>[]; count: number }): string[] {
  const tasks = of.map((seeds) => seedTasks({ ...seeds, count: seedsOfEach(of.length, count) }));
  return Array.from({ length: count }, (_, n) => {
    const environment = pairOf(n) % of.length;
    const own = TOGETHER * Math.floor(pairOf(n) / of.length) + (n % TOGETHER);
    return `${environment}/${tasks[environment]![own]!}`;
  });
}

/** Returns how many seeds of each environment a mixture of `count` tasks takes at most. */
export const seedsOfEach = (environments: number, count: number): number =>
  TOGETHER * Math.ceil(count / (TOGETHER * environments));

/** Which environment of a mixture a task is of, and its id there. Throws a RangeError that names the id if it is not `<n>/seed-<k>`. */
export function mixedTaskOf(task: string, environments: number): { environment: number; id: string } {
  const [, environment = '', id = ''] = /^(\d{1,4})\/(seed-\d+)$/.exec(task) ?? [];
  if (id !== '' && Number(environment) < environments) return { environment: Number(environment), id };
  throw new RangeError(`task "${task}": a mixture's tasks are <n>/seed-<k>, n below ${environments}`);
}
