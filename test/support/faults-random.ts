/** Chance that can be repeated: everything random in the fault tests follows from FAULT_SEED and the scenario's name. */
import { seedOf } from '../../src/artifacts/hash';

export const faultSeed = Number(process.env['FAULT_SEED'] ?? 1);

export interface Random {
  /** In [0, 1). */
  next(): number;
  between(low: number, high: number): number;
  pick<T>(items: readonly T[]): T;
}

/** The draws of one scenario (mulberry32). */
export function randomOf(name: string, seed = faultSeed): Random {
  let state = seedOf(`${seed}/${name}`);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (low, high) => low + next() * (high - low),
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new Error('nothing to pick from');
      return item;
    },
  };
}
