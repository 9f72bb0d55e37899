/** The selected capabilities: what became of each adapter, its held-out success, and the rounds of its environment. */
import type { CalibrationFigures, ReportedCapability, ReportedRound } from '../../src/report/capability-model';
import type { Figure } from '../../src/domain/artifacts';
import type { Report } from '../../src/report/model';
import { type Column, Fold, From, Num, Quiet, Section, Table } from './parts';
import { shortNames } from './policies';

export function Capabilities({ report: { capabilities = [], bands, selection, arms } }: { report: Report }) {
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
      {bands && (
        <Quiet>
          An environment is accepted if the base model’s figures are within these bounds: mean reward{' '}
          {bands.meanReward.join(' to ')}, success rate {bands.successRate.join(' to ')}, all success at most{' '}
          {bands.maxAllSuccess}, all zero at most {bands.maxAllZero}, constant at most {bands.maxConstant}, informative
          at least {bands.minInformative}.
        </Quiet>
      )}
    </>
  );
}

function Capability({ capability, short }: { capability: ReportedCapability; short: string }) {
  const { name, definition, statement, status, reason, adapter, rounds = [] } = capability;
  const isBad = statement ? statement.verdict === 'hurts' || statement.rewardHacking : status === 'failed';
  return (
    <Section title={short === name ? name : `${short} · ${name}`} id={`capabilities/${name}`}>
      <p class={isBad ? 'bad strong' : 'strong'}>
        {statement ? statement.text : [status?.replace('_', ' ') ?? 'not finished', reason].filter(Boolean).join(': ')}{' '}
        <From of={statement?.behind ?? []} />
      </p>
      <Quiet>
        {definition} {adapter && <From of={[adapter]} />}
      </Quiet>
      <Measured capability={capability} />
      {rounds.length > 0 && (
        <Fold summary={`${rounds.length} version${rounds.length === 1 ? '' : 's'} of its environment`}>
          <Rounds rounds={rounds} />
        </Fold>
      )}
    </Section>
  );
}

interface Compared {
  where: string;
  before?: Figure;
  after?: Figure;
  difference?: Figure | undefined;
}

const batches = { held_out: 'held-out train tasks', router: 'train tasks of the router', test: 'test tasks' };

function Measured({ capability: { validation, onTarget } }: { capability: ReportedCapability }) {
  if (!validation) return null;
  const { synthesized, target, branches = [], chose } = validation;
  const others = onTarget?.batches.filter(({ of }) => of !== 'held_out') ?? [];
  const rows: Compared[] = [
    { where: 'held-out seeds of its own environment', ...synthesized },
    ...branches.map(({ branch, ...of }) => ({ where: `of these, branch ${branch}`, ...of })),
    { where: batches.held_out, ...target },
    ...others.map(({ of, difference }) => ({ where: batches[of], difference })),
    ...(onTarget ? [{ where: 'all tasks of the target', difference: onTarget.all }] : []),
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
        <Quiet>The seeds of its own environment chose its checkpoint, so its success there is a little high.</Quiet>
      )}
    </>
  );
}

/** A version whose self-test failed has no calibration. */
function Rounds({ rounds }: { rounds: readonly ReportedRound[] }) {
  const measure = (head: string, of: 'meanReward' | 'successRate' | 'informative'): Column<ReportedRound> => [
    head,
    ({ calibration: one }) =>
      one && (
        <>
          <Num of={one[of]} />
          {one.branches?.map((branch) => (
            <div key={branch.branch}>
              {branch.branch} <Num of={branch[of]} />
            </div>
          ))}
        </>
      ),
  ];
  const verdictOf = (one: CalibrationFigures | undefined, decision?: string) =>
    [one?.verdict.replaceAll('_', ' ') ?? 'not calibrated', one?.judged?.text, decision].filter(Boolean).join(', ');
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
        ['calibration', ({ calibration, decision }) => verdictOf(calibration, decision)],
        measure('mean reward of base', 'meanReward'),
        measure('success rate of base', 'successRate'),
        measure('informative', 'informative'),
        [
          'pass@k',
          ({ calibration }) =>
            Object.entries(calibration?.passAt ?? {}).map(([k, of]) => (
              <div key={k}>
                @{k} <Num of={of} />
              </div>
            )),
        ],
        ['findings', ({ selfTest, calibration }) => [...selfTest.findings, ...(calibration?.reasons ?? [])].join('; ')],
      ]}
    />
  );
}
