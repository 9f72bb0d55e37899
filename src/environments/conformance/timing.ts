/** How long an environment takes. Invariant: it is timed from outside, as the engine meets it. */
import type { Environment } from '../../domain/environment';

export type Slowest = Partial<Record<'describe' | 'tasks' | 'reset' | 'step' | 'evaluate', number>>;

/** The environment, and the seconds of its slowest requests so far. */
export function timed(environment: Environment): { environment: Environment; slowest: Slowest } {
  const slowest: Slowest = {};
  async function within<Result>(method: keyof Slowest, work: () => Promise<Result>): Promise<Result> {
    const started = performance.now();
    try {
      return await work();
    } finally {
      slowest[method] = Math.max(slowest[method] ?? 0, (performance.now() - started) / 1000);
    }
  }
  return {
    slowest,
    environment: {
      describe: () => within('describe', () => environment.describe()),
      tasks: (split) => within('tasks', () => environment.tasks(split)),
      close: () => environment.close(),
      async reset(task, signal) {
        const episode = await within('reset', () => environment.reset(task, signal));
        return {
          start: episode.start,
          step: (message) => within('step', () => episode.step(message)),
          evaluate: (reason) => within('evaluate', () => episode.evaluate(reason)),
          close: () => episode.close(),
        };
      },
    },
  };
}
