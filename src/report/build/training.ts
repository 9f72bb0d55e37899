/** A training in the report: the reward of every step, and the held-out figures that picked the best iteration. */
import type { ArtifactRef, Figure } from '../../domain/artifacts';
import type { ArmResult, CampaignRecord, CapabilityResult } from '../../domain/results';
import type { ReportedTraining } from '../capability-model';
import type { Evidence, MetricsLine } from './evidence';
import { branchesOf, countFigure, ofBranch, rateFigure, rewardFigure } from './figures';

export function reportedTraining(o: {
  record: CampaignRecord;
  evidence: Evidence;
  /** Begins the ids of its figures. */
  id: string;
  child: Pick<CapabilityResult | ArmResult, 'work' | 'best'>;
}): ReportedTraining | undefined {
  const { evidence, child } = o;
  if (!child.work) return undefined;
  const { training, iterations } = child.work;
  const { level } = evidence;
  const { groupSize } = o.record.campaign.training;
  const id = `${o.id}.training`;
  const { rollouts, brokenRollouts, steps, metrics } = training;
  const from = [metrics];
  return {
    steps,
    rollouts: countFigure(`${id}.rollouts`, rollouts, from, rollouts + brokenRollouts),
    rowsPerRollout: rowsFigure(`${id}.rows_per_rollout`, evidence.metrics(metrics), groupSize, from),
    // Without rollouts there are no rewards.
    rewardCurve: rollouts > 0 ? { ...curvesOf(evidence.metrics(metrics)), from } : undefined,
    iterations: iterations.map(({ step, rollouts: spent, heldOut: { ref } }) => {
      const at = `${id}.step-${step}`;
      const means = evidence.means(ref);
      const figures = (prefix: string, of: typeof means) => ({
        successRate: rateFigure(`${prefix}.success_rate`, of, level),
        meanReward: rewardFigure(`${prefix}.mean_reward`, of, level),
      });
      const branches = branchesOf(means).map((branch) => ({
        branch,
        ...figures(`${at}.branch.${branch}`, ofBranch(means, branch)),
      }));
      return {
        step,
        rollouts: countFigure(`${at}.rollouts`, spent, from),
        ...figures(at, means),
        branches: branches.length > 0 ? branches : undefined,
      };
    }),
    bestStep: child.best?.step,
  };
}

/** Undefined where each rollout is one row, and of learners that do not count them. */
function rowsFigure(
  id: string,
  lines: readonly MetricsLine[],
  groupSize: number,
  from: ArtifactRef[],
): Figure | undefined {
  const counted = lines.flatMap(({ rows, informative_groups: groups }) => (rows && groups ? [{ rows, groups }] : []));
  const rollouts = groupSize * counted.reduce((sum, { groups }) => sum + groups, 0);
  const rows = counted.reduce((sum, one) => sum + one.rows, 0);
  return rows > rollouts ? { id, value: rows / rollouts, n: rollouts, unit: 'count', from } : undefined;
}

/** Returns the learner's curves by step; the reward also by branch. */
export function curvesOf(lines: readonly MetricsLine[]): Omit<NonNullable<ReportedTraining['rewardCurve']>, 'from'> {
  const names = [...new Set(lines.flatMap(({ reward_by_branch }) => Object.keys(reward_by_branch)))].sort();
  const branches = names.map((branch) => ({
    branch,
    points: lines.flatMap(({ step, reward_by_branch: { [branch]: reward } }) =>
      reward === undefined ? [] : [{ step, reward }],
    ),
  }));
  const curve = (field: 'loss' | 'kl' | 'grad_norm') => {
    const points = lines.flatMap(({ step, [field]: value }) => (value === undefined ? [] : [{ step, value }]));
    return points.length > 0 ? points : undefined;
  };
  return {
    points: lines.map(({ step, reward }) => ({ step, reward })),
    branches: branches.length > 0 ? branches : undefined,
    ...{ loss: curve('loss'), kl: curve('kl'), gradientNorm: curve('grad_norm') },
  };
}
