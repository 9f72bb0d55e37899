/**
 * Several runs of one campaign as one comparison: the same target and base model, other training seeds. Invariants: an arm counts in the runs
 * that evaluated it, and two arms are compared in the runs that have both, over tasks that both have a scored rollout of; runs stand for
 * themselves as well, since an interval of few runs says little.
 */
import { mean } from '../../domain/statistics';
import { direction, type PairedTest } from '../../domain/paired-statistics';
import type { Report, ReportedComparison } from '../../domain/report';
import type { Arm, Role, SolverMatrix } from '../../domain/reported-arms';
import { samePolicy } from '../recommendation';
import { differenceOver, rateOver, rowsOf, sharedOutcomes, type Span } from './outcomes';

export interface Run {
  /** What it is called in the comparison. */
  name: string;
  report: Report;
  matrix: SolverMatrix;
}

/** Success on the way to an arm, on held-out train tasks of the target. */
export interface WayPoint {
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
  standing: ReportedComparison['standing'];
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
}

interface Evaluated {
  run: Run;
  arm: Arm;
  successRate: number;
}

/** Runs are of one target and base model (check.ts); the order of arms is the first run's. */
export function comparisonOf({ runs, level }: { runs: readonly Run[]; level: number }): Comparison {
  const [first] = runs as readonly [Run, ...Run[]];
  const { target, baseModel } = first.report.campaign;
  const names = [...new Set(runs.flatMap(({ report }) => (report.arms ?? []).map(({ name }) => name)))];
  const found = names.map((name) => ({ name, evaluated: evaluatedIn(runs, name) }));
  const base = found.find(({ evaluated }) => evaluated[0]?.arm.role === 'base')?.name;
  const isRouted = ({ evaluated }: (typeof found)[number]) => evaluated[0]?.arm.role === 'routed';
  const isOther = ({ evaluated }: (typeof found)[number]) =>
    evaluated[0]?.arm.role === 'base' || evaluated[0]?.arm.role === 'baseline';
  return {
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
    arms: found.flatMap(({ name, evaluated }) => (evaluated[0] ? [armOf({ runs, name, evaluated, base, level })] : [])),
    differences: found
      .filter(isRouted)
      .flatMap(({ name: arm }) =>
        found.filter(isOther).flatMap(({ name: against }) => pairOf({ runs, arm, against, level }) ?? []),
      ),
  };
}

function evaluatedIn(runs: readonly Run[], name: string): Evaluated[] {
  return runs.flatMap((run) => {
    const arm = run.report.arms?.find((one) => one.name === name);
    const successRate = arm?.successRate?.value ?? null;
    return arm && successRate !== null ? [{ run, arm, successRate }] : [];
  });
}

function armOf(o: {
  runs: readonly Run[];
  name: string;
  evaluated: readonly Evaluated[];
  base: string | undefined;
  level: number;
}): ComparedArm {
  const { runs, name, evaluated, base, level } = o;
  const [{ arm }] = evaluated as readonly [Evaluated, ...Evaluated[]];
  const own = sharedOutcomes(runs, [name]);
  const toBase = base === undefined || base === name ? undefined : pairOf({ runs, arm: name, against: base, level });
  const byRun = evaluated.map(({ run, arm: { trainingRollouts, allRollouts }, successRate }) => ({
    run: run.name,
    successRate,
    trainingRollouts: trainingRollouts.value ?? 0,
    allRollouts: allRollouts.value ?? 0,
  }));
  const successRate = rateOver({ own, level });
  return {
    name,
    role: arm.role,
    ...(arm.kind !== undefined && { kind: arm.kind }),
    missing: runs.map((run) => run.name).filter((run) => !byRun.some((one) => one.run === run)),
    successRate: successRate ?? { value: mean(byRun.map((run) => run.successRate)) },
    ...(toBase && { differenceToBase: toBase.difference }),
    trainingRollouts: mean(byRun.map((run) => run.trainingRollouts)),
    allRollouts: mean(byRun.map((run) => run.allRollouts)),
    heldOut: wayOf(evaluated.map((one) => one.arm)),
    byRun,
  };
}

/** Held-out success by the training rollouts spent: of every iteration, where an arm has them. */
function wayOf(arms: readonly Arm[]): WayPoint[] {
  const points = new Map<number, number[]>();
  for (const { training, heldOut, trainingRollouts } of arms) {
    const own = training
      ? training.iterations.map((iteration) => [iteration.rollouts.value, iteration.successRate?.value] as const)
      : [[trainingRollouts.value, heldOut?.value] as const];
    for (const [rollouts, successRate] of own)
      if (typeof rollouts === 'number' && typeof successRate === 'number')
        points.set(rollouts, [...(points.get(rollouts) ?? []), successRate]);
  }
  return [...points]
    .sort(([a], [b]) => a - b)
    .map(([rollouts, values]) => ({ rollouts, successRate: mean(values), runs: values.length }));
}

function pairOf(o: { runs: readonly Run[]; arm: string; against: string; level: number }): ComparedPair | undefined {
  const { runs, arm, against, level } = o;
  const shared = sharedOutcomes(runs, [arm, against]);
  const byTask = ([own, other]: number[]): number => (own as number) - (other as number);
  const rows = shared.map(({ values }) => values.map(byTask));
  const difference = differenceOver({ rows: rowsOf(shared, byTask), level });
  if (!difference) return undefined;
  const byRun = shared.map(({ run, test }, i) => ({
    run: run.name,
    difference: mean(rows[i] as number[]),
    ...(test && { test }),
    ...(isOnePolicy(run, arm, against) && { samePolicy: true as const }),
  }));
  return { arm, against, difference, standing: standingOf(difference, byRun), byRun };
}

const isOnePolicy = ({ report: { arms = [] } }: Run, arm: string, against: string): boolean => {
  const named = (name: string): Arm | undefined => arms.find((one) => one.name === name);
  return samePolicy(named(arm), named(against));
};

function standingOf(difference: Span, byRun: ComparedPair['byRun']): ComparedPair['standing'] {
  if (byRun.every(({ samePolicy: same }) => same)) return 'same_policy';
  const way = direction(difference);
  return way === undefined ? 'undecided' : way === 'up' ? 'ahead' : 'behind';
}
