/** What `make science` was asked for, from its environment. Invariant: a wrong value is an error that names it, never another run. */
import { join, resolve } from 'node:path';

export const repository = resolve(__dirname, '..');

export interface Settings {
  /** Studies whose names match. */
  only: RegExp;
  seeds: number[];
  /** Campaigns, base models and what was found of them. */
  home: string;
  /** Everything made so small that its figures mean nothing: a test of the harness. */
  small: boolean;
}

const SMALL_SEEDS = '1';
const SEEDS = '1,2,3';

export function settingsOf(env: Readonly<Record<string, string | undefined>>): Settings {
  const small = (env['SMALL'] ?? '') !== '';
  const root = resolve(repository, env['SCIENCE_HOME'] || '.science');
  return {
    only: patternOf(env['ONLY'] || '.'),
    seeds: seedsOf(env['SEEDS'] || (small ? SMALL_SEEDS : SEEDS)),
    home: small ? join(root, 'small') : root,
    small,
  };
}

function patternOf(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch {
    throw new Error(`ONLY is ${JSON.stringify(text)}; give a regular expression of studies, such as 'arms|null'`);
  }
}

function seedsOf(text: string): number[] {
  const seeds = text.split(',').map((one) => Number(one.trim() || NaN));
  if (seeds.every((seed) => Number.isInteger(seed) && seed >= 0) && new Set(seeds).size === seeds.length) return seeds;
  throw new Error(`SEEDS is ${JSON.stringify(text)}; give different whole numbers, such as 1,2,3`);
}
