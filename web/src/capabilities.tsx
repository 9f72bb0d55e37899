/** The selected capabilities: what became of each adapter, its held-out success, and the rounds of its environment. */
import type { ReportedCapability, ReportedRound } from '../../src/report/capability-model';
import type { Figure } from '../../src/domain/artifacts';
import type { Report } from '../../src/report/model';
import { Fold, From, Quiet, Section, Table } from './parts';
import { shortNames } from './policies';

export function Capabilities({ report: { capabilities = [], selection, arms } }: { report: Report }) {
  const short = shortNames(arms);
  if (capabilities.length === 0)
    return (
      <p>
        No capability was selected
        {selection?.reason !== undefined && `: ${selection.reason}`}.
      </p>
    );
  return (
    <>
      {capabilities.map((one) => (
        <Capability key={one.name} capability={one} short={short(one.name)} />
      ))}
    </>
  );
}

function Capability({ capability, short }: { capability: ReportedCapability; short: string }) {
  const { name, definition, statement, status, reason, adapter, tasks, rounds = [] } = capability;
  const isBad = statement ? statement.verdict === 'hurts' || statement.rewardHacking : status === 'failed';
  return (
    <Section title={short === name ? name : `${short} · ${name}`}>
      <p class={isBad ? 'bad strong' : 'strong'}>
        {statement ? statement.text : [status?.replace('_', ' ') ?? 'not finished', reason].filter(Boolean).join(': ')}{' '}
        <From of={statement?.behind ?? []} />
      </p>
      <Quiet>
        {definition} {adapter && <From of={[adapter]} />}
      </Quiet>
      {tasks && (
        <p>
          Trained on the target itself: {tasks.lacking.value} train tasks labelled LACKING and {tasks.present.value}{' '}
          labelled PRESENT, {tasks.heldOut.value} of them held out; {tasks.mixed.value} with mixed labels are left out.{' '}
          <From of={Object.values(tasks).map(({ id }) => id)} />
        </p>
      )}
      <Measured capability={capability} />
      {rounds.length > 0 && (
        <Fold summary={`${rounds.length} version${rounds.length === 1 ? '' : 's'} of its environment`}>
          <Rounds rounds={rounds} />
        </Fold>
      )}
    </Section>
  );
}

function Measured({ capability: { validation, onTarget, tasks } }: { capability: ReportedCapability }) {
  if (!validation) return null;
  const { synthesized, target, branches = [], chose } = validation;
  const rows: { where: string; before?: Figure; after?: Figure; difference?: Figure | undefined }[] = [
    { where: tasks ? 'held-out tasks of its own' : 'held-out seeds of its own environment', ...synthesized },
    ...branches.map((one) => ({ ...one, where: `of these, branch ${one.branch}` })),
    { where: 'held-out train tasks of the target', ...target },
    ...(onTarget ? [{ where: 'all tasks of the target that it was tried on', difference: onTarget }] : []),
  ];
  return (
    <>
      <Table
        label="Success rate before and after training"
        rows={rows}
        columns={[
          ['success rate on', ({ where }) => where],
          ['base', ({ before }) => before],
          ['adapter', ({ after }) => after],
          ['difference', ({ difference }) => difference],
        ]}
      />
      {chose && (
        <Quiet>
          The {tasks ? 'held-out tasks' : 'seeds of its own environment'} chose its checkpoint, so its success there is
          a little high.
        </Quiet>
      )}
    </>
  );
}

export function Rounds({ rounds }: { rounds: readonly ReportedRound[] }) {
  return (
    <Table
      label="Versions of the environment"
      rows={rounds}
      columns={[
        [
          'version',
          ({ round, module }) => (
            <>
              {round} <From of={[module]} />
            </>
          ),
        ],
        ['self-test', ({ selfTest }) => (selfTest.passed ? 'passed' : <span class="bad">failed</span>)],
        [
          'calibration',
          ({ calibration: one, decision }) =>
            [one?.verdict.replaceAll('_', ' ') ?? 'not calibrated', one?.judged, decision].filter(Boolean).join(', '),
        ],
        ['mean reward of base', ({ calibration }) => calibration?.meanReward],
        ['success rate of base', ({ calibration }) => calibration?.successRate],
        ['informative', ({ calibration }) => calibration?.informative],
        ['findings', ({ selfTest, calibration }) => [...selfTest.findings, ...(calibration?.reasons ?? [])].join('; ')],
      ]}
    />
  );
}
