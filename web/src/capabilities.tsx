/** The selected capabilities: what became of each adapter, its held-out success, and the rounds of its environment. */
import { Fragment } from 'preact';
import type { CalibrationFigures, ReportedCapability, ReportedRound } from '../../src/report/capability-model';
import type { Figure } from '../../src/domain/artifacts';
import type { Report } from '../../src/report/model';
import { type Column, Fold, From, Num, Quiet, Section, Table } from './parts';
import { shortNames } from './policies';

const verdicts = {
  helps: 'helps on the target',
  hurts: 'hurts on the target',
  learned: 'learned in its own environment, no significant gain on the target',
  no_gain: 'no significant gain',
};

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
  const { name, definition, statement, status, reason, onTarget, adapter, rounds = [] } = capability;
  const outcome = statement ? verdicts[statement.verdict] : (status ?? 'not finished').replace('_', ' ');
  return (
    <Section title={short === name ? name : `${short} · ${name}`} id={`capabilities/${name}`}>
      <p>
        <span class={statement?.verdict === 'hurts' || status === 'failed' ? 'bad strong' : 'strong'}>{outcome}</span>
        {statement?.gamed && <span class="bad strong">, reward hacking</span>}
        {reason !== undefined && `: ${reason}`} {onTarget && <Num of={onTarget.all} />}
      </p>
      <Quiet>
        {definition} {adapter && <From of={[adapter]} />}
      </Quiet>
      {statement && (
        <Fold summary="All figures of this verdict">
          <p>
            {statement.text} <From of={statement.behind} />
          </p>
        </Fold>
      )}
      <HeldOut capability={capability} />
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
  before: Figure;
  after: Figure;
  difference?: Figure | undefined;
}

function HeldOut({ capability: { validation, onTarget } }: { capability: ReportedCapability }) {
  if (!validation) return null;
  const { synthesized, target, branches = [], chose } = validation;
  const batchNames = { held_out: 'held-out', router: 'router', test: 'test' };
  const rows: Compared[] = [
    { where: 'held-out seeds of its own environment', ...synthesized },
    ...branches.map(({ branch, ...of }) => ({ where: `of these, branch ${branch}`, ...of })),
    { where: 'held-out train tasks of the target', ...target },
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
      {onTarget && (
        <p>
          Difference by tasks of the target:{' '}
          {onTarget.batches.map(({ of, difference }) => (
            <Fragment key={of}>
              {batchNames[of]} <Num of={difference} />{' '}
            </Fragment>
          ))}
        </p>
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
