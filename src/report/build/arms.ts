/** The arms on the test split: base, each adapter, the routed policy, the union ceiling, the baselines; and the solver matrix. */
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { Task } from '../../domain/environment';
import type { CampaignRecord } from '../../domain/results';
import { MAX_INLINE_TASKS, type Arm, type ReportDraft, type SolverMatrix } from '../../domain/report';
import { taskMeans, type TaskMeans } from './evidence';
import { differenceFigure, rateFigure, slug, type Level } from './figures';
import { groupsOf } from './groups';
import { reportedTraining } from './training';

export async function armsOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  /** Of the test split. */
  tasks: readonly Task[];
  level: Level;
}): Promise<Pick<ReportDraft, 'arms' | 'comparisons' | 'groups' | 'solverMatrix'>> {
  const { store, record, tasks, level } = o;
  const { evaluation, capabilities = [], arms: baselines = [] } = record;
  if (!evaluation) return {};
  const columns = new Map<string, TaskMeans>();
  for (const { option, rollouts } of evaluation.options) columns.set(option, await taskMeans(store, [rollouts.ref]));
  const adapters = capabilities.filter((c) => c.trained && columns.has(c.name));
  const spent = (trained: { training: { rollouts: number } } | undefined) => trained?.training.rollouts ?? 0;
  const ofTrace = adapters.reduce((sum, c) => sum + spent(c.trained), 0);
  if (evaluation.trace) {
    columns.set(
      'trace',
      await taskMeans(
        store,
        evaluation.trace.chosen.map(({ rollouts }) => rollouts.ref),
      ),
    );
    columns.set(
      'union_ceiling',
      union(['base', ...adapters.map((c) => c.name)].flatMap((name) => columns.get(name) ?? [])),
    );
  }
  const base = columns.get('base');
  const trainings = new Map([
    ...adapters.map((c) => [c.name, spent(c.trained)] as const),
    ...baselines.map((arm) => [arm.name, spent(arm.trained)] as const),
    ['trace', ofTrace] as const,
    ['union_ceiling', ofTrace] as const,
  ]);
  const arms: Arm[] = [];
  for (const [name, means] of columns) {
    const baseline = baselines.find((arm) => arm.name === name)?.trained;
    arms.push({
      name,
      trainingRollouts: trainings.get(name) ?? 0,
      tasks: means.success.size,
      trials: means.trials,
      successRate: rateFigure({ id: `arms.${slug(name)}.success_rate`, means, level }),
      ...(base &&
        name !== 'base' && {
          differenceToBase: differenceFigure({
            id: `arms.${slug(name)}.difference_to_base`,
            treatment: means,
            control: base,
            level,
          }),
        }),
      ...(baseline && {
        training: await reportedTraining({ store, id: `arms.${slug(name)}`, trained: baseline, level }),
      }),
      status: 'evaluated',
    });
  }
  for (const { name, reason } of baselines.filter((arm) => arm.status === 'failed')) {
    arms.push({ name, trainingRollouts: 0, tasks: 0, trials: 0, status: 'failed', reason: reason ?? 'unknown' });
  }
  return {
    arms,
    ...comparisons(columns, level),
    ...groupsOf({ columns, tasks, level }),
    ...(await storedMatrix(store, columns)),
  };
}

/** Solved by any, trial means taken at their best: the bound of routing between single policies. */
function union(columns: TaskMeans[]): TaskMeans {
  const best = (field: 'success' | 'reward') => {
    const map = new Map<string, number>();
    for (const column of columns) {
      for (const [task, value] of column[field]) map.set(task, Math.max(value, map.get(task) ?? 0));
    }
    return map;
  };
  const trials = Math.max(0, ...columns.map((column) => column.trials));
  return { success: best('success'), reward: best('reward'), trials, from: columns.flatMap((column) => column.from) };
}

function comparisons(columns: Map<string, TaskMeans>, level: Level): Pick<ReportDraft, 'comparisons'> {
  const [trace, target] = [columns.get('trace'), columns.get('grpo_target')];
  if (!trace || !target) return {};
  const id = 'comparisons.trace.grpo_target';
  const difference = differenceFigure({ id, treatment: trace, control: target, level });
  return { comparisons: [{ arm: 'trace', against: 'grpo_target', difference }] };
}

async function storedMatrix(
  store: ArtifactStore,
  columns: Map<string, TaskMeans>,
): Promise<Pick<ReportDraft, 'solverMatrix'>> {
  const options = [...columns.keys()].filter((option) => option !== 'union_ceiling');
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
