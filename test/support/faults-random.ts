/** Chance that can be repeated: everything random in the fault tests follows from FAULT_SEED and the scenario's name. */
import { seededRandom } from '../../src/domain/seeds';

export const faultSeed = Number(process.env['FAULT_SEED'] ?? 1);

export interface Random {
  /** In [0, 1). */
  next(): number;
  between(low: number, high: number): number;
  pick<T>(items: readonly T[]): T;
}

/** The draws of one scenario. */
export function randomOf(name: string, seed = faultSeed): Random {
  const next = seededRandom(name, seed);
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
