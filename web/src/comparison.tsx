/** Several runs of one campaign beside each other. */
import type { ComparedArm, ComparedPair, Comparison, Span } from '../../src/report/comparison';
import { measuredText, shortPercent, TEST, testText, valueText, wholeNumber } from '../../src/report/format';
import { Chart, type Mark } from './charts';
import { type Column, Fold, Quiet, Section, Table } from './parts';
import { roleNames, shortNames } from './policies';

const rateText = (value: number): string => valueText({ value, unit: 'fraction' });

const measured = (span: Span | { value: number }, unit: 'fraction' | 'difference', level = 0) => ({
  value: span.value,
  unit,
  interval: 'low' in span ? { low: span.low, high: span.high, level, method: '' } : undefined,
});

const standings = {
  ahead: 'better over trainings',
  behind: 'worse over trainings',
  undecided: 'no significant difference over trainings',
  one_training: 'one training of each',
  same_policy: 'one policy, and its figures are samples of it',
} as const satisfies Record<ComparedPair['standing'], string>;

/** A column of values with intervals. */
const spans = <Row,>(
  head: string,
  unit: 'fraction' | 'difference',
  of: (row: Row) => Span | { value: number } | undefined,
): Column<Row> => [
  head,
  (row) => {
    const span = of(row);
    return span && measuredText(measured(span, unit));
  },
  (row) => of(row)?.value ?? -Infinity,
];

export function ComparisonPage({ comparison }: { comparison: Comparison }) {
  const { runs, target, baseModel, arms, differences, notes, configDifferences = [] } = comparison;
  const short = shortNames(arms);
  const merged = arms.filter(({ role }) => role === 'merged');
  const table = (rows: readonly ComparedArm[]) => (
    <Table
      label="Policies on test tasks"
      rows={rows}
      columns={[
        ['policy', ({ name }) => short(name)],
        ['what', ({ name, role, kind }) => (role === 'adapter' ? name : (kind ?? roleNames[role]))],
        ['runs', ({ byRun }) => byRun.length],
        spans('success rate', 'fraction', ({ successRate }: ComparedArm) => successRate),
        spans('against base', 'difference', ({ differenceToBase }: ComparedArm) => differenceToBase),
        ['training rollouts', ({ trainingRollouts }) => trainingRollouts],
        ['all rollouts', ({ allRollouts }) => allRollouts],
        ['by run', ({ byRun }) => byRun.map((one) => rateText(one.successRate)).join(' ')],
      ]}
    />
  );
  return (
    <>
      <p>
        {runs.length} runs on {target.name} {target.version}, base model {baseModel}
      </p>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
      <Section title="Policies on test tasks">
        {table(arms.filter(({ role }) => role !== 'merged'))}
        {merged.length > 0 && (
          <Fold summary={`${merged.length} merged adapter${merged.length === 1 ? '' : 's'}`}>{table(merged)}</Fold>
        )}
        <Quiet>Rollouts are means over the runs.</Quiet>
      </Section>
      <Table
        title="Paired differences"
        rows={differences}
        columns={[
          ['policies', ({ arm, against }) => `${short(arm)} minus ${short(against)}`],
          spans('difference', 'difference', ({ difference, standing }: ComparedPair) =>
            standing === 'same_policy' ? undefined : difference,
          ),
          ['over trainings', ({ standing }) => standings[standing]],
          [
            'by run',
            ({ byRun }) =>
              byRun
                .map(({ run, difference: value, test, samePolicy }) =>
                  [`${run} ${valueText({ value, unit: 'difference' })}`, samePolicy ? 'one policy' : testText({ test })]
                    .filter(Boolean)
                    .join(', '),
                )
                .join('; '),
          ],
        ]}
      >
        <Quiet>p: {TEST}, of one run.</Quiet>
      </Table>
      <Section title="Success rate against training rollouts">
        <ComparisonChart arms={arms} />
        <Quiet>
          Open marks: held-out train tasks of the target, mean over the runs. Large marks: test tasks, mean over the
          runs; small marks: each run.
        </Quiet>
      </Section>
      {configDifferences.length > 0 && (
        <Table
          title="Configuration: fields that differ"
          rows={configDifferences}
          columns={[
            ['field', ({ field }) => field],
            ...runs.map(({ name }, n): Column<{ field: string; values: string[] }> => [
              name,
              ({ values }: { values: string[] }) => values[n],
            ]),
          ]}
        />
      )}
    </>
  );
}

/** A line of held-out checkpoints for each policy that can be shipped, and its test tasks. Adapters are in the table only. */
function ComparisonChart({ arms: all }: { arms: readonly ComparedArm[] }) {
  const arms = all.filter(({ role }) => role === 'base' || role === 'routed' || role === 'baseline');
  const marks = arms.flatMap(({ name, heldOut, byRun, trainingRollouts, successRate }, line): Mark[] => [
    ...heldOut.map(({ rollouts: x, successRate: y, runs }): Mark => {
      const title = `${name}, held out, ${wholeNumber(x)} training rollouts: ${rateText(y)}, mean of ${runs} runs`;
      return { x, y, line, isOpen: true, title };
    }),
    ...byRun.map(({ run, trainingRollouts: x, successRate: y }): Mark => {
      return { x, y, line, size: 'small', title: `${name} in ${run}: ${rateText(y)}` };
    }),
    {
      ...{ x: trainingRollouts, y: successRate.value, line, size: 'large' },
      name,
      title: `${name}, test: ${measuredText(measured(successRate, 'fraction'))}, mean of ${byRun.length} runs`,
    },
  ]);
  return (
    <Chart
      data={{
        ...{ label: 'Success rate against training rollouts, over several runs', width: 760, height: 360 },
        ...{ x: 'training rollouts', shares: true, marks },
        lines: arms.map(({ name, heldOut, successRate }) => ({
          name: `${name} ${shortPercent(successRate.value)}`,
          points: heldOut.map((one) => ({ x: one.rollouts, y: one.successRate })),
        })),
      }}
    />
  );
}
