/** A training in the report: the reward of every step, and the held-out figures that picked the best iteration. */
import type { ArmResult, CapabilityResult } from '../../domain/results';
import type { LearnerCurves, ReportedTraining } from '../capability-model';
import type { Evidence, MetricsLine } from './evidence';
import { countFigure, rateFigure, rewardFigure } from './figures';

export function reportedTraining(o: {
  evidence: Evidence;
  /** Begins the ids of its figures. */
  id: string;
  child: Pick<CapabilityResult | ArmResult, 'work' | 'best'>;
}): ReportedTraining | undefined {
  const { evidence, child } = o;
  if (!child.work) return undefined;
  const { training, iterations } = child.work;
  const { level } = evidence;
  const id = `${o.id}.training`;
  const { rollouts, brokenRollouts, steps, metrics } = training;
  const from = [metrics];
  return {
    steps,
    unchanged: (rollouts > 0 && evidence.metrics(metrics).at(-1)?.b_norm === 0) || undefined,
    rollouts: countFigure(`${id}.rollouts`, rollouts, from, rollouts + brokenRollouts),
    // Without rollouts there are no rewards.
    rewardCurve: rollouts > 0 ? { ...curvesOf(evidence.metrics(metrics)), from } : undefined,
    iterations: iterations.map(({ step, rollouts: spent, heldOut: { ref } }) => {
      const at = `${id}.step-${step}`;
      const means = evidence.means(ref);
      return {
        step,
        rollouts: countFigure(`${at}.rollouts`, spent, from),
        successRate: rateFigure(`${at}.success_rate`, means, level),
        meanReward: rewardFigure(`${at}.mean_reward`, means, level),
      };
    }),
    bestStep: child.best?.step,
  };
}

/** Returns the learner's curves by step. */
export function curvesOf(lines: readonly MetricsLine[]): LearnerCurves {
  const curve = (field: 'loss' | 'kl' | 'grad_norm') => {
    const points = lines.flatMap(({ step, [field]: value }) => (value === undefined ? [] : [{ step, value }]));
    return points.length > 0 ? points : undefined;
  };
  return {
    points: lines.map(({ step, reward }) => ({ step, reward })),
    ...{ loss: curve('loss'), kl: curve('kl'), gradientNorm: curve('grad_norm') },
  };
}
