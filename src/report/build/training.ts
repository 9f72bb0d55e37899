/** A training in the report: the reward of every step, and the held-out figures that picked the best iteration. */
import { z } from 'zod';
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { Iteration, TrainingResult } from '../../domain/results';
import type { ReportedIteration, ReportedTraining } from '../../domain/reported-training';
import { taskMeans } from './evidence';
import { plainFigure, rateFigure, rewardFigure, type Level } from './figures';

/** A line of the trainer's metrics.jsonl. */
const metricsLine = z.looseObject({ step: z.number().int(), reward: z.number() });

interface Work {
  iterations: Iteration[];
  best?: Iteration;
  training?: TrainingResult;
}

/** `id` begins the ids of its figures. */
export async function reportedTraining(o: {
  store: ArtifactStore;
  id: string;
  work: Work;
  level: Level;
}): Promise<ReportedTraining> {
  const { store, level } = o;
  const { training, iterations, best } = o.work;
  const id = `${o.id}.training`;
  const reported: ReportedIteration[] = [];
  for (const { step, rollouts, heldOut } of iterations) {
    const means = await taskMeans(store, heldOut.ref);
    const at = `${id}.step-${step}`;
    const from = [training?.metrics ?? heldOut.ref];
    reported.push({
      step,
      rollouts: plainFigure({ id: `${at}.rollouts`, value: rollouts, n: rollouts, unit: 'count', from }),
      successRate: rateFigure({ id: `${at}.success_rate`, means, level }),
      meanReward: rewardFigure({ id: `${at}.mean_reward`, means, level }),
    });
  }
  const last = iterations.at(-1);
  const rollouts = training?.rollouts ?? last?.rollouts ?? 0;
  return {
    steps: training?.steps ?? last?.step ?? 0,
    rollouts: plainFigure({
      id: `${id}.rollouts`,
      value: rollouts,
      n: rollouts + (training?.brokenRollouts ?? 0),
      unit: 'count',
      from: training ? [training.metrics] : iterations.map(({ heldOut }) => heldOut.ref),
    }),
    ...(training && { rewardCurve: { points: await rewards(store, training.metrics), from: [training.metrics] } }),
    iterations: reported,
    ...(best && { bestStep: best.step }),
  };
}

async function rewards(store: ArtifactStore, metrics: ArtifactRef): Promise<{ step: number; reward: number }[]> {
  const lines = (await store.read(metrics)).toString('utf8').split('\n').filter(Boolean);
  return lines.map((line) => {
    const { step, reward } = metricsLine.parse(JSON.parse(line));
    return { step, reward };
  });
}
