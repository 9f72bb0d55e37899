/** Figures from task means: value, n, interval and origin together. What was not measured has no value, and an n of 0. */
import type { ArtifactRef, Figure } from '../../domain/artifacts';
import {
  successDifference,
  type TaskMeans,
  type Estimate,
  isAlike,
  meanInterval,
  successRate,
} from '../../domain/statistics';

/** A name as a part of a figure's id; what joins a sum's parts is in no name of one adapter. */
export const slug = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9_+]+/g, '_')
    .replaceAll('+', '-');

export interface Level {
  confidence: number;
  /** Seed of the bootstraps. */
  seed: number;
}

export const nothing = (id: string): Figure => ({ id, value: null, n: 0, from: [] });

/** `n`: what the value is over, where that is not the value itself. */
export const countFigure = (id: string, value: number, from: ArtifactRef[], n = value): Figure => {
  return { id, value, n, unit: 'count', from };
};

const OVER_TASKS = 'bootstrap over tasks';

type Interval = Pick<NonNullable<Figure['interval']>, 'level' | 'method'>;
type Estimated = Pick<Figure, 'id' | 'unit' | 'from'> & Interval & { estimate: Estimate };

function estimatedFigure({ id, unit, from, level, method, estimate }: Estimated): Figure {
  const { mean: value, low, high, n } = estimate;
  return { id, value, n, unit, interval: { low, high, level, method }, from };
}

/** A success rate over tasks. */
export function rateFigure(id: string, { success, trials, from }: TaskMeans, level: Level): Figure {
  if (success.size === 0) return nothing(id);
  const estimate = successRate({ taskMeans: [...success.values()], trials, ...level });
  const method = estimate.method === 'wilson' ? 'wilson' : OVER_TASKS;
  return estimatedFigure({ id, unit: 'fraction', from, level: level.confidence, method, estimate });
}

/** A mean reward over tasks. */
export function rewardFigure(id: string, { reward, from }: TaskMeans, level: Level): Figure {
  if (reward.size === 0) return nothing(id);
  const values = [...reward.values()];
  const method = isAlike(values) ? 'wilson' : OVER_TASKS;
  const estimate = meanInterval({ values, ...level });
  return estimatedFigure({ id, unit: 'reward', from, level: level.confidence, method, estimate });
}

type Side = Pick<TaskMeans, 'success' | 'trials' | 'from'>;

/** The paired difference of two success rates, over the tasks that both have. */
export function differenceFigure(o: { id: string; treatment: Side; control: Side; level: Level }): Figure {
  const { id, treatment, control, level } = o;
  const difference = successDifference(o);
  if (!difference) return nothing(id);
  const { test, ...estimate } = difference;
  const method = 'sign-flip test over tasks';
  const from = [...treatment.from, ...control.from];
  return { ...estimatedFigure({ id, unit: 'difference', from, level: level.confidence, method, estimate }), test };
}

/** The tasks of them that `keep` names. */
export function only(means: TaskMeans, keep: (task: string) => boolean): TaskMeans {
  const kept = <V>(values: Map<string, V>) => new Map([...values].filter(([task]) => keep(task)));
  return { ...means, success: kept(means.success), reward: kept(means.reward), branch: kept(means.branch) };
}

/** The branches of the batches' tasks, in order of name. */
export const branchesOf = (...batches: TaskMeans[]): string[] =>
  [...new Set(batches.flatMap(({ branch }) => [...branch.values()]))].sort();

export const ofBranch = (means: TaskMeans, branch: string): TaskMeans =>
  only(means, (task) => means.branch.get(task) === branch);
