/**
 * Episodes that share nothing: in turn, in each other's midst, side by side, and in a second process.
 */
import { type Environment, type Episode, splitSchema } from '../../domain/environment';
import { busyScript, type Checked, firstDifference, play, type Played, playIn, richest, SEED } from './probe';
import { SOLVED_FIX, unsolved } from './rewards';
import { startOf, untouched } from './shapes';

/** As many as show what is shared; fewer of a slow environment. */
const [SIDE_BY_SIDE, OF_A_SLOW_ONE] = [8, 3];
const FIX = 'keep all state in the episode, copied afresh at reset, and draw nothing from a shared source';

export async function checkIndependence(checked: Checked): Promise<void> {
  const { environment, samples, add, attempt, hasTime } = checked;
  const { task, untouched: before } = richest(samples);
  const script = busyScript(checked);
  const played = () => play({ environment, task, script });
  const compare = (what: string, first: unknown, second: unknown): boolean => {
    const difference = firstDifference(first, second);
    if (difference !== undefined) add('step', `task ${task}, ${what}: ${difference}`, FIX);
    return difference === undefined;
  };

  await attempt('reset', () => beginAmongOpen(environment, task));
  await attempt('step (episodes in turn)', async () => {
    const first = await played();
    if (!compare('played twice in turn, is answered differently', first, await played())) return;
    const reward = await untouched({ environment, task });
    if (before && !compare('left alone after another episode has written', before, reward)) return;
    const [writing, waiting] = [
      await environment.reset({ id: task, seed: SEED }),
      await environment.reset({ id: task, seed: SEED }),
    ];
    const both: Played[] = [await playIn(writing, script), await playIn(waiting, script)];
    await Promise.all([writing.close(), waiting.close()]);
    if (!compare('played while another episode is open', first, both[0])) return;
    if (!compare('open while another episode wrote', first, both[1])) return;
    const times = hasTime() ? SIDE_BY_SIDE : OF_A_SLOW_ONE;
    const together = await Promise.all(Array.from({ length: times }, played));
    together.every((one) => compare(`played ${times} times side by side`, first, one));
  });
}

/** An id that counts the open episodes is given again once one before the last is closed. Whoever speaks to its process refuses it. */
async function beginAmongOpen(environment: Environment, task: string): Promise<void> {
  const open: Episode[] = [];
  const begin = async () => void open.push(await environment.reset({ id: task, seed: SEED }));
  try {
    await begin();
    await begin();
    await open.shift()!.close();
    await begin();
  } finally {
    for (const episode of open) await episode.close().catch(() => undefined);
  }
}

const PROCESS_FIX =
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
    if (difference !== undefined) add(check, `${what} differs in a second process: ${difference}`, PROCESS_FIX);
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
