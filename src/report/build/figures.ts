/** Figures from task means, with value, n, interval and origin. A figure that was not measured has no value, and n is 0. */
import type { ArtifactRef, Figure } from '../../domain/artifacts';
import {
  successDifference,
  type Successes,
  type TaskMean,
  type TaskMeans,
  type Estimate,
  isAlike,
  meanInterval,
  passPower,
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

/** `n`: number of units of the value, if it is not the value itself. */
export const countFigure = (id: string, value: number, from: ArtifactRef[], n = value): Figure => {
  return { id, value, n, unit: 'count', from };
};

const OVER_TASKS = 'bootstrap over tasks';

type Interval = Pick<NonNullable<Figure['interval']>, 'level' | 'method'>;
type Estimated = Pick<Figure, 'id' | 'unit' | 'from'> & Interval & { estimate: Estimate };

function estimatedFigure({ id, unit, from, level, method, estimate }: Estimated): Figure {
  const { value, low, high, n } = estimate;
  return { id, value, n, unit, interval: { low, high, level, method }, from };
}

/** A success rate over tasks. */
export function rateFigure(id: string, { tasks, trials, from }: TaskMeans, level: Level): Figure {
  if (tasks.size === 0) return nothing(id);
  const estimate = successRate({ taskMeans: [...tasks.values()].map(({ success }) => success), trials, ...level });
  const method = estimate.method === 'wilson' ? 'wilson' : OVER_TASKS;
  return estimatedFigure({ id, unit: 'fraction', from, level: level.confidence, method, estimate });
}

/** pass^k for k from 2 to the number of trials, each over the tasks with k scored trials. */
export function passPowerFigures(id: string, { tasks, trials, from }: TaskMeans, level: Level): Figure[] {
  return Array.from({ length: Math.max(0, trials - 1) }, (_, n) => {
    const k = n + 2;
    const values = [...tasks.values()].flatMap(({ success, trials: own = 0 }) =>
      own >= k ? [passPower({ successes: Math.round(success * own), trials: own, k })] : [],
    );
    const at = `${id}.pass_power_${k}`;
    if (values.length === 0) return nothing(at);
    const method = isAlike(values) ? 'wilson' : OVER_TASKS;
    const estimate = meanInterval({ values, ...level });
    return estimatedFigure({ id: at, unit: 'fraction', from, level: level.confidence, method, estimate });
  });
}

/** A mean reward over tasks. */
export function rewardFigure(id: string, { tasks, from }: TaskMeans, level: Level): Figure {
  if (tasks.size === 0) return nothing(id);
  const values = [...tasks.values()].map(({ reward }) => reward);
  const method = isAlike(values) ? 'wilson' : OVER_TASKS;
  const estimate = meanInterval({ values, ...level });
  return estimatedFigure({ id, unit: 'reward', from, level: level.confidence, method, estimate });
}

type Side = Successes & Pick<TaskMeans, 'from'>;

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

/** Keeps the tasks for which `keep` returns true. */
export const only = (means: TaskMeans, keep: (task: string, mean: TaskMean) => boolean): TaskMeans => ({
  ...means,
  tasks: new Map([...means.tasks].filter(([task, mean]) => keep(task, mean))),
});

/** The branches of the batches' tasks, in order of name. */
export const branchesOf = (...batches: TaskMeans[]): string[] =>
  [...new Set(batches.flatMap(({ tasks }) => [...tasks.values()].flatMap(({ branch }) => branch ?? [])))].sort();

export const ofBranch = (means: TaskMeans, branch: string): TaskMeans =>
  only(means, (_task, mean) => mean.branch === branch);
