/** `tasks`: two splits that share nothing and stay as they are. */
import { splitSchema, taskSchema, type Environment, type Split, type Task } from '../../domain/environment';
import { firstIssue } from '../protocol';
import { quoted } from '../trouble';
import { SAMPLES } from './checked';
import { firstDifference } from './difference';
import type { Findings } from './finding';

export type Lists = Record<Split, Task[]>;

/** The lists; undefined if the train split has no task to begin. */
export async function checkTasks(environment: Environment, { add, attempt }: Findings): Promise<Lists | undefined> {
  const lists: Lists = { train: [], test: [] };
  const seen = new Map<string, Split>();
  for (const split of splitSchema.options) {
    const tasks = await attempt('tasks', () => environment.tasks(split));
    if (tasks === undefined) continue;
    if (tasks.length === 0) add('tasks', `the ${split} split is empty`, 'list at least one task in each split');
    for (const task of tasks) {
      const parsed = taskSchema.safeParse(task);
      if (!parsed.success) return void add('tasks', `${split}: ${firstIssue(parsed.error)}`, 'return {id, split}');
      const problem = problemOf({ task, split, other: seen.get(task.id) });
      if (problem) {
        add('tasks', problem.what, problem.fix);
        break;
      }
      seen.set(task.id, split);
    }
    const again = await attempt('tasks', () => environment.tasks(split));
    const difference = again && firstDifference(tasks, again);
    if (difference !== undefined)
      add('tasks', `tasks(${split}) differs when asked twice: ${difference}`, 'list the same tasks in the same order');
    lists[split] = tasks;
  }
  return lists.train.length > 0 ? lists : undefined;
}

function problemOf({ task, split, other }: { task: Task; split: Split; other: Split | undefined }) {
  const id = quoted(task.id, 60);
  if (task.split !== split)
    return { what: `tasks(${split}) lists ${id} of split ${task.split}`, fix: `list ${split} tasks only` };
  if (other !== undefined)
    return { what: `task ${id} is in ${other} and again in ${split}`, fix: 'give every task one id and one split' };
  return undefined;
}

/** Spread over the list, so that tasks of several kinds are among them. */
export function sampled(tasks: readonly Task[]): Task[] {
  const count = Math.min(SAMPLES, tasks.length);
  return Array.from({ length: count }, (_, n) => tasks[Math.floor((n * tasks.length) / count)]!);
}
