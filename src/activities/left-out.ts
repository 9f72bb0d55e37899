/**
 * Seeds of a synthesized environment that are not used, since an instance of theirs says the text of one of the target's test tasks. Invariant:
 * a function of the module, those texts and the range, kept under their key, so that whoever resolves tasks comes to the same ones.
 */
import { z } from 'zod';
import { digest } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { EnvironmentSpec } from '../domain/kinds';
import { OutsideFailure } from '../domain/failures';
import type { Work } from '../domain/work';
import { leaksOf } from '../sandbox/instance-leaks';
import { messageHash } from '../sandbox/leakage';
import { openModule } from '../sandbox/module';
import { TOGETHER } from '../sandbox/seeds';
import { keptJson, readJson } from './context';
import type { EnvironmentPool } from './environments';
import { testTexts } from './test-texts';

/** Changes whenever other seeds would be left out. */
const VERSION = '2'; // A seed is no longer left out for its easier instance.

export interface Range {
  from: number;
  /** Seeds that are needed. */
  count: number;
}

export interface LeftOut {
  seeds: number[];
  /** Where they are kept; absent where the target has no test tasks. */
  ref?: ArtifactRef;
}

export async function leftOut(
  o: { store: ArtifactStore; environments: EnvironmentPool; progress: Work['progress'] },
  { module, unlike, range }: { module: ArtifactRef; unlike: EnvironmentSpec; range: Range },
): Promise<LeftOut> {
  const { store, progress } = o;
  const forbidden = await forbiddenOf(o, unlike);
  if (forbidden.length === 0 || range.count === 0) return { seeds: [] };
  const key = `left-out/${digest({ version: VERSION, module: module.sha256, forbidden, range })}`;
  const ref = await keptJson(store, { key, producer: 'leftOut', inputs: [module] }, async () => {
    const opened = openModule({ source: (await store.read(module)).toString('utf8') });
    try {
      const seeds: number[] = [];
      let usable = 0;
      for (let seed = range.from; usable < range.count; seed += TOGETHER) {
        const pair = Array.from({ length: TOGETHER }, (_, n) => seed + n);
        const leaks = await leaksOf(opened, { seeds: pair, forbidden });
        if (leaks.length === 0) usable += TOGETHER;
        else seeds.push(...pair);
        if (seeds.length > range.count) throw tooMany(range, seeds.length);
        progress(Math.min(usable, range.count), range.count);
      }
      return seeds;
    } finally {
      await opened.close();
    }
  });
  return { seeds: await readJson(store, ref, z.array(z.number())), ref };
}

/** messageHash() of the texts of a target's test tasks, sorted. */
export async function forbiddenOf(
  o: { store: ArtifactStore; environments: EnvironmentPool; progress: Work['progress'] },
  target: EnvironmentSpec,
): Promise<string[]> {
  const texts = await testTexts({ ...o, environment: await o.environments.get(target) });
  return [...new Set([...texts.keys()].map(messageHash))].sort();
}

const tooMany = ({ from, count }: Range, left: number) =>
  new OutsideFailure(
    'BadEnvironment',
    `${left} seeds from ${from} on say the text of a test task, and ${count} others are needed: word the instances otherwise`,
  );
