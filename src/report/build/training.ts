/** A training in the report: the reward of every step, and the held-out figures that picked the best iteration. */
import { z } from 'zod';
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { branchSchema } from '../../domain/environment';
import { jsonText } from '../../domain/messages';
import type { Iteration, TrainingSummary } from '../../domain/results';
import type { Curve, ReportedIteration, ReportedTraining } from '../capability-model';
import { readTaskMeans } from '../../rollout/read';
import { byBranch, type Level, plainFigure, rateFigure, rewardFigure } from './figures';

/** A line of the trainer's metrics.jsonl, to which the worker has added the branches. */
const metricsLine = jsonText.pipe(
  z.looseObject({
    step: z.number().int(),
    reward: z.number(),
    reward_by_branch: z.record(branchSchema, z.number()).default({}),
    rollouts_seconds: z.number().optional(),
    update_seconds: z.number().optional(),
  }),
);
type MetricsLine = z.output<typeof metricsLine>;

interface Work {
  iterations: Iteration[];
  best?: Iteration;
  training?: TrainingSummary;
}

/** `id` begins the ids of its figures. */
export async function reportedTraining(o: {
  store: ArtifactStore;
  id: string;
  work: Work;
  level: Level;
  /** Share of each group's rollouts that were hinted. */
  hints?: number;
}): Promise<ReportedTraining> {
  const { store, level, hints = 0 } = o;
  const { training, iterations, best } = o.work;
  const id = `${o.id}.training`;
  const reported: ReportedIteration[] = [];
  for (const { step, rollouts, heldOut } of iterations) {
    const means = await readTaskMeans(store, heldOut.ref);
    const at = `${id}.step-${step}`;
    const from = [training?.metrics ?? heldOut.ref];
    const branches = byBranch(means).map(({ branch, parts: [part] }) => ({
      branch,
      successRate: rateFigure({ id: `${at}.branch.${branch}.success_rate`, means: part!, level }),
      meanReward: rewardFigure({ id: `${at}.branch.${branch}.mean_reward`, means: part!, level }),
    }));
    reported.push({
      step,
      rollouts: plainFigure({ id: `${at}.rollouts`, value: rollouts, n: rollouts, unit: 'count', from }),
      successRate: rateFigure({ id: `${at}.success_rate`, means, level }),
      meanReward: rewardFigure({ id: `${at}.mean_reward`, means, level }),
      ...(branches.length > 0 && { branches }),
    });
  }
  const last = iterations.at(-1);
  const rollouts = training?.rollouts ?? last?.rollouts ?? 0;
  return {
    steps: training?.steps ?? last?.step ?? 0,
    ...(hints > 0 && { hints }),
    rollouts: plainFigure({
      id: `${id}.rollouts`,
      value: rollouts,
      n: rollouts + (training?.brokenRollouts ?? 0),
      unit: 'count',
      from: training ? [training.metrics] : iterations.map(({ heldOut }) => heldOut.ref),
    }),
    // Without rollouts there are no rewards.
    ...(training &&
      training.rollouts > 0 && {
        rewardCurve: { ...(await rewards(store, training.metrics)), from: [training.metrics] },
      }),
    iterations: reported,
    ...(best && { bestStep: best.step }),
  };
}

async function rewards(
  store: ArtifactStore,
  metrics: ArtifactRef,
): Promise<Omit<NonNullable<ReportedTraining['rewardCurve']>, 'from'>> {
  const lines = await readMetrics(store, metrics);
  const branches = new Map<string, Curve>();
  for (const { step, reward_by_branch } of lines)
    for (const [branch, mean] of Object.entries(reward_by_branch))
      branches.set(branch, [...(branches.get(branch) ?? []), { step, reward: mean }]);
  const named = [...branches]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([branch, curve]) => ({ branch, points: curve }));
  const points = lines.map(({ step, reward }) => ({ step, reward }));
  return { points, ...(named.length > 0 && { branches: named }) };
}

/** A line for every step. */
export async function readMetrics(store: ArtifactStore, metrics: ArtifactRef): Promise<MetricsLine[]> {
  const lines = (await store.read(metrics)).toString('utf8').split('\n').filter(Boolean);
  return lines.map((line, n) => {
    const { data, error } = metricsLine.safeParse(line);
    if (data) return data;
    const problem = z.prettifyError(error);
    throw new Error(
      `${metrics.uri}, line ${n + 1}: ${problem}; a learner's metrics have step and reward in every line`,
    );
  });
}
