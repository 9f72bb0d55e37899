/** A calibration round in the report, by branch too: what was decided when the environment was calibrated. */
import type { Figure } from '../../domain/figure';
import type { BandFigures, CalibrationFigures } from '../../domain/reported-training';
import type { Measures, SynthesisRound } from '../../domain/calibration';
import { plainFigure } from './figures';

type Interval = Measures['intervals']['meanReward'];

export function calibrationFigures(o: {
  /** Begins the ids of its figures. */
  id: string;
  round: Pick<SynthesisRound, 'round' | 'calibration' | 'calibrationRollouts'> & { hints?: number };
}): CalibrationFigures | undefined {
  const { id } = o;
  const { round, hints, calibration: report, calibrationRollouts: rollouts } = o.round;
  if (!report || !rollouts) return undefined;
  const { accepted, verdict, reasons, passAt, passAtIntervals, branches = {}, judged } = report;
  const figure = (o: { id: string; value: number; n: number; unit?: Figure['unit']; interval?: Interval }): Figure => {
    const { interval, ...plain } = o;
    return {
      ...plainFigure({ unit: 'fraction', ...plain, from: [rollouts.ref] }),
      ...(interval && { interval: { ...interval, method: 'over seeds' } }),
    };
  };
  const figuresOf = (prefix: string, { seeds: n, intervals, ...of }: Measures): BandFigures => ({
    meanReward: figure({
      id: `${prefix}.mean_reward`,
      value: of.meanReward,
      n,
      unit: 'reward',
      interval: intervals.meanReward,
    }),
    successRate: figure({
      id: `${prefix}.success_rate`,
      value: of.successRate,
      n,
      interval: intervals.successRate,
    }),
    allSuccess: figure({ id: `${prefix}.all_success`, value: of.allSuccess, n, interval: intervals.allSuccess }),
    allZero: figure({ id: `${prefix}.all_zero`, value: of.allZero, n, interval: intervals.allZero }),
    constant: figure({ id: `${prefix}.constant`, value: of.constant, n, interval: intervals.constant }),
    informative: figure({ id: `${prefix}.informative`, value: of.informative, n, interval: intervals.informative }),
    rewardStd: figure({ id: `${prefix}.reward_std`, value: of.rewardStd, n, unit: 'reward' }),
  });
  const named = Object.entries(branches);
  return {
    round,
    ...(hints !== undefined && { hints }),
    accepted,
    verdict,
    reasons,
    ...figuresOf(id, report),
    passAt: Object.fromEntries(
      Object.entries(passAt).map(([k, value]) => {
        const interval = passAtIntervals[k];
        return [k, figure({ id: `${id}.pass_at_${k}`, value, n: report.seeds, ...(interval && { interval }) })];
      }),
    ),
    ...(named.length > 0 && {
      branches: named.map(([branch, measures]) => ({ branch, ...figuresOf(`${id}.branch.${branch}`, measures) })),
    }),
    ...(judged && { judged: { text: judged.text, ...figuresOf(`${id}.judged`, judged.measures) } }),
  };
}
