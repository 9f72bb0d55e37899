/** A running campaign: its state, its curves, and its pending approvals. */
import { useContext, useState } from 'preact/hooks';
import type { ApprovalView } from '../../src/report/capability-model';
import { dollarsText, wholeNumber } from '../../src/report/format';
import type { Live } from '../../src/view/api';
import { parsed, PlaceContext } from './page';
import { Selection } from './analysis';
import { Rounds } from './capabilities';
import { Facts, List, Section, Table, Workflows } from './parts';
import { TrainingCharts } from './training';

export function LiveView({ live, links = {} }: { live: Live; links?: Record<string, string> | undefined }) {
  const { state, notes, tree, curves, spent } = live;
  const paid = spent.flatMap(({ dollars }) => dollars ?? []);
  return (
    <>
      <p class="answer">{state}</p>
      <Facts
        facts={[
          ['rollouts', curves.rollouts && wholeNumber(curves.rollouts.scored)],
          ['failed (infrastructure)', curves.rollouts?.broken ? wholeNumber(curves.rollouts.broken) : undefined],
          ['language models', paid.length > 0 ? dollarsText(paid.reduce((sum, one) => sum + one, 0)) : undefined],
        ]}
      />
      {notes.length > 0 && <List class="bad" items={notes} />}
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
      {Object.keys(links).length > 0 && <Workflows ids={Object.keys(links)} links={links} />}
    </>
  );
}

export const Approvals = ({ waits }: { waits: readonly ApprovalView[] }) => (
  <>
    {waits.map((view) => (
      // Its key keeps what was typed for one decision out of another.
      <section key={view.waiting.of}>
        <Decision {...view.waiting} />
        {'selection' in view ? (
          <Selection selection={view.selection} />
        ) : (
          <Section title={`Environment of ${view.environment.candidate.name}`}>
            <p>{view.environment.candidate.definition}</p>
            <Rounds rounds={view.environment.rounds} />
            <h3>Source of the module</h3>
            <pre class="source" tabIndex={0}>
              {view.environment.source}
            </pre>
          </Section>
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
