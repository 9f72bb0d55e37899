/**
 * Seeds of synthesized environments. Invariant: the ranges are disjoint, so that no instance that an adapter was trained on is used to
 * calibrate its environment or to choose and validate its best iteration. A task id is `seed-<n>`; every n below 2^31 is a task.
 */
export const CALIBRATION_SEEDS = 0;
export const TRAINING_SEEDS = 10_000;
export const HELD_OUT_SEEDS = 1_000_000;

const LIMIT = 2 ** 31;

/** `count` task ids from seed `from` on: `seedTasks({ from: TRAINING_SEEDS, count: 400 })`. */
export function seedTasks({ from, count }: { from: number; count: number }): string[] {
  return Array.from({ length: count }, (_, n) => `seed-${from + n}`);
}

/** The seed of a task id. Throws a RangeError that names the id if it is not `seed-<n>` with n below 2^31. */
export function seedOf(task: string): number {
  const seed = Number(/^seed-(\d{1,10})$/.exec(task)?.[1] ?? NaN);
  if (!(seed < LIMIT))
    throw new RangeError(`task "${task}": a synthesized environment's tasks are seed-<n>, n below 2^31`);
  return seed;
}

/** Seeds that belong together: a special instance and its twin. */
export const TOGETHER = 2;

/**
 * `count` task ids of a mixture, each environment's seeds from `from` on: two of one in a row (a special instance and its twin), then two of
 * the next. So any `2 * environments` in a row hold a pair of each.
 */
export function mixedTasks(o: { environments: number; from: number; count: number }): string[] {
  const { environments, from, count } = o;
  return Array.from({ length: count }, (_, n) => {
    const pair = Math.floor(n / TOGETHER);
    const seed = from + TOGETHER * Math.floor(pair / environments) + (n % TOGETHER);
    return `${pair % environments}/seed-${seed}`;
  });
}

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
