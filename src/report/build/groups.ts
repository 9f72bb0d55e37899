/**
 * The arms by group of tasks, as the target names the groups. Invariant: the last row is `overall`, over all test tasks; a target that
 * names no groups has none of these tables.
 */
import type { Task } from '../../domain/environment';
import type { TaskMeans } from '../../domain/paired-statistics';
import { OVERALL, publishedRun, type PublishedArm } from '../../domain/presets';
import type { ReportDraft } from '../../domain/report';
import type { TaskGroup } from '../../domain/reported-arms';
import { rateFigure, rewardFigure, slug, type Level } from './figures';

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
