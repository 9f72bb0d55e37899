/** Seeded randomness: the same seed and the same calls give the same draws on every machine. */
import { hash } from 'trace-campaign/plugin';

export type Random = ReturnType<typeof random>;

/** A text's FNV-1a with a final mix, as an unsigned integer. */
export function mixedHash(text: string): number {
  const h = hash(text);
  const mixed = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

export function random(seed: string) {
  let state = mixedHash(seed);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n: number): number => Math.floor(next() * n);
  const shuffle = <T>(values: readonly T[]): T[] => {
    const out = [...values];
    for (let i = out.length - 1; i > 0; i--) {
      const j = below(i + 1);
      [out[i], out[j]] = [out[j] as T, out[i] as T];
    }
    return out;
  };
  return {
    next,
    below,
    shuffle,
    pick: <T>(values: readonly T[]): T => values[below(values.length)] as T,
    /** `n` different values in random order. */
    sample: <T>(values: readonly T[], n: number): T[] => shuffle(values).slice(0, n),
    chance: (probability: number): boolean => next() < probability,
  };
}
