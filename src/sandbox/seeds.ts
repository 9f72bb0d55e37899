/**
 * Seeds of synthesized environments. The ranges are disjoint, so that no instance that was trained on calibrates or
 * validates. A task id is `seed-<n>`, n below 2^31; seeds that belong together are left out together.
 */
export const CALIBRATION_SEEDS = 0;
export const TRAINING_SEEDS = 10_000;
export const HELD_OUT_SEEDS = 1_000_000;

const LIMIT = 2 ** 31;

/** Seeds that belong together: a special instance and its twin. */
export const TOGETHER = 2;

export interface Seeds {
  from: number;
  count: number;
  /** Seeds that must not be used: they are left out with those that belong to them, and the next take their places. */
  without?: readonly number[];
}

/** `count` task ids from seed `from` on: `seedTasks({ from: TRAINING_SEEDS, count: 400 })`. */
export const seedTasks = (seeds: Seeds): string[] => seedsOf(seeds).map((seed) => `seed-${seed}`);

export function seedsOf({ from, count, without = [] }: Seeds): number[] {
  const pairOf = (seed: number): number => Math.floor(seed / TOGETHER);
  const out = new Set(without.map(pairOf));
  const seeds: number[] = [];
  for (let seed = from; seeds.length < count; seed += 1) if (!out.has(pairOf(seed))) seeds.push(seed);
  return seeds;
}

/** The seed of a task id. Throws a RangeError that names the id if it is not `seed-<n>` with n below 2^31. */
export function seedOf(task: string): number {
  const seed = Number(/^seed-(\d{1,10})$/.exec(task)?.[1]);
  if (seed < LIMIT) return seed;
  throw new RangeError(`task "${task}": a synthesized environment's tasks are seed-<n>, n below 2^31`);
}

/**
 * `count` task ids of a mixture, whose environments' seeds are given: two of one in a row (a special instance and its twin), then two of the
 * next. So any `2 * environments` in a row hold a pair of each.
 */
export function mixedTasks({ of, count }: { of: readonly Omit<Seeds, 'count'>[]; count: number }): string[] {
  const each = seedsOfEach(of.length, count);
  const tasks = of.map((seeds) => seedTasks({ ...seeds, count: each }));
  return Array.from({ length: count }, (_, n) => {
    const pair = Math.floor(n / TOGETHER);
    const at = TOGETHER * Math.floor(pair / of.length) + (n % TOGETHER);
    return `${pair % of.length}/${tasks[pair % of.length]![at]!}`;
  });
}

/** How many of each environment's seeds a mixture of `count` tasks takes, at most. */
export const seedsOfEach = (environments: number, count: number): number =>
  TOGETHER * Math.ceil(count / (TOGETHER * environments));

/** Which environment of a mixture a task is of, and its id there. Throws a RangeError that names the id if it is not `<n>/seed-<k>`. */
export function mixedTaskOf(task: string, environments: number): { environment: number; id: string } {
  const [, environment = '', id = ''] = /^(\d{1,4})\/(seed-\d+)$/.exec(task) ?? [];
  if (id !== '' && Number(environment) < environments) return { environment: Number(environment), id };
  throw new RangeError(`task "${task}": a mixture's tasks are <n>/seed-<k>, n below ${environments}`);
}

/** What tasks() lists; every other seed is a task as well. Training seeds are `train`, held-out ones `test`. */
export const LISTED = {
  train: { from: TRAINING_SEEDS, count: 1_000 },
  test: { from: HELD_OUT_SEEDS, count: 1_000 },
} as const;
