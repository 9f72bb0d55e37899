/**
 * Where a self-test plays its episodes. Invariants: a few at a time, so that what they hold is of limited size; none begins when the
 * module's time is spent; what has been played is told.
 */
import { createLimit } from '../domain/concurrency';
import { SELF_TEST_EPISODE_CPU_MS } from './limits';
import type { EnvironmentModule } from './module';
import { play, type ScriptedEpisode, type Script } from './scripted-episode';

const PARALLEL = 8;

/** What has been played so far, of what is planned as far as that is known. */
export type TestProgress = (done: number, total: number) => void;

export interface Tested {
  module: EnvironmentModule;
  progress: TestProgress;
  cpuMs: number;
}

/** Its message is a finding. */
export class OutOfTime extends Error {}

export interface Stage {
  play(seed: number, script: Script, maxSteps?: number): Promise<ScriptedEpisode>;
  /** For each item, some at a time. */
  each<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]>;
  plan(episodes: number): void;
  /** Episodes that were planned and need not be played. */
  skip(episodes: number): void;
}

/** Plays episodes as long as the module has time left, counted from here on. */
export function openStage({ module, progress, cpuMs, episodes }: Tested & { episodes: number }): Stage {
  let [done, total] = [0, episodes];
  const before = module.spent().cpuMs;
  const count = (episodes: number): void => {
    done += episodes;
    total = Math.max(total, done);
    progress(done, total);
  };
  const limit = createLimit(PARALLEL);
  return {
    async play(seed, script, maxSteps) {
      const spent = module.spent();
      const limit = Math.max(cpuMs, SELF_TEST_EPISODE_CPU_MS * total);
      if (spent.cpuMs - before > limit)
        throw new OutOfTime(timeFinding({ cpuMs: limit, episodes: done, functions: spent.functions }));
      const episode = await play(module, { seed, script, ...(maxSteps !== undefined && { maxSteps }) });
      count(1);
      return episode;
    },
    each: (items, work) => Promise.all(items.map((item) => limit(() => work(item)))),
    plan: (episodes) => void (total += episodes),
    skip: count,
  };
}

function timeFinding(o: {
  cpuMs: number;
  episodes: number;
  functions: ReturnType<EnvironmentModule['spent']>['functions'];
}): string {
  const slowest = o.functions.sort((a, b) => b.ms - a.ms).slice(0, 3);
  const told = slowest.map(({ name, calls, ms }) => `${name} ${(ms / 1000).toFixed(1)} s in ${calls} calls`);
  return (
    `the self-test ends unfinished: ${o.cpuMs / 1000} s of computing went into ${o.episodes} episodes ` +
    `(${told.join(', ')}): make these functions faster`
  );
}
