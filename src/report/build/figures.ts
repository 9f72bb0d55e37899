/** Makes the figures of a report: value, n, interval and origin together, or an empty figure where nothing was measured. */
import type { ArtifactRef } from '../../domain/artifacts';
import type { Figure } from '../../domain/figure';
import { successDifference, type TaskMeans } from '../../domain/paired-statistics';
import { meanInterval, successRate, type Estimate } from '../../domain/statistics';

/** A name as a part of a figure's id. */
export const slug = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9_+]+/g, '_')
    // Of a sum's parts: no name of one adapter has it.
    .replaceAll('+', '-');

export interface Level {
  confidence: number;
  /** Seed of the bootstraps. */
  seed: number;
}

/** What was not measured. */
export const nothing = (id: string): Figure => ({ id, value: null, n: 0, from: [] });

/** An estimate with its interval. */
export const intervalFigure = (figure: {
  id: string;
  estimate: Estimate;
  unit: Figure['unit'] & string;
  method: string;
  level: Level;
  from: ArtifactRef[];
}): Figure => {
  const { id, estimate, unit, method, level, from } = figure;
  const { mean: value, low, high, n } = estimate;
  return { id, value, n, unit, interval: { low, high, level: level.confidence, method }, from };
};

/** A success rate over tasks. */
export function rateFigure({ id, means, level }: { id: string; means: TaskMeans; level: Level }): Figure {
  const taskMeans = [...means.success.values()];
  if (taskMeans.length === 0) return nothing(id);
  const estimate = successRate({ taskMeans, trials: means.trials, ...level });
  const method = estimate.method === 'wilson' ? 'wilson' : 'bootstrap over tasks';
  return intervalFigure({ id, estimate, unit: 'fraction', method, level, from: means.from });
}

/** A mean reward over tasks. */
export function rewardFigure({ id, means, level }: { id: string; means: TaskMeans; level: Level }): Figure {
  const values = [...means.reward.values()];
  if (values.length === 0) return nothing(id);
  const estimate = meanInterval({ values, ...level });
  return intervalFigure({ id, estimate, unit: 'reward', method: 'bootstrap over tasks', level, from: means.from });
}

/** The paired difference of two success rates, over the tasks that both have. */
export function differenceFigure(o: {
  id: string;
  treatment: Pick<TaskMeans, 'success' | 'trials'> & { from?: ArtifactRef[] };
  control: Pick<TaskMeans, 'success' | 'trials'> & { from?: ArtifactRef[] };
  /** Of the two together, where they do not say it themselves. */
  from?: ArtifactRef[];
  level: Level;
  /** One is a bound over options of which the other is one: that it wins more tasks is no finding. */
  bound?: boolean;
}): Figure {
  const { id, treatment, control, level } = o;
  const difference = successDifference(o);
  if (!difference) return nothing(id);
  const { test, ...estimate } = difference;
  const from = o.from ?? [...(treatment.from ?? []), ...(control.from ?? [])];
  return {
    ...intervalFigure({ id, estimate, unit: 'difference', method: 'sign-flip test over tasks', level, from }),
    ...(test && { test }),
  };
}

/** A plain count or a number that has no interval: `n` is what it is over. */
export function plainFigure(figure: {
  id: string;
  value: number | null;
  n: number;
  unit?: Figure['unit'];
  std?: number;
  from: ArtifactRef[];
}): Figure {
  const { id, value, n, unit, std, from } = figure;
  return { id, value, n, ...(unit && { unit }), ...(std !== undefined && { std }), from };
}
