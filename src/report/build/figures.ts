/** Figures from the outcomes of batches: value, n, interval and origin together, or an empty figure where nothing was measured. */
import type { ArtifactRef } from '../../domain/artifacts';
import type { Figure } from '../../domain/figure';
import { successDifference, type TaskMeans } from '../../domain/paired-statistics';
import { type Estimate, meanInterval, successRate } from '../../domain/statistics';
import { z } from 'zod';
import type { ArtifactStore } from '../../artifacts/store';
import { jsonText } from '../../domain/messages';
import type { Task } from '../../domain/environment';
import { OVERALL, type PublishedArm, publishedRun } from '../../domain/presets';
import type { ReportDraft, TaskGroup } from '../model';

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
const intervalFigure = (figure: {
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

/** Each batch once: equal policies (a training that found nothing to learn) share their batches. */
export const distinct = <Batch extends { ref: ArtifactRef }>(batches: readonly Batch[]): Batch[] => [
  ...new Map(batches.map((batch) => [batch.ref.sha256, batch])).values(),
];

/** The branches of several batches' tasks, in order of name, each with its part of every batch. */
export function byBranch(...batches: TaskMeans[]): { branch: string; parts: TaskMeans[] }[] {
  const names = new Set(batches.flatMap(({ branch }) => [...branch.values()]));
  const part = (means: TaskMeans, name: string): TaskMeans => {
    const of = <V>(values: Map<string, V>) => new Map([...values].filter(([task]) => means.branch.get(task) === name));
    return { ...means, success: of(means.success), reward: of(means.reward), branch: of(means.branch) };
  };
  return [...names].sort().map((branch) => ({ branch, parts: batches.map((means) => part(means, branch)) }));
}

/** A JSON artifact, checked. Throws if it is not what the report takes it for. */
export async function readArtifact<S extends z.ZodType>(o: {
  store: ArtifactStore;
  ref: ArtifactRef;
  schema: S;
  /** What it should be, for the error. */
  what: string;
}): Promise<z.output<S>> {
  const { store, ref, schema, what } = o;
  const parsed = jsonText.pipe(schema).safeParse((await store.read(ref)).toString('utf8'));
  if (parsed.success) return parsed.data;
  throw new Error(`${ref.uri} is not ${what}: ${z.prettifyError(parsed.error)}; it was made by another version`);
}

export function groupsOf(o: {
  /** By arm. */
  columns: ReadonlyMap<string, TaskMeans>;
  tasks: readonly Task[];
  level: Level;
  /** Of the figures. */
  id?: string;
}): Pick<ReportDraft, 'groups'> {
  const { columns, tasks, level, id: prefix = 'groups' } = o;
  const evaluated = new Set([...columns.values()].flatMap(({ reward }) => [...reward.keys()]));
  const members = new Map<string, Set<string>>();
  for (const { id, groups = [] } of tasks) {
    if (!evaluated.has(id)) continue;
    for (const name of groups) {
      const group = slug(name);
      const known = members.get(group) ?? new Set();
      members.set(group, known.add(id));
    }
  }
  members.delete(OVERALL);
  if (members.size === 0) return {};
  const rows = [...members].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    groups: [...rows, [OVERALL, evaluated] as const].map(([group, ids]): TaskGroup => {
      const id = `${prefix}.${group}`;
      const arms = [...columns].map(([arm, means]) => {
        const own = within(means, ids);
        return {
          arm,
          successRate: rateFigure({ id: `${id}.${slug(arm)}.success_rate`, means: own, level }),
          meanReward: rewardFigure({ id: `${id}.${slug(arm)}.mean_reward`, means: own, level }),
        };
      });
      return { group, tasks: ids.size, arms };
    }),
  };
}

/** Published figures of the same groups; `overall` only where it is over the same ones. */
export function publishedOf(
  published: readonly PublishedArm[],
  groups: readonly TaskGroup[],
): Pick<ReportDraft, 'published'> {
  const ours = groups.map(({ group }) => group).filter((group) => group !== OVERALL);
  const arms = published.flatMap(({ arm, cells }) => {
    const parts = cells.map(({ group }) => group).filter((group) => group !== OVERALL);
    const same = parts.length === 0 || (parts.length === ours.length && parts.every((part) => ours.includes(part)));
    const shown = cells.filter(({ group }) => (group === OVERALL ? same : ours.includes(group)));
    return shown.length > 0 ? [{ arm, cells: shown }] : [];
  });
  const { source, setUp } = publishedRun;
  return arms.length > 0 ? { published: { source, setUp, arms } } : {};
}

function within(means: TaskMeans, ids: ReadonlySet<string>): TaskMeans {
  const only = (values: Map<string, number>) => new Map([...values].filter(([task]) => ids.has(task)));
  return { ...means, success: only(means.success), reward: only(means.reward) };
}
