/**
 * Several runs of one campaign as one comparison: the same target and base model, other training seeds. Invariants: an arm counts in the runs
 * that evaluated it, and two arms are compared in the runs that have both, over tasks that both have a scored rollout of; runs stand for
 * themselves as well, since an interval of few runs says little; runs that share both seeds are one draw.
 */
import {
  type Estimate,
  mean,
  successRate,
  acrossTrainings,
  direction,
  pairedDifference,
  type PairedTest,
} from '../domain/statistics';
import { MISSING, shortPercent } from './format';
import type { Arm, Report, Role, SolverMatrix } from './model';
import { samePolicy } from './recommendation';

export interface Run {
  /** What it is called in the comparison. */
  name: string;
  report: Report;
  matrix: SolverMatrix;
}

/** Success on the way to an arm, on held-out train tasks of the target. */
interface WayPoint {
  rollouts: number;
  successRate: number;
  /** How many runs it is the mean of. */
  runs: number;
}

export interface ComparedArm {
  name: string;
  role: Role;
  kind?: string;
  /** Those that did not evaluate it. */
  missing: string[];
  /** Mean over runs and test tasks; without an interval where the tasks of an arm are not in the report (a bound). */
  successRate: Span | { value: number };
  differenceToBase?: Span;
  /** Means over the runs. */
  trainingRollouts: number;
  allRollouts: number;
  heldOut: WayPoint[];
  byRun: { run: string; successRate: number; trainingRollouts: number; allRollouts: number }[];
}

export interface ComparedPair {
  arm: string;
  against: string;
  difference: Span;
  /** `ahead` and `behind` only where the interval over several trainings excludes zero. */
  standing: 'ahead' | 'behind' | 'undecided' | 'one_training' | 'same_policy';
  /** `samePolicy`: the difference is that of two samples of one policy. */
  byRun: { run: string; difference: number; test?: PairedTest; samePolicy?: true }[];
}

export interface Comparison {
  target: Report['campaign']['target'];
  baseModel: string;
  level: number;
  /** `tasks`: that it evaluated on. */
  runs: { name: string; campaign: string; seed: number; trainingSeed: number; configSha256: string; tasks: number }[];
  arms: ComparedArm[];
  /** The routed policy minus base and each baseline. */
  differences: ComparedPair[];
  /** How to read the comparison as a whole. */
  notes: string[];
  /** Fields of the configuration that are not the same in all runs, with the value of each run. */
  configDifferences: { field: string; values: string[] }[];
}

interface Evaluated {
  run: Run;
  arm: Arm;
  successRate: number;
}

/** Runs are of one target and base model (commands/compare.ts checks it); the order of arms is the first run's. */
export function comparisonOf({ runs, level }: { runs: readonly Run[]; level: number }): Comparison {
  const [first] = runs as readonly [Run, ...Run[]];
  const { target, baseModel } = first.report.campaign;
  const names = [...new Set(runs.flatMap(({ report }) => (report.arms ?? []).map(({ name }) => name)))];
  const found = names.flatMap((name) => {
    const evaluated = evaluatedIn(runs, name);
    return evaluated[0] ? [{ name, evaluated, role: evaluated[0].arm.role }] : [];
  });
  const namesOf = (...roles: Role[]) => found.filter(({ role }) => roles.includes(role)).map(({ name }) => name);
  const [base] = namesOf('base');
  const compared = {
    target,
    baseModel,
    level,
    runs: runs.map(({ name, report: { campaign }, matrix }) => ({
      name,
      campaign: campaign.name,
      seed: campaign.seed,
      trainingSeed: campaign.trainingSeed ?? campaign.seed,
      configSha256: campaign.configSha256,
      tasks: matrix.tasks.length,
    })),
    arms: found.map(({ name, evaluated }) => armOf({ runs, name, evaluated, base, level })),
    differences: namesOf('routed').flatMap((arm) =>
      namesOf('base', 'baseline').flatMap((against) => pairOf({ runs, arm, against, level }) ?? []),
    ),
  };
  return { ...compared, notes: notesOf(compared), configDifferences: configDifferences(runs) };
}

