/**
 * Rows of a table over several seeds: policies on the same test tasks. Invariants: two rows are compared in the seeds that have both, over the
 * tasks that both have an outcome of; intervals are those of `campaign compare`.
 */
import { mean, type PairedTest } from '../src/domain/statistics';
import type { Arm } from '../src/report/model';
import { differenceOver, rateOver, type Run, sharedOutcomes, type Span } from '../src/report/comparison';
import { type Finished, matrixOf } from './campaigns';
import type { Outcomes } from './lab';

export const LEVEL = 0.95;

export interface Row {
  name: string;
  /** Its success, over seeds and tasks; undefined where there is none. */
  success: Span | undefined;
  /** Means over the seeds. */
  trainingRollouts: number | undefined;
  allRollouts: number | undefined;
  differences: { against: string; difference: Span | undefined; tests: (PairedTest | undefined)[] }[];
  bySeed: { seed: number; success: number }[];
}

export const runOf = (finished: Finished): Run => {
  const { name, report } = finished;
  return { name, report, matrix: matrixOf(finished) };
};

/** The run with one more policy, of one trial a task; tasks of which nothing is known have no outcome. */
export function withPolicy(
  { name, report, matrix }: Run,
  { arm, outcomes }: { arm: Pick<Arm, 'name' | 'role' | 'trainingRollouts' | 'allRollouts'>; outcomes: Outcomes },
): Run {
  const { tasks, options } = matrix;
  const values = tasks.map((task) => outcomes.get(task) ?? null);
  const known = values.filter((value) => value !== null);
  const successRate = {
    ...{ id: `science.${report.arms?.length ?? 0}`, unit: 'fraction' as const, from: arm.trainingRollouts.from },
    ...{ value: known.length > 0 ? mean(known) : null, n: known.length },
  };
  const added: Arm = { ...arm, successRate, tasks: tasks.length, trials: 1, status: 'evaluated' };
  return {
    name,
    report: { ...report, arms: [...(report.arms ?? []), added] },
    matrix: {
      tasks,
      options: [...options, arm.name],
      outcomes: matrix.outcomes.map((row, n) => [...row, values[n] ?? null]),
    },
  };
}

/** What a policy of a run came to, task by task. */
export function outcomesOf({ matrix: { tasks, options, outcomes } }: Pick<Run, 'matrix'>, name: string): Outcomes {
  const place = options.indexOf(name);
  return new Map(tasks.map((task, n) => [task, outcomes[n]?.[place] ?? null]));
}

export function rowsOf(o: { runs: readonly Run[]; names: readonly string[]; against: readonly string[] }): Row[] {
  const { runs, names, against } = o;
  return names.map((name) => {
    const own = sharedOutcomes(runs, [name]);
    const arms = runs.flatMap(({ report }) => report.arms?.filter((arm) => arm.name === name) ?? []);
    const spent = (of: 'trainingRollouts' | 'allRollouts') => meanOf(arms.map((arm) => arm[of].value));
    return {
      name,
      success: rateOver({ own, level: LEVEL, isTrained: name !== 'base' }),
      trainingRollouts: spent('trainingRollouts'),
      allRollouts: spent('allRollouts'),
      differences: against.map((other) => differenceOf({ runs, name, other })),
      bySeed: own.flatMap(({ run, values }) =>
        values.length > 0
          ? [{ seed: run.report.campaign.seed, success: mean(values.map(([value]) => value as number)) }]
          : [],
      ),
    };
  });
}

function differenceOf({ runs, name, other }: { runs: readonly Run[]; name: string; other: string }) {
  if (name === other) return { against: other, difference: undefined, tests: [] };
  const shared = sharedOutcomes(runs, [name, other]);
  const rows = shared.map(({ values }) => values.map(([a, b]) => (a as number) - (b as number)));
  return { against: other, difference: differenceOver({ rows, level: LEVEL }), tests: shared.map(({ test }) => test) };
}

const meanOf = (values: readonly (number | null)[]): number | undefined => {
  const known = values.filter((value) => value !== null);
  return known.length > 0 ? mean(known) : undefined;
};
