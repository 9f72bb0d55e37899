/**
 * The arms on the test split: base, each adapter, sums, the routed policy, the baselines, the bound of routing; and the solver matrix. Invariant:
 * what should have been evaluated and was not is a row with its reason.
 */
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { Task } from '../../domain/environment';
import type { TaskMeans } from '../../domain/paired-statistics';
import { type Arm, MAX_INLINE_TASKS, type ReportDraft, type Role, type SolverMatrix } from '../model';
import { policyNames, sumName, sumPolicy } from '../../domain/policies';
import type { CampaignRecord, Iteration, TrainingSummary } from '../../domain/results';
import type { FixedPolicy, RolloutSummary } from '../../domain/rollout';
import { readTaskMeans } from '../../rollout/read';
import { budgetOf, type Contents, type Spent, spentOn } from './rollout-counts';
import { differenceFigure, groupsOf, type Level, plainFigure, rateFigure, slug } from './figures';
import { reportedTraining } from './training';
import { partNames } from '../../domain/capability';

/** Task means of the arms that were evaluated, by name. */
type Columns = ReadonlyMap<string, TaskMeans>;

export async function armsOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  contents: Contents;
  /** Of the test split. */
  tasks: readonly Task[];
  /** The option that the router gives everything to, where it does. */
  constant: string | undefined;
  level: Level;
}): Promise<Pick<ReportDraft, 'arms' | 'budget' | 'comparisons' | 'groups' | 'solverMatrix'>> {
  const { store, record, contents, tasks, constant, level } = o;
  if (!record.evaluation) return {};
  const rows = rowsOf({ record, contents });
  const columns = await columnsOf(store, rows);
  const arms: Arm[] = [];
  for (const row of rows) {
    const sameAs = row.role === 'routed' ? constant : firstWith(row.policy, rows)?.name;
    const arm = await reportedArm({ store, row, columns, level });
    arms.push({ ...arm, ...(sameAs !== undefined && sameAs !== row.name && { sameAs }) });
  }
  return {
    arms,
    budget: budgetOf(record),
    comparisons: comparisons({ rows, columns, level }),
    ...groupsOf({ columns, tasks, level }),
    ...(await storedMatrix(store, rows, columns)),
  };
}

/** The first row of a policy: adapters that are the same by content, with the same weights and the same prompt, are one. */
function firstWith(policy: FixedPolicy | undefined, rows: readonly Row[]): Row | undefined {
  const contentOf = ({ adapters, prompt }: FixedPolicy): string =>
    digest({ prompt, adapters: adapters.map(({ ref, weight }) => `${ref.sha256} ${weight}`).sort() });
  return policy && rows.find((row) => row.policy && contentOf(row.policy) === contentOf(policy));
}

async function columnsOf(store: ArtifactStore, rows: readonly Row[]): Promise<Columns> {
  const columns = new Map<string, TaskMeans>();
  for (const { name, rollouts } of rows) if (rollouts) columns.set(name, await readTaskMeans(store, rollouts.ref));
  for (const { name, union } of rows)
    if (union) columns.set(name, unionOf(union.flatMap((option) => columns.get(option) ?? [])));
  return columns;
}

