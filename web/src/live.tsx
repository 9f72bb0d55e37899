/** A campaign that runs: where it stands, its curves, and what waits for a decision. */
import { useContext, useState } from 'preact/hooks';
import type { ApprovalView, CapabilityView, EnvironmentView } from '../../src/report/build/approval';
import { dollarsText, percent, wholeNumber } from '../../src/report/format';
import type { Live } from '../../src/view/api';
import { parsed, PlaceContext } from './page';
import { Citation, Facts, From, Quiet, Section, Table } from './parts';
import { TrainingCharts } from './training';

export function LiveView({ live, links = {} }: { live: Live; links?: Record<string, string> | undefined }) {
  const { state, runs, notes, tree, curves, spent } = live;
  const paid = spent.flatMap(({ dollars }) => dollars ?? []);
  const facts = [
    ['rollouts', curves.rollouts && wholeNumber(curves.rollouts.scored)] as const,
    ['failed (infrastructure)', curves.rollouts?.broken ? wholeNumber(curves.rollouts.broken) : undefined] as const,
    ['language models', paid.length > 0 ? dollarsText(paid.reduce((sum, one) => sum + one, 0)) : undefined] as const,
  ];
  return (
    <>
      <p class="answer">{state}</p>
      {runs && <p>{runs}</p>}
      <Facts facts={facts.filter(([, value]) => value !== undefined)} />
      {notes.length > 0 && (
        <ul class="bad">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <Table
        label="Steps"
        rows={tree}
        columns={[
          ['step', ({ depth, label }) => <span style={{ paddingLeft: `${14 * depth}px` }}>{label}</span>],
          ['state', ({ status }) => status],
          ['detail', ({ detail }) => detail],
        ]}
      />
      {curves.trainings.length > 0 && (
        <Section title="Training">
          <TrainingCharts runs={curves.trainings} />
        </Section>
      )}
      {Object.keys(links).length > 0 && (
        <Section title="Workflows in Temporal">
          <ul>
            {Object.entries(links).map(([id, to]) => (
              <li key={id}>
                <a href={to} rel="noreferrer">
                  {id}
                </a>
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

export const Approvals = ({ waits }: { waits: readonly ApprovalView[] }) => (
  <>
    {waits.map((view) => (
      // Its key keeps what was typed for one decision out of another.
      <section key={view.waiting.of}>
        <Decision {...view.waiting} />
        {'capabilities' in view ? (
          view.capabilities.map((one) => <Capability key={one.candidate.name} view={one} />)
        ) : (
          <Environment view={view.environment} />
        )}
      </section>
    ))}
  </>
);

/** Sends the same decision as `campaign approve` and `campaign reject`. */
function Decision({ of, names }: ApprovalView['waiting']) {
  const { announce } = useContext(PlaceContext);
  const [reason, setReason] = useState('');
  const decide = async (verb: 'approve' | 'reject') => {
    announce('…');
    const body = JSON.stringify({ verb, what: names, of: [of], ...(verb === 'reject' && { reason }) });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch('api/approvals', { method: 'POST', headers, body }).catch(() => undefined);
    if (!answer) return announce('`campaign view` does not answer');
    announce(answer.ok ? parsed<{ decided: string[] }>(await answer.text()).decided.join(' ') : await answer.text());
  };
  return (
    <div class="decision">
      <button type="button" onClick={() => decide('approve')}>
        Approve {names.join(', ')}
      </button>
      <input
        aria-label="Reason for the rejection"
        placeholder="Reason for the rejection"
        value={reason}
        onInput={({ currentTarget }) => setReason(currentTarget.value)}
      />
      <button type="button" disabled={reason.trim() === ''} onClick={() => decide('reject')}>
        Reject
      </button>
    </div>
  );
}

function Capability({ view }: { view: CapabilityView }) {
  const { candidate, votes, passes, coverage, delta, citations } = view;
  const spread = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;
  return (
    <Section title={candidate.name}>
      <p>{candidate.definition}</p>
      <Quiet>
        {coverage && delta
          ? `${votes} of ${passes} votes, coverage ${spread(coverage)}, delta ${spread(delta)}`
          : 'selected by the analyst outright: nothing was labeled'}
      </Quiet>
      {citations.map((one, n) => (
        <Citation key={n} of={one} open />
      ))}
    </Section>
  );
}

function Environment({ view }: { view: EnvironmentView }) {
  const { candidate, round, module, source, calibration, rollouts, earlier } = view;
  const rates = calibration && {
    'success rate': calibration.successRate,
    'all zero': calibration.allZero,
    'all success': calibration.allSuccess,
    informative: calibration.informative,
  };
  return (
    <Section title={`Environment of ${candidate.name}, round ${round}`}>
      <p>{candidate.definition}</p>
      <Facts
        facts={[
          ...(calibration
            ? [
                ['mean reward of the base model', calibration.meanReward.toFixed(2)] as const,
                ...Object.entries(rates ?? {}).map(([name, share]) => [name, percent(share)] as const),
              ]
            : []),
          ...(calibration?.judged ? [['judged', calibration.judged.text] as const] : []),
          ...earlier.map((one) => [`round ${one.round}`, one.summary] as const),
          ['module', <code>{module.sha256}</code>],
          ...(rollouts ? [['rollouts', <From of={[rollouts]} />] as const] : []),
        ]}
      />
      <h3>Source of the module</h3>
      <pre class="source" tabIndex={0}>
        {source}
      </pre>
    </Section>
  );
}
