/**
 * Several runs of one campaign as one comparison: the same target and base model, other training seeds. Invariants: a policy counts in the runs
 * that evaluated it, and two policies are compared in the runs that have both, over tasks that both have a scored rollout of; runs that share
 * both seeds are one draw and count as their mean.
 */
import type { ArtifactRef, Figure } from '../domain/artifacts';
import { acrossTrainings, direction, groupBy, mean, pairedDifference, successRate } from '../domain/statistics';
import { nothing, slug } from './build/figures';
import { fieldsOf, MISSING, shortPercent, type standingTexts } from './format';
import type { Arm, Report, SolverMatrix } from './model';
import { samePolicy } from './recommendation';

export interface Run {
  /** Its name in the comparison. */
  name: string;
  report: Report;
  matrix: SolverMatrix;
}

/** Success and difference are means over runs and shared test tasks, rollouts means over the runs. */
export interface ComparedArm extends Pick<
  Arm,
  'name' | 'role' | 'kind' | 'builtOn' | 'status' | 'differenceToBase' | 'allRollouts'
> {
  successRate: Figure;
  byRun: { run: string; successRate: number }[];
}

export interface ComparedPair {
  arm: string;
  against: string;
  difference: Figure;
  /** `ahead` and `behind` only where the interval over several trainings excludes zero. */
  standing: keyof typeof standingTexts;
  byRun: { run: string; difference: number }[];
}

export interface Comparison {
  target: Report['campaign']['target'];
  baseModel: string;
  level: number;
  /** `tasks`: that it evaluated on. */
  runs: { name: string; campaign: string; seed: number; trainingSeed: number; tasks: number }[];
  arms: ComparedArm[];
  /** The routed policy minus base and each baseline. */
  differences: ComparedPair[];
  /** Sentences that say how to read the comparison. */
  notes: string[];
  /** Fields of the configuration that are not the same in all runs, with the value of each run. */
  configDifferences: { field: string; values: string[] }[];
}

const seedsOf = ({ report: { campaign } }: Run): string =>
  `seed ${campaign.seed}, training seed ${campaign.trainingSeed ?? campaign.seed}`;

const armIn = ({ report }: Run, name: string): Arm | undefined => report.arms?.find((arm) => arm.name === name);

/** Runs are of one target and base model, which cli/report.ts checks; the order of arms is the first run's. */
export function comparisonOf({ runs, level }: { runs: readonly Run[]; level: number }): Comparison {
  const { target, baseModel } = runs[0]!.report.campaign;
  const arms = [...new Set(runs.flatMap(({ matrix }) => matrix.options))].map((name) => armOf(runs, name, level));
  const routed = arms.find(({ role }) => role === 'routed');
  const others = arms.filter(({ role }) => role === 'base' || role === 'baseline');
  return {
    ...{ target, baseModel, level, arms },
    runs: runs.map(({ name, report: { campaign }, matrix }) => ({
      ...{ name, campaign: campaign.name, seed: campaign.seed, trainingSeed: campaign.trainingSeed ?? campaign.seed },
      tasks: matrix.tasks.length,
    })),
    differences: routed ? others.flatMap((against) => pairOf(runs, [routed.name, against.name], level) ?? []) : [],
    notes: notesOf(runs, arms, level),
    configDifferences: configDifferences(runs),
  };
}

function notesOf(runs: readonly Run[], arms: readonly ComparedArm[], level: number): string[] {
  const draws = groupBy(runs, seedsOf);
  const most = Math.max(...runs.map(({ matrix }) => matrix.tasks.length));
  const shared = Math.max(...arms.map((arm) => arm.successRate.n));
  const notes: (string | false)[] = [
    `runs: ${runs.map((run) => `${run.name} (${seedsOf(run)})`).join(', ')}`,
    draws.size === 1
      ? `one training run of each arm: all runs share seed and training seed, so how far trainings differ on this target is unknown, and ${shortPercent(level)} intervals are over the test tasks alone`
      : `${shortPercent(level)} intervals are for other tasks and other trainings: over the test tasks, and by Student’s t over the runs; of base, and of what was trained once, over the tasks alone`,
    // Runs of other seeds evaluate on other tasks of a large target.
    shared < most &&
      `success rates and differences are over the ${shared} test tasks that are evaluated in all runs; runs that differ in --training-seed alone evaluate on the same`,
    ...arms.map(
      ({ name, byRun }) =>
        byRun.length < runs.length && `${name} was evaluated in ${byRun.map(({ run }) => run).join(', ')} alone`,
    ),
  ];
  return notes.filter((one) => one !== false);
}

function configDifferences(runs: readonly Run[]): Comparison['configDifferences'] {
  const all = runs.map(({ report: { campaign } }) => fieldsOf(campaign.config));
  const fields = new Set(all.flatMap((one) => [...one.keys()]));
  return [...fields].flatMap((field) => {
    const values = all.map((one) => one.get(field) ?? MISSING);
    return new Set(values).size > 1 ? [{ field, values }] : [];
  });
}

