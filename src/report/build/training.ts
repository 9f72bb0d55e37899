/** A training run in the report: the reward of every step, and the held-out rewards that picked the best iteration. */
import type { ArtifactStore } from '../../artifacts/store';
import type { EvaluatedCheckpoint, TrainingResult } from '../../domain/results';
import type { ReportedTraining } from '../../domain/report';
import { z } from 'zod';
import { taskMeans } from './evidence';
import { plainFigure, rewardFigure, type Level } from './figures';

/** A line of the trainer's metrics.jsonl. */
const metricsLine = z.looseObject({ step: z.number().int(), reward: z.number() });

export async function reportedTraining(o: {
  store: ArtifactStore;
  id: string;
  trained: { training: TrainingResult; candidates: EvaluatedCheckpoint[]; best: EvaluatedCheckpoint };
  level: Level;
}): Promise<ReportedTraining> {
  const { store, id, level } = o;
  const { training, candidates, best } = o.trained;
  const lines = (await store.read(training.metrics)).toString('utf8').split('\n').filter(Boolean);
  const points = lines.map((line) => {
    const { step, reward } = metricsLine.parse(JSON.parse(line));
    return { step, reward };
  });
  const heldOut = [];
  for (const { step, heldOut: batch } of candidates) {
    const means = await taskMeans(store, [batch.ref]);
    heldOut.push({ step, reward: rewardFigure({ id: `${id}.held_out.step-${step}`, means, level }) });
  }
  const { rollouts, brokenRollouts: broken, metrics } = training;
  return {
    steps: training.steps,
    rollouts: plainFigure({
      id: `${id}.training_rollouts`,
      value: rollouts,
      n: rollouts + broken,
      unit: 'count',
      from: [metrics],
    }),
    rewardCurve: { points, from: [metrics] },
    heldOut,
    bestStep: best.step,
  };
}
