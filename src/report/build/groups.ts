/** Success of each arm by group of tasks, where the target names groups. */
import type { Task } from '../../domain/environment';
import type { TaskMeans } from '../../domain/statistics';
import type { TaskGroup } from '../model';
import { type Level, only, rateFigure, slug } from './figures';

/** A row a group of evaluated tasks, by name. */
export function groupsOf(o: {
  /** Means by arm. */
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
      members.set(name, (members.get(name) ?? new Set()).add(task.id));
  if (members.size === 0) return {};
  const groups = [...members].sort(([a], [b]) => (a < b ? -1 : 1));
  const slugs = groups.map(([name]) => slug(name));
  return {
    groups: groups.map(([group, ids], n) => ({
      group,
      tasks: ids.size,
      arms: [...columns].map(([arm, means]) => {
        // Names may make the same part of an id.
        const at = `${id}.${slugs[n]}${slugs.indexOf(slugs[n]!) === n ? '' : `-${n}`}`;
        const own = only(means, (task) => ids.has(task));
        return { arm, successRate: rateFigure(`${at}.${slug(arm)}.success_rate`, own, level) };
      }),
    })),
  };
}
