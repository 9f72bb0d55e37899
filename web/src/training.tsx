/** Trainings as curves: all of them in one chart, a tab for each measure; of a report, and of a campaign that runs. */
import { useState } from 'preact/hooks';
import type { Report } from '../../src/report/model';
import type { TrainingCurve } from '../../src/view/api';
import { Chart, type ChartData, type ChartPoint } from './charts';
import { Fold, Quiet, Section, Table } from './parts';
import { shortNames } from './policies';

const measures = {
  reward: 'reward',
  loss: 'loss',
  kl: 'KL',
  gradientNorm: 'gradient norm',
  heldOut: 'held-out',
} as const;
type Measure = keyof typeof measures;

function pointsOf({ name: series, curves, heldOut }: TrainingCurve, measure: Measure): ChartPoint[] {
  if (measure === 'reward') return curves.points.map(({ step: x, reward: y }) => ({ series, x, y }));
  if (measure === 'heldOut') return heldOut.map(({ step: x, value: y, low, high }) => ({ series, x, y, low, high }));
  return (curves[measure] ?? []).map(({ step: x, value: y }) => ({ series, x, y }));
}

export function TrainingCharts({ runs }: { runs: readonly TrainingCurve[] }) {
  const [measure, setMeasure] = useState<Measure>('reward');
  const offered = (Object.keys(measures) as Measure[]).filter((one) =>
    runs.some((run) => pointsOf(run, one).length > 0),
  );
  const data: ChartData = {
    ...{ label: `Training: ${measures[measure]} by step`, width: 1000, height: 340, x: 'step' },
    points: runs.flatMap((run) => pointsOf(run, measure)),
    hasDots: measure === 'heldOut',
  };
  return (
    <>
      <div class="filters" role="group" aria-label="Measure">
        {offered.map((one) => (
          <button key={one} type="button" aria-pressed={one === measure} onClick={() => setMeasure(one)}>
            {measures[one]}
          </button>
        ))}
      </div>
      <Chart data={data} />
    </>
  );
}

/** The trainings of a report, with the checkpoints as a table. */
export function Training({ report: { capabilities = [], arms = [] } }: { report: Report }) {
  const trained = [...capabilities, ...arms].flatMap(({ name, training }) => (training ? [{ name, training }] : []));
  if (trained.length === 0) return <p>Nothing was trained.</p>;
  const short = shortNames(arms);
  const labels = new Map(trained.map(({ name }) => [name, short(name) === name ? name : `${short(name)} ${name}`]));
  const runs = trained.map(({ name, training: { rewardCurve, iterations } }): TrainingCurve => {
    const heldOut = iterations.flatMap(({ step, meanReward: { value, interval } }) =>
      value === null ? [] : [{ step, value, low: interval?.low, high: interval?.high }],
    );
    return { name: labels.get(name)!, curves: rewardCurve ?? { points: [] }, heldOut };
  });
  const checkpoints = trained.flatMap(({ name, training: { iterations, bestStep } }) =>
    iterations.map((one) => ({ ...one, name, isBest: one.step === bestStep })),
  );
  return (
    <>
      <Section title="Training">
        <TrainingCharts runs={runs} />
        <Quiet>
          Reward is the mean of the training rollouts of a step. Held-out is the mean reward on seeds of a capability’s
          own environment, and on train tasks of the target for a baseline. Rewards of different environments do not
          compare.
        </Quiet>
      </Section>
      <Fold summary={`${checkpoints.length} checkpoints`}>
        <Table
          label="Checkpoints"
          rows={checkpoints}
          columns={[
            ['training', ({ name }) => labels.get(name)],
            ['step', ({ step, isBest }) => (isBest ? `${step}, evaluated` : `${step}`)],
            ['training rollouts', ({ rollouts }) => rollouts],
            ['held-out success rate', ({ successRate }) => successRate],
            ['held-out mean reward', ({ meanReward }) => meanReward],
          ]}
        />
      </Fold>
    </>
  );
}
