/** Which rollouts of its batches a figure is over, where these are not all: it follows from where the figure stands in the report. */
import { type Figure, figuresIn } from '../domain/artifacts';
import type { Report } from './model';

/** The scored ones that agree in what is given. */
export interface Part {
  branch?: string;
  /** What the router chose. */
  chosen?: string;
  stop?: string;
  tasks?: readonly string[];
}

interface ScoredRollout {
  task: string;
  stop: string;
  branch?: string | undefined;
  chosen?: string | undefined;
}

export const isIn = (part: Part, { task, branch, chosen, stop }: ScoredRollout): boolean =>
  (part.branch ?? branch) === branch &&
  (part.chosen ?? chosen) === chosen &&
  (part.stop ?? stop) === stop &&
  (part.tasks?.includes(task) ?? true);

export function partText({ branch, chosen, stop, tasks = [] }: Part): string {
  if (branch !== undefined) return `scored rollouts of branch ${branch}`;
  if (chosen !== undefined) return `scored rollouts that the router gave to ${chosen}`;
  if (stop !== undefined) return `scored rollouts that ended by ${stop}`;
  return `scored rollouts of ${tasks.length} tasks`;
}

/** Undefined where it is over all, or where the report does not tell. */
export function partOf(report: Report, { id }: Figure): Part | undefined {
  const { router, groups = [], base, arms = [] } = report;
  const holds = (value: unknown) => figuresIn(value).some((one) => one.id === id);
  const choice = router?.choices?.find(({ successRate }) => successRate?.id === id);
  if (choice) return { chosen: choice.option };
  const tasks = [...groups, ...(base?.groups ?? [])].find(holds)?.ids;
  if (tasks) return { tasks };
  const ended = arms.flatMap(({ stopReasons = [] }) => stopReasons).find(holds);
  if (ended) return { stop: ended.reason };
  const branch = branchesIn(report).find(holds)?.branch;
  return branch === undefined ? undefined : { branch };
}

/** All that is told of single branches. */
function branchesIn(value: unknown): { branch: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('branch' in value && typeof value.branch === 'string') return [value as { branch: string }];
  return Object.values(value).flatMap(branchesIn);
}
