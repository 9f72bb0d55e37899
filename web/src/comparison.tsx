/** Several runs of one campaign beside each other. */
import type { Comparison } from '../../src/report/comparison';
import { byRunText, percent, standingTexts, TEST } from '../../src/report/format';
import { type Column, List, Quiet, Section, Table } from './parts';
import { Policies, shortNames, SpendingChart } from './policies';

export function ComparisonPage({ comparison }: { comparison: Comparison }) {
  const { runs, target, baseModel, arms, differences, notes, configDifferences } = comparison;
  const short = shortNames(arms);
  return (
    <>
      <p>
        {runs.length} runs on {target.name} {target.version}, base model {baseModel}
      </p>
      <List items={notes} />
      <Section title="Policies on test tasks">
        <Policies
          arms={arms}
          more={[['by run', ({ byRun }) => byRun.map(({ successRate }) => percent(successRate)).join(' ')]]}
        />
        <Quiet>Rollouts are means over the runs.</Quiet>
      </Section>
      <Table
        title="Paired differences"
        rows={differences}
        columns={[
          ['policies', ({ arm, against }) => `${short(arm)} minus ${short(against)}`],
          ['difference', ({ difference, standing }) => (standing === 'same_policy' ? undefined : difference)],
          ['over trainings', ({ standing }) => standingTexts[standing]],
          ['by run', byRunText],
        ]}
      >
        <Quiet>Intervals over the tasks: {TEST}.</Quiet>
      </Table>
      <SpendingChart arms={arms} />
      <Table
        title="Configuration: fields that differ"
        rows={configDifferences}
        columns={[
          ['field', ({ field }) => field],
          ...runs.map(({ name }, n): Column<(typeof configDifferences)[number]> => [name, ({ values }) => values[n]]),
        ]}
      />
    </>
  );
}