async function reportedArm(o: { store: ArtifactStore; row: Row; columns: Columns; level: Level }): Promise<Arm> {
  const { store, row, columns, level } = o;
  const { name, role, kind, builtOn, conversations, routable, spent, heldOut, work, rollouts, reason } = row;
  const id = `arms.${slug(name)}`;
  const [means, base] = [columns.get(name), columns.get(policyNames.base)];
  const common = {
    name,
    role,
    ...(kind !== undefined && { kind }),
    ...(builtOn && { builtOn }),
    ...(conversations !== undefined && { conversations }),
    ...(routable && { routable }),
    ...spent,
    tasks: means?.success.size ?? 0,
    trials: means?.trials ?? 0,
    ...(heldOut && {
      heldOut: rateFigure({ id: `${id}.held_out`, means: await readTaskMeans(store, heldOut.ref), level }),
    }),
    ...(work && { training: await reportedTraining({ store, id, work, level }) }),
  };
  if (!means) return { ...common, status: 'failed', reason: reason ?? 'it was not evaluated' };
  return {
    ...common,
    successRate: rateFigure({ id: `${id}.success_rate`, means, level }),
    ...(base &&
      role !== 'base' && {
        differenceToBase: differenceFigure({
          id: `${id}.difference_to_base`,
          treatment: means,
          control: base,
          level,
          bound: role === 'bound',
        }),
      }),
    ...(rollouts && {
      stopReasons: Object.entries(rollouts.stopReasons).map(([why, value]) => ({
        reason: why,
        rollouts: plainFigure({
          id: `${id}.stop_reasons.${slug(why)}`,
          value,
          n: rollouts.scored,
          unit: 'count',
          from: [rollouts.ref],
        }),
      })),
    }),
    status: 'evaluated',
  };
}

/** Solved by any, trial means taken at their best: the bound of routing between single policies. */
export function unionOf(columns: TaskMeans[]): TaskMeans {
  const best = (field: 'success' | 'reward') => {
    const map = new Map<string, number>();
    for (const column of columns) {
      for (const [task, value] of column[field]) map.set(task, Math.max(value, map.get(task) ?? 0));
    }
    return map;
  };
  const trials = Math.max(0, ...columns.map((column) => column.trials));
  return {
    success: best('success'),
    reward: best('reward'),
    branch: new Map(columns.flatMap((column) => [...column.branch])),
    trials,
    from: columns.flatMap((column) => column.from),
  };
}

/** The routed policy minus each baseline. */
function comparisons(o: { rows: readonly Row[]; columns: Columns; level: Level }) {
  const { rows, columns, level } = o;
  return rows.flatMap((routed) =>
    rows.flatMap((baseline) => {
      if (routed.role !== 'routed' || baseline.role !== 'baseline') return [];
      const [treatment, control] = [columns.get(routed.name), columns.get(baseline.name)];
      if (!treatment || !control) return [];
      const id = `comparisons.${slug(routed.name)}.${slug(baseline.name)}`;
      const difference = differenceFigure({ id, treatment, control, level });
      return [{ arm: routed.name, against: baseline.name, difference }];
    }),
  );
}

async function storedMatrix(
  store: ArtifactStore,
  rows: readonly Row[],
  columns: Columns,
): Promise<Pick<ReportDraft, 'solverMatrix'>> {
  const options = rows.filter(({ name, rollouts }) => rollouts && columns.has(name)).map(({ name }) => name);
  const tasks = [...new Set(options.flatMap((option) => [...(columns.get(option)?.success.keys() ?? [])]))].sort();
  const outcomes = tasks.map((task) => options.map((option) => columns.get(option)?.success.get(task) ?? null));
  const matrix: SolverMatrix = { tasks, options, outcomes };
  const from = await store.put({
    key: `solver-matrix/${digest(matrix)}`,
    producer: 'writeReport',
    inputs: options.flatMap((option) => columns.get(option)?.from ?? []),
    mediaType: 'application/json',
    body: JSON.stringify(matrix),
  });
  return { solverMatrix: { from, tasks: tasks.length, ...(tasks.length <= MAX_INLINE_TASKS && { inline: matrix }) } };
}

export interface Row {
  name: string;
  role: Role;
  kind?: string;
  /** Names of capabilities. */
  builtOn?: string[];
  conversations?: number;
  routable?: boolean;
  /** Where it is one for all conversations, without the router's choice. */
  policy?: FixedPolicy;
  spent: Spent;
  /** Of its test rollouts; absent where it has none. */
  rollouts?: RolloutSummary;
  /** Of a bound: the options that it is over. */
  union?: string[];
  /** On the held-out train tasks of the target. */
  heldOut?: RolloutSummary;
  work?: { iterations: Iteration[]; best?: Iteration; training?: TrainingSummary };
  /** Why it was not evaluated. */
  reason?: string;
}

