/** Outcomes of arms task by task, run by run, as tables without gaps. Invariant: every run's row is over the same tasks, in the same order. */
import { acrossTrainings, pairedDifference, TRAINING_SPREAD, type PairedTest } from '../../domain/paired-statistics';
import { mean, standardDeviation, successRate } from '../../domain/statistics';
import type { SolverMatrix } from '../../domain/reported-arms';
import type { Run } from './comparison';

/** A mean over runs and tasks. `runs`: draws; those that share both seeds are one. */
export interface Span {
  value: number;
  low: number;
  high: number;
  runs: number;
  /** Of each run. */
  tasks: number;
}

/** Shares of the trials solved, by task; a task of which an arm has no scored rollout is not there. */
function columnsOf({ tasks, options, outcomes }: SolverMatrix, arms: readonly string[]): Map<string, number[]> {
  const places = arms.map((arm) => options.indexOf(arm));
  return new Map(
    tasks.flatMap((task, row) => {
      const values = places.map((place) => outcomes[row]?.[place] ?? null);
      return values.every((value) => value !== null) ? [[task, values] as const] : [];
    }),
  );
}

/** Of the runs that have all of the arms: what each of them came to, task by task, on the tasks that all of these runs share. */
export function sharedOutcomes(
  runs: readonly Run[],
  arms: readonly string[],
): { run: Run; values: number[][]; test?: PairedTest }[] {
  const having = runs
    .filter(({ matrix }) => arms.every((arm) => matrix.options.includes(arm)))
    .map((run) => ({ run, columns: columnsOf(run.matrix, arms) }));
  const [first, ...others] = having;
  const tasks = [...(first?.columns.keys() ?? [])]
    .filter((task) => others.every(({ columns }) => columns.has(task)))
    .sort();
  return having.map(({ run, columns }) => {
    const values = tasks.map((task) => columns.get(task) as number[]);
    const side = (place: number) => new Map(tasks.map((task, i) => [task, values[i]?.[place] as number]));
    const test =
      arms.length === 2 && tasks.length > 0
        ? pairedDifference({ treatment: side(0), control: side(1) }).test
        : undefined;
    return { run, values, ...(test && { test }) };
  });
}

/** By what runs were drawn: those that share both seeds are one draw, however often it was made. */
export const drawOf = ({ report: { campaign } }: Run): string =>
  `${campaign.seed} ${campaign.trainingSeed ?? campaign.seed}`;

/** A row of each draw: runs of the same seeds are one, their mean. */
export function rowsOf(own: readonly { run: Run; values: number[][] }[], of: (values: number[]) => number): number[][] {
  const draws = new Map<string, number[][]>();
  for (const { run, values } of own) draws.set(drawOf(run), [...(draws.get(drawOf(run)) ?? []), values.map(of)]);
  return [...draws.values()].map(meansByTask);
}

/** Success of one arm: over the tasks, by their means over the draws. */
export function rateOver({ own, level }: { own: ReturnType<typeof sharedOutcomes>; level: number }): Span | undefined {
  const rows = rowsOf(own, ([value]) => value as number);
  const taskMeans = meansByTask(rows);
  if (taskMeans.length === 0) return undefined;
  const { mean: value, low, high } = successRate({ taskMeans, trials: rows.length, confidence: level });
  return { value, low, high, runs: rows.length, tasks: taskMeans.length };
}

/**
 * A difference over the tasks, widened for other trainings: by their usual spread, or by that of these draws where it is larger. `rows`: of each
 * draw, task by task. Undefined where there is nothing to estimate.
 */
export function differenceOver({ rows, level }: { rows: readonly number[][]; level: number }): Span | undefined {
  const taskMeans = meansByTask(rows);
  if (taskMeans.length === 0) return undefined;
  const byTask = (values: readonly number[]) => new Map(values.map((value, task) => [`${task}`, value]));
  const pairs = { treatment: byTask(taskMeans), control: byTask(taskMeans.map(() => 0)) };
  const { mean: value, ...overTasks } = pairedDifference({ ...pairs, confidence: level });
  const spread = Math.max(TRAINING_SPREAD, standardDeviation(rows.map(mean)));
  const ends = acrossTrainings({ mean: value, ...overTasks }, { level, runs: rows.length, spread });
  return { value, ...ends, runs: rows.length, tasks: taskMeans.length };
}

const meansByTask = (rows: readonly number[][]): number[] =>
  (rows[0] ?? []).map((_, task) => mean(rows.map((row) => row[task] as number)));