function armOf(runs: readonly Run[], name: string, level: number): ComparedArm {
  const evaluated = runs.flatMap((run) => {
    const arm = armIn(run, name);
    const rate = arm?.successRate?.value ?? null;
    return arm && rate !== null ? [{ run: run.name, arm, successRate: rate }] : [];
  });
  const { role, kind, builtOn } = evaluated[0]!.arm;
  const id = `arms.${slug(name)}`;
  const base = runs[0]!.report.arms?.find((arm) => arm.role === 'base')?.name;
  const rollouts = mean(evaluated.map(({ arm }) => arm.allRollouts.value ?? 0));
  const from = evaluated.flatMap(({ arm }) => arm.allRollouts.from);
  return {
    ...{ name, role, kind, builtOn, status: 'completed' },
    successRate: figureOver(sharedOutcomes(runs, [name]), ([own]) => own!, {
      ...{ id: `${id}.success_rate`, unit: 'fraction', level, isTrained: role !== 'base' },
    }),
    differenceToBase: base === undefined || base === name ? undefined : pairOf(runs, [name, base], level)?.difference,
    allRollouts: { id: `${id}.rollouts.all`, value: rollouts, n: evaluated.length, unit: 'count', from },
    byRun: evaluated.map(({ run, successRate: rate }) => ({ run, successRate: rate })),
  };
}

function pairOf(runs: readonly Run[], names: [string, string], level: number): ComparedPair | undefined {
  const [arm, against] = names;
  const shared = sharedOutcomes(runs, names);
  const minus = ([own, other]: readonly number[]): number => own! - other!;
  const id = `comparisons.${slug(arm)}.${slug(against)}`;
  const difference = figureOver(shared, minus, { id, unit: 'difference', level, isTrained: true });
  if (difference.value === null) return undefined;
  const isOne = shared.every(({ run }) => samePolicy(armIn(run, arm), armIn(run, against)));
  const isOneTraining = groupBy(shared, ({ run }) => seedsOf(run)).size < 2;
  const standing = ({ up: 'ahead', down: 'behind', none: 'undecided' } as const)[
    direction(difference.interval) ?? 'none'
  ];
  return {
    ...{ arm, against, difference },
    standing: isOne ? 'same_policy' : isOneTraining ? 'one_training' : standing,
    byRun: shared.map(({ run, rows }) => ({ run: run.name, difference: mean(rows.map(minus)) })),
  };
}

interface Shared {
  run: Run;
  /** rows[task][arm]: share of the trials solved. */
  rows: number[][];
  from: ArtifactRef[];
}

/** Returns the runs that have all of the arms, with the outcomes on the tasks that all of these runs have scored rollouts of. */
function sharedOutcomes(runs: readonly Run[], names: readonly string[]): Shared[] {
  const having = runs.flatMap((run) => {
    const { tasks, options, outcomes } = run.matrix;
    const places = names.map((name) => options.indexOf(name));
    if (places.includes(-1)) return [];
    const rows = new Map(
      tasks.flatMap((task, n) => {
        const values = places.flatMap((place) => outcomes[n]![place] ?? []);
        return values.length === places.length ? [[task, values] as const] : [];
      }),
    );
    return [{ run, rows, from: names.flatMap((name) => armIn(run, name)?.successRate?.from ?? []) }];
  });
  const tasks = [...(having[0]?.rows.keys() ?? [])].filter((task) => having.every(({ rows }) => rows.has(task)));
  return having.map(({ run, rows, from }) => ({ run, from, rows: tasks.map((task) => rows.get(task)!) }));
}

/** The mean over runs and tasks. `isTrained`: other trainings of it would differ. */
function figureOver(
  shared: readonly Shared[],
  valueOf: (row: readonly number[]) => number,
  o: { id: string; unit: 'fraction' | 'difference'; level: number; isTrained: boolean },
): Figure {
  const { id, unit, level, isTrained } = o;
  // Runs that share both seeds are one draw.
  const draws = [...groupBy(shared, ({ run }) => seedsOf(run)).values()].map((own) =>
    meansByTask(own.map(({ rows }) => rows.map(valueOf))),
  );
  const taskMeans = meansByTask(draws);
  if (taskMeans.length === 0) return nothing(id);
  const byTask = (values: readonly number[]) => new Map(values.map((value, task) => [`${task}`, value]));
  const isRate = unit === 'fraction';
  const estimate = isRate
    ? successRate({ taskMeans, trials: draws.length, confidence: level })
    : pairedDifference({
        ...{ treatment: byTask(taskMeans), control: byTask(taskMeans.map(() => 0)), confidence: level },
      });
  const { value, n } = estimate;
  const means = isTrained ? draws.map(mean) : [];
  const { low, high } = acrossTrainings(estimate, { means, confidence: level }) ?? estimate;
  const method = isTrained && draws.length > 1 ? `over tasks and ${draws.length} trainings` : 'over tasks';
  const interval = { low: Math.max(isRate ? 0 : -1, low), high: Math.min(1, high), level, method };
  return { id, value, n, unit, interval, from: shared.flatMap(({ from }) => from) };
}

const meansByTask = (rows: readonly number[][]): number[] =>
  (rows[0] ?? []).map((_, task) => mean(rows.map((row) => row[task]!)));