export function rowsOf({ record, contents }: { record: CampaignRecord; contents: Contents }): Row[] {
  const { capabilities = [], arms = [], baseHeldOut } = record;
  const { base, routed } = policyNames;
  const on = (name: string) => ({ id: `arms.${slug(name)}`, contents });
  return [
    {
      ...tested(record, base),
      role: 'base',
      policy: { base: record.prepared.base, adapters: [] },
      spent: spentOn.base(on(base)),
      ...(baseHeldOut && { heldOut: baseHeldOut }),
    },
    ...capabilities.flatMap((capability): Row[] => {
      const { name, trained, parts } = capability;
      if (!trained) return [];
      const spent = spentOn.adapter({ ...on(name), capability, record });
      const builtOn = parts && { builtOn: partNames({ parts }) };
      const { policy } = trained.best;
      return [{ ...tested(record, name), role: 'adapter', ...builtOn, policy, spent, heldOut: trained.target.after }];
    }),
    ...(record.router?.sums ?? []).map((parts): Row => {
      const name = sumName(parts);
      const summed = capabilities.filter((capability) => parts.includes(capability.name));
      const policies = summed.flatMap(({ trained }) => (trained ? [trained.best.policy] : []));
      return {
        ...tested(record, name),
        role: 'sum',
        policy: sumPolicy(record.prepared.base, policies),
        spent: spentOn.sum({ ...on(name), capabilities: summed }),
      };
    }),
    ...(record.router?.gate ? [gateRow({ record, contents })] : []),
    { ...tested(record, routed), role: 'routed', spent: spentOn.routed({ ...on(routed), record }) },
    ...arms.map((arm): Row => {
      const { name, kind, routable, builtOn, conversations, iterations = [], best, training, reason } = arm;
      const work = { iterations, ...(best && { best }), ...(training && { training }) };
      return {
        ...tested(record, name),
        role: 'baseline',
        kind,
        routable,
        ...(builtOn && { builtOn }),
        ...(conversations !== undefined && { conversations }),
        spent: spentOn.baseline({ ...on(name), arm, record }),
        ...(best && { heldOut: best.heldOut, policy: best.policy }),
        ...((training ?? iterations.length > 0) && { work }),
        ...(reason !== undefined && { reason }),
      };
    }),
    bound({ record, spent: spentOn.bound({ ...on(policyNames.ceiling), record }) }),
  ];
}

/** A sum too, only that it is behind a gate. */
function gateRow({ record, contents }: { record: CampaignRecord; contents: Contents }): Row {
  const { gate } = policyNames;
  return {
    ...tested(record, gate),
    role: 'sum',
    spent: spentOn.gate({ id: `arms.${slug(gate)}`, contents, record }),
  };
}

/** Its test rollouts, or why there are none. */
function tested({ evaluation }: CampaignRecord, name: string): Pick<Row, 'name' | 'rollouts' | 'reason'> {
  const rollouts = evaluation?.policies.find((policy) => policy.name === name)?.rollouts;
  const reason = evaluation?.failed.find((policy) => policy.name === name)?.reason;
  return { name, ...(rollouts && { rollouts }), ...(reason !== undefined && { reason }) };
}

/** Over all that the router can choose; unknown where one of them was not evaluated. */
function bound({ record, spent }: { record: CampaignRecord; spent: Spent }): Row {
  const name = policyNames.ceiling;
  const options = record.router?.options ?? [policyNames.base];
  const missing = options.filter((option) => !tested(record, option).rollouts);
  return {
    name,
    role: 'bound',
    spent,
    ...(missing.length === 0
      ? { union: options }
      : { reason: `it is over what the router can choose, and ${missing.join(', ')} was not evaluated` }),
  };
}