/** Returns how to read the comparison as a whole. */
function notesOf({ runs, arms, level }: Pick<Comparison, 'runs' | 'arms' | 'level'>): string[] {
  const seedsOf = (run: Comparison['runs'][number]) => `seed ${run.seed}, training seed ${run.trainingSeed}`;
  const draws = new Map<string, string[]>();
  for (const run of runs) draws.set(seedsOf(run), [...(draws.get(seedsOf(run)) ?? []), run.name]);
  const repeated = [...draws].filter(([, names]) => names.length > 1);
  const most = Math.max(...runs.map(({ tasks }) => tasks));
  const shared = Math.max(0, ...arms.map(({ successRate }) => ('tasks' in successRate ? successRate.tasks : 0)));
  const each = runs.map(({ name, tasks }) => `${name} ${tasks}`).join(', ');
  const over =
    shared === 0
      ? 'no test task is evaluated in all runs: there are no intervals and no differences'
      : `success rates and differences are over the ${shared} test tasks that are evaluated in all runs`;
  const notes: (string | false)[] = [
    `runs: ${runs.map((run) => `${run.name} (${seedsOf(run)})`).join(', ')}`,
    draws.size === 1
      ? `one training run of each arm: all runs share seed and training seed, so how far trainings differ on this target is unknown, and ${shortPercent(level)} intervals are over the test tasks alone`
      : `${shortPercent(level)} intervals are for other tasks and other trainings: over the test tasks, and by Student’s t over the runs; of base, and of what was trained once, over the tasks alone`,
    ...repeated.map(
      ([seeds, names]) =>
        `${names.join(' and ')} share ${seeds}: they are no independent draws and count as one, their mean`,
    ),
    // Runs of other seeds evaluate on other tasks of a large target.
    shared < most && `${over} (${each}); runs that differ in --training-seed alone evaluate on the same`,
    ...arms.map(({ name, missing }) => missing.length > 0 && `${name} was not evaluated in ${missing.join(', ')}`),
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

/** Returns the fields of a configuration by their path. */
function fieldsOf(value: unknown, path = ''): Map<string, string> {
  if (value === undefined) return new Map();
  if (typeof value !== 'object' || value === null) return new Map([[path, String(value)]]);
  return new Map(
    Object.entries(value).flatMap(([name, inner]) => [...fieldsOf(inner, path === '' ? name : `${path}.${name}`)]),
  );
}

const evaluatedIn = (runs: readonly Run[], name: string): Evaluated[] =>
  runs.flatMap((run) => {
    const arm = run.report.arms?.find((one) => one.name === name);
    const successRate = arm?.successRate?.value ?? null;
    return arm && successRate !== null ? [{ run, arm, successRate }] : [];
  });

interface ArmQuestion {
  runs: readonly Run[];
  name: string;
  evaluated: readonly Evaluated[];
  base: string | undefined;
  level: number;
}

function armOf({ runs, name, evaluated, base, level }: ArmQuestion): ComparedArm {
  const [{ arm }] = evaluated as readonly [Evaluated, ...Evaluated[]];
  const toBase = base === undefined || base === name ? undefined : pairOf({ runs, arm: name, against: base, level });
  const byRun = evaluated.map(({ run, arm: { trainingRollouts, allRollouts }, successRate }) => ({
    run: run.name,
    successRate,
    trainingRollouts: trainingRollouts.value ?? 0,
    allRollouts: allRollouts.value ?? 0,
  }));
  const meanOf = (what: 'successRate' | 'trainingRollouts' | 'allRollouts') => mean(byRun.map((run) => run[what]));
  return {
    name,
    role: arm.role,
    ...(arm.kind !== undefined && { kind: arm.kind }),
    missing: runs.map((run) => run.name).filter((run) => !byRun.some((one) => one.run === run)),
    successRate: rateOver({ own: sharedOutcomes(runs, [name]), level, isTrained: arm.role !== 'base' }) ?? {
      value: meanOf('successRate'),
    },
    ...(toBase && { differenceToBase: toBase.difference }),
    trainingRollouts: meanOf('trainingRollouts'),
    allRollouts: meanOf('allRollouts'),
    heldOut: wayOf(evaluated),
    byRun,
  };
}

/** Held-out success by the training rollouts spent: of every iteration, where an arm has them. */
function wayOf(evaluated: readonly Evaluated[]): WayPoint[] {
  const points = new Map<number, number[]>();
  for (const { arm } of evaluated)
    for (const { rollouts, successRate } of arm.training?.iterations ?? [
      { rollouts: arm.trainingRollouts, successRate: arm.heldOut },
    ]) {
      const [x, y] = [rollouts.value, successRate?.value ?? null];
      if (x !== null && y !== null) points.set(x, [...(points.get(x) ?? []), y]);
    }
  return [...points]
    .sort(([a], [b]) => a - b)
    .map(([rollouts, values]) => ({ rollouts, successRate: mean(values), runs: values.length }));
}

function pairOf(o: { runs: readonly Run[]; arm: string; against: string; level: number }): ComparedPair | undefined {
  const { runs, arm, against, level } = o;
  const shared = sharedOutcomes(runs, [arm, against]);
  const byTask = ([own, other]: number[]): number => (own as number) - (other as number);
  const difference = differenceOver({ rows: rowsOf(shared, byTask), level });
  if (!difference) return undefined;
  const byRun = shared.map(({ run, values, test }) => {
    const [own, other] = [arm, against].map((name) => run.report.arms?.find((one) => one.name === name));
    return {
      run: run.name,
      difference: mean(values.map(byTask)),
      ...(test && { test }),
      ...(samePolicy(own, other) && { samePolicy: true as const }),
    };
  });
  const isOne = byRun.every((run) => run.samePolicy);
  return { arm, against, difference, standing: isOne ? 'same_policy' : standingOf(difference), byRun };
}

function standingOf(difference: Span): ComparedPair['standing'] {
  if (difference.runs < 2) return 'one_training';
  return ({ up: 'ahead', down: 'behind', none: 'undecided' } as const)[direction(difference) ?? 'none'];
}

/** A mean over runs and tasks. `runs`: draws; those that share both seeds are one. The interval of one draw is over the tasks alone. */
export interface Span {
  value: number;
  low: number;
  high: number;
  runs: number;
  /** Of each run. */
  tasks: number;
}

interface Shared {
  run: Run;
  /** By task, of each arm: the share of its trials solved. */
  values: number[][];
  test?: PairedTest;
}

/** Of the runs that have all of the arms: what each of them came to on the tasks that all of these runs have scored rollouts of. */
function sharedOutcomes(runs: readonly Run[], arms: readonly string[]): Shared[] {
  const having = runs
    .filter(({ matrix }) => arms.every((arm) => matrix.options.includes(arm)))
    .map((run) => ({ run, columns: columnsOf(run.matrix, arms) }));
  const [first, ...others] = having;
  const tasks = [...(first?.columns.keys() ?? [])]
    .filter((task) => others.every(({ columns }) => columns.has(task)))
    .sort();
  return having.map(({ run, columns }) => {
    const values = tasks.map((task) => columns.get(task) as number[]);
    if (arms.length !== 2 || tasks.length === 0) return { run, values };
    const side = (arm: number) => new Map(values.map((row, task) => [`${task}`, row[arm] as number]));
    const { test } = pairedDifference({ treatment: side(0), control: side(1) });
    return { run, values, ...(test && { test }) };
  });
}

/** A task of which an arm has no scored rollout is not there. */
function columnsOf({ tasks, options, outcomes }: SolverMatrix, arms: readonly string[]): Map<string, number[]> {
  const places = arms.map((arm) => options.indexOf(arm));
  return new Map(
    tasks.flatMap((task, row) => {
      const values = places.map((place) => outcomes[row]?.[place] ?? null);
      return values.every((value) => value !== null) ? [[task, values] as const] : [];
    }),
  );
}

/** A row of each draw: runs that share both seeds are one draw, however often it was made, and count as their mean. */
function rowsOf(own: readonly Shared[], of: (values: number[]) => number): number[][] {
  const draws = new Map<string, number[][]>();
  for (const { run, values } of own) {
    const { seed, trainingSeed = seed } = run.report.campaign;
    const draw = `${seed} ${trainingSeed}`;
    draws.set(draw, [...(draws.get(draw) ?? []), values.map(of)]);
  }
  return [...draws.values()].map(meansByTask);
}

/** Success of one arm; `isTrained`: other trainings of it would differ. */
function rateOver(o: { own: readonly Shared[]; level: number; isTrained: boolean }): Span | undefined {
  const rows = rowsOf(o.own, ([value]) => value as number);
  const overTasks = (taskMeans: readonly number[]) =>
    successRate({ taskMeans, trials: rows.length, confidence: o.level });
  return spanOver({ rows, level: o.level, overTasks, isTrained: o.isTrained, lowest: 0 });
}

/** `rows`: the differences of each draw, task by task. Undefined where there is nothing to estimate. */
export function differenceOver({ rows, level }: { rows: readonly number[][]; level: number }): Span | undefined {
  const byTask = (values: readonly number[]) => new Map(values.map((value, task) => [`${task}`, value]));
  const overTasks = (taskMeans: readonly number[]) =>
    pairedDifference({
      treatment: byTask(taskMeans),
      control: byTask(taskMeans.map(() => 0)),
      confidence: level,
    });
  return spanOver({ rows, level, overTasks, isTrained: true, lowest: -1 });
}

function spanOver(o: {
  rows: readonly number[][];
  level: number;
  overTasks: (taskMeans: readonly number[]) => Estimate;
  isTrained: boolean;
  lowest: number;
}): Span | undefined {
  const { rows, level, isTrained, lowest } = o;
  const taskMeans = meansByTask(rows);
  if (taskMeans.length === 0) return undefined;
  const { value, low, high } = o.overTasks(taskMeans);
  const means = isTrained ? rows.map(mean) : [];
  const ends = acrossTrainings({ value, low, high }, { means, confidence: level }) ?? { low, high };
  return {
    value,
    low: Math.max(lowest, ends.low),
    high: Math.min(1, ends.high),
    runs: rows.length,
    tasks: taskMeans.length,
  };
}

const meansByTask = (rows: readonly number[][]): number[] =>
  (rows[0] ?? []).map((_, task) => mean(rows.map((row) => row[task] as number)));
