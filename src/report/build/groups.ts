/** Success and mean reward of each arm by group of tasks, where the target names groups. */
import { digest } from '../../store/hash';
import type { Task } from '../../domain/environment';
import type { TaskMeans } from '../../domain/statistics';
import type { TaskGroup } from '../model';
import { type Level, only, rateFigure, rewardFigure, slug } from './figures';

/** The group of all tasks. */
const OVERALL = 'overall';

/** A row a group of evaluated tasks, by name; the last is all tasks. */
export function groupsOf(o: {
  /** By arm. */
  columns: ReadonlyMap<string, TaskMeans>;
  tasks: readonly Task[];
  level: Level;
  /** Begins the ids of the figures. */
  id: string;
}): { groups?: TaskGroup[] } {
  const { columns, tasks, level, id } = o;
  const evaluated = new Set([...columns.values()].flatMap((means) => [...means.tasks.keys()]));
  const members = new Map<string, Set<string>>();
  for (const task of tasks)
    for (const name of evaluated.has(task.id) ? (task.groups ?? []) : [])
      if (name !== OVERALL) members.set(name, (members.get(name) ?? new Set()).add(task.id));
  if (members.size === 0) return {};
  const rows = [...members].sort(([a], [b]) => (a < b ? -1 : 1));
  // Names that make the same part of an id are told apart by their hash.
  const slugs = [OVERALL, ...members.keys()].map(slug);
  const idOf = (name: string): string => {
    const own = slug(name);
    const isAlone = slugs.filter((one) => one === own).length === 1;
    return name === OVERALL || isAlone ? own : `${own}-${digest(name).slice(0, 8)}`;
  };
  return {
    groups: [...rows, [OVERALL, evaluated] as const].map(([group, ids]) => ({
      group,
      tasks: ids.size,
      arms: [...columns].map(([arm, means]) => {
        const own = only(means, (task) => ids.has(task));
        const at = `${id}.${idOf(group)}.${slug(arm)}`;
        return {
          arm,
          successRate: rateFigure(`${at}.success_rate`, own, level),
          meanReward: rewardFigure(`${at}.mean_reward`, own, level),
        };
      }),
    })),
  };
}
