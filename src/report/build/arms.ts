/** The arms on the test split: base, each adapter, sums, the routed policy, the baselines, the bound of routing; and the solver matrix. */
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { Task } from '../../domain/environment';
import type { TaskMeans } from '../../domain/paired-statistics';
import type { ReportDraft } from '../../domain/report';
import { MAX_INLINE_TASKS, type Arm, type SolverMatrix } from '../../domain/reported-arms';
import { policyNames } from '../../domain/policies';
import type { CampaignRecord } from '../../domain/results';
import type { FixedPolicy } from '../../domain/rollout';
import { readTaskMeans } from '../../rollout/read';
import { rowsOf, type Row } from './arm-rows';
import type { Contents } from './counted';
import { differenceFigure, plainFigure, rateFigure, slug, type Level } from './figures';
import { groupsOf } from './groups';
import { budgetOf } from './spent';
import { reportedTraining } from './training';

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
