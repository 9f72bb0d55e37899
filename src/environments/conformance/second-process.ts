/** The same in another process: rollouts of one batch are played in several, and resumed in others. */
import { splitSchema, type Environment } from '../../domain/environment';
import type { Checked } from './checked';
import { firstDifference } from './difference';
import { play } from './playing';
import { SOLVED_FIX, unsolved } from './reference';
import { startOf, untouched } from './start';
import { busyScript, richest } from './valid-calls';

const FIX =
  'derive it from task and seed: no process id, no clock, no order of a set or a hash that changes with the process';

export async function checkSecondProcess(checked: Checked, again: () => Promise<Environment>): Promise<void> {
  const other = await checked.attempt('second process', again);
  if (!other) return;
  try {
    await compareWith(other, checked);
  } finally {
    await other.close().catch(() => undefined);
  }
}

async function compareWith(other: Environment, checked: Checked): Promise<void> {
  const { environment, description, lists, samples, findings, add, attempt } = checked;
  const compare = (check: string, what: string, one: unknown, two: unknown): boolean => {
    const difference = firstDifference(one, two);
    if (difference !== undefined) add(check, `${what} differs in a second process: ${difference}`, FIX);
    return difference === undefined;
  };
  // What is wrong in one process already is not said again of two.
  const isFound = (method: string) => findings.some(({ check }) => check.startsWith(method));
  const name = 'second process';
  const described = await attempt(`describe (${name})`, () => other.describe());
  if (!described) return;
  compare('describe', 'the description', description, described);
  for (const split of splitSchema.options) {
    const tasks = await attempt(`tasks (${name})`, () => other.tasks(split));
    if (tasks) compare('tasks', `tasks(${split})`, lists[split], tasks);
  }
  for (const [n, { task, start, untouched: before }] of samples.entries()) {
    if (n > 1 && !checked.hasTime()) break;
    const begun = await attempt(`reset (${name})`, () => startOf({ environment: other, task }));
    if (!begun || (start && !compare('reset', `the start of task ${task}`, start, begun))) break;
    const reward = before && (await attempt(`evaluate (${name})`, () => untouched({ environment: other, task })));
    if (reward && !compare('evaluate', `the evaluation of task ${task}, left alone,`, before, reward)) break;
  }
  if (isFound('step') || isFound('reset')) return;
  const sample = richest(samples);
  const script = busyScript(checked);
  const both = await attempt(`step (${name})`, async () => [
    await play({ environment, task: sample.task, script }),
    await play({ environment: other, task: sample.task, script }),
  ]);
  if (both) compare('step', `task ${sample.task}, played,`, both[0], both[1]);
  const reference = sample.untouched?.reference;
  if (!reference || isFound('evaluate') || checked.isUserPlayed()) return;
  const problem = await attempt(`evaluate (${name})`, () => unsolved({ environment: other }, sample, reference));
  if (problem) add(`evaluate (${name})`, problem, SOLVED_FIX);
}
