/** Trainings as curves: all of them in one chart, a tab for each measure; of a report, and of a campaign that runs. */
import { useState } from 'preact/hooks';
import { measuredText, wholeNumber } from '../../src/report/format';
import type { ReportedTraining } from '../../src/report/capability-model';
import type { Report } from '../../src/report/model';
import { Chart, type ChartData, type Mark } from './charts';
import { Fold, Num, Quiet, Section, Table } from './parts';
import { shortNames } from './policies';

export interface TrainingRun {
  name: string;
  curves: Omit<NonNullable<ReportedTraining['rewardCurve']>, 'from'>;
  /** Held-out mean reward by step. */
  heldOut: { step: number; value: number; low?: number | undefined; high?: number | undefined; isBest?: boolean }[];
}

const measures = {
  reward: 'reward',
  loss: 'loss',
  kl: 'KL',
  gradientNorm: 'gradient norm',
  heldOut: 'held-out',
} as const;
type Measure = keyof typeof measures;

/** Returns the lines of a measure: a run has one for each branch too, where it is shown alone. */
function linesOf({ name, curves, heldOut }: TrainingRun, measure: Measure, isAlone: boolean) {
  if (measure === 'heldOut') return [{ name, points: heldOut.map(({ step, value }) => ({ x: step, y: value })) }];
  if (measure !== 'reward') return [{ name, points: (curves[measure] ?? []).map((p) => ({ x: p.step, y: p.value })) }];
  const branches = isAlone ? (curves.branches ?? []).map(({ branch, points }) => ({ name: branch, points })) : [];
  return [{ name, points: curves.points }, ...branches].map((line) => ({
    name: line.name,
    points: line.points.map(({ step, reward }) => ({ x: step, y: reward })),
  }));
}

export function TrainingCharts({ runs }: { runs: readonly TrainingRun[] }) {
  const [measure, setMeasure] = useState<Measure>('reward');
  const [only, setOnly] = useState('');
  const shown = runs.filter(({ name }) => only === '' || name === only);
  const isAlone = shown.length === 1;
  const offered = (Object.keys(measures) as Measure[]).filter((one) =>
    runs.some((run) => linesOf(run, one, false).some(({ points }) => points.length > 0)),
  );
  const lines = shown.flatMap((run) => linesOf(run, measure, isAlone));
  const marks = shown.flatMap(({ name, heldOut }, line): Mark[] =>
    measure !== 'heldOut'
      ? []
      : heldOut.map(({ step: x, value: y, low, high, isBest }) => ({
          ...{ x, y, low, high, line, isOpen: !isBest, ...(isBest && { size: 'large' as const }) },
          title: `${name}, held-out mean reward at step ${x}: ${y.toFixed(2)}${isBest ? ', evaluated' : ''}`,
        })),
  );
  const data: ChartData = {
    ...{ label: `Training: ${measures[measure]} by step`, width: 1000, height: 340, x: 'step' },
    lines,
    marks,
  };
  return (
    <>
      <div class="filters" role="group" aria-label="Measure">
        {offered.map((one) => (
          <button key={one} type="button" aria-pressed={one === measure} onClick={() => setMeasure(one)}>
            {measures[one]}
          </button>
        ))}
        {runs.length > 1 && (
          <select aria-label="Training" value={only} onChange={({ currentTarget }) => setOnly(currentTarget.value)}>
            <option value="">all trainings</option>
            {runs.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </div>
      <Chart data={data} />
    </>
  );
}

/** The trainings of a report, with the checkpoints as a table. */
export function Training({ report: { capabilities = [], arms = [] } }: { report: Report }) {
  const short = shortNames(arms);
  const trained = [...capabilities, ...arms].flatMap(({ name, training }) => (training ? [{ name, training }] : []));
  if (trained.length === 0) return <p>Nothing was trained.</p>;
  const labels = new Map(trained.map(({ name }) => [name, short(name) === name ? name : `${short(name)} ${name}`]));
  const runs = trained.map(({ name, training: { rewardCurve, iterations, bestStep } }): TrainingRun => {
    const heldOut = iterations.flatMap(({ step, meanReward: { value, interval } }) =>
      value === null ? [] : [{ step, value, low: interval?.low, high: interval?.high, isBest: step === bestStep }],
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
        <Table
          label="Trainings"
          rows={trained}
          columns={[
            ['training', ({ name }) => labels.get(name)],
            ['steps', ({ training }) => wholeNumber(training.steps)],
            ['training rollouts', ({ training }) => training.rollouts],
            ['evaluated step', ({ training }) => (training.bestStep === undefined ? '' : `${training.bestStep}`)],
          ]}
        />
        {trained.map(
          ({ name, training: { rowsPerRollout: rows } }) =>
            rows && (
              <p key={name} class="bad">
                {name}: <Num of={rows} /> training rows a rollout, where one is enough. The chat template renders
                earlier turns otherwise than they were sampled, and each row computes all turns before it again. A vLLM
                started with --enable-scale-out continues them as they were sampled.
              </p>
            ),
        )}
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
            checkpoints.some(({ branches }) => branches) && [
              'success rate by branch',
              ({ branches = [] }) => branches.map((one) => `${one.branch} ${measuredText(one.successRate)}`).join('; '),
            ],
          ]}
        />
      </Fold>
    </>
  );
}
