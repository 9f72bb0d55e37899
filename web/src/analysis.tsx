/** The selection of capabilities with its evidence, for a campaign or for a user's conversations. */
import type { AnalysedFailure, ShownConversation, Statement } from '../../src/cli/analyse/result';
import type { ReportedCitation, ReportedFaults, ReportedSelection } from '../../src/report/capability-model';
import { failedPassesText } from '../../src/report/format';
import type { Report } from '../../src/report/model';
import type { Page } from './page';
import { Citation, Fold, From, List, Messages, Num, Quiet, Section, Table } from './parts';
import { LanguageModels } from './run';

const ruleText = ({ rule, passes }: ReportedSelection): string =>
  passes === 0
    ? 'The analyst gives the capabilities outright; nothing was labeled.'
    : `Each of ${passes} passes labels all conversations for every candidate. Coverage is the share of the failures that lack the capability; delta is how much more often failures lack it than successes.${rule ? ` A pass votes for a candidate if coverage is at least ${rule.rho} and delta at least ${rule.delta}; ${rule.votes} votes select it.` : ''}`;

/** The selection of capabilities, and the base model's success on the train tasks by group. */
export const Analysis = ({ report: { selection, base } }: { report: Report }) => (
  <>
    {selection && <Selection selection={selection} />}
    <Table
      title="Base model by group of train tasks"
      rows={base?.groups ?? []}
      columns={[
        ['group', ({ group }) => group],
        ['n', ({ tasks }) => tasks],
        ['success rate', ({ arms }) => arms[0]?.successRate],
      ]}
    />
  </>
);

export function Selection({ selection }: { selection: ReportedSelection }) {
  const { candidates, reason, decision, failed, passed, failedPasses, from, faults } = selection;
  return (
    <>
      <Section title="Selected capabilities">
        {reason !== undefined && <p class="bad">{reason}</p>}
        {failedPasses.length > 0 && <p class="bad">{failedPassesText(selection)}</p>}
        <Table
          label="Candidates"
          rows={candidates}
          columns={[
            ['candidate', ({ name }) => name],
            ['selected', ({ selected }) => (selected ? 'yes' : 'no')],
            ['votes', ({ votes, passes: of }) => (of === 0 ? 'given' : `${votes}/${of}`)],
            ['coverage', ({ coverage }) => coverage],
            ['delta', ({ delta }) => delta],
            ['definition', ({ definition }) => definition],
          ]}
        />
        {decision !== undefined && <p>The selected ones were {decision}.</p>}
        <p>
          Labeled conversations: failed <Num of={failed} /> passed <Num of={passed} />
        </p>
        <Quiet>
          {ruleText(selection)} <From of={from} />
        </Quiet>
      </Section>
      {candidates.some(({ citations }) => citations.length > 0) && (
        <Section title="Evidence">
          {candidates.map(
            ({ name, selected, citations }) =>
              citations.length > 0 && (
                <Fold key={name} open={selected} summary={<b>{name}</b>}>
                  <Citations of={citations} />
                </Fold>
              ),
          )}
        </Section>
      )}
      {faults && <Faults faults={faults} />}
    </>
  );
}

const Citations = ({ of }: { of: readonly ReportedCitation[] }) => of.map((one, n) => <Citation key={n} of={one} />);

function Faults({ faults: { found, counts, examples } }: { faults: ReportedFaults }) {
  return (
    <Section title="Faults of the environment or the simulated user">
      <Quiet>
        The agent cannot fix these: they never become a capability. A failed conversation counts here if more passes
        attribute it to the environment or the user than to the agent.
      </Quiet>
      {counts && (
        <p>
          Failed conversations attributed to the environment <Num of={counts.environment} /> to the user{' '}
          <Num of={counts.user} />
        </p>
      )}
      <Citations of={examples} />
      {found.map(({ of, what, citations }, n) => (
        <Fold key={n} open summary={`${of}: ${what}`}>
          <Citations of={citations} />
        </Fold>
      ))}
    </Section>
  );
}

/** The page of `campaign analyse`: its statements, then the conversations to read. */
export function AnalysisPage({ analysis, spent }: Extract<Page, { kind: 'analysis' }>) {
  const { sections, partings, reading, shown } = analysis;
  const failures = new Map(reading?.failures.map((one) => [one.conversation, one]));
  const texts = new Map(shown.map(({ conversation, messages }) => [conversation, messages]));
  return (
    <>
      {sections.map(({ title, statements }, n) => (
        <Section key={title} title={title}>
          {n === 0 && <p class="answer">{statements[0] && <Sentence of={statements[0]} />}</p>}
          <List
            items={statements.slice(n === 0 ? 1 : 0).map((one) => (
              <Sentence of={one} />
            ))}
          />
        </Section>
      ))}
      {partings.map(({ task, failed, passed, then }) => (
        <Fold key={task} summary={`task ${task}, side by side: ${failed} failed, ${passed} passed`}>
          <div class="beside">
            <Messages messages={texts.get(failed) ?? []} cited={then.failed?.message} />
            <Messages messages={texts.get(passed) ?? []} cited={then.passed?.message} />
          </div>
        </Fold>
      ))}
      <Section title="Conversations">
        <Quiet>
          Message numbers count from 0, as in the file. A failure begins at the message that most passes name: the first
          after which the attempt could no longer pass unless the agent had noticed and undone it.
        </Quiet>
        {shown.map((one) => (
          <Shown key={one.conversation} of={one} failure={failures.get(one.conversation)} />
        ))}
      </Section>
      {reading && <Selection selection={reading.selection} />}
      {spent && <LanguageModels spent={spent} />}
    </>
  );
}

const Sentence = ({ of: { text, conversations = [] } }: { of: Statement }) => (
  <>
    {text}
    {conversations.map((id, n) => (
      <>
        {n === 0 ? ' (' : ', '}
        <a href={`#conversation-${encodeURIComponent(id)}`}>{id}</a>
      </>
    ))}
    {conversations.length > 0 && ')'}
  </>
);

/** A conversation; of a failed one where it begins and what each pass says. */
function Shown({ of, failure }: { of: ShownConversation; failure: AnalysedFailure | undefined }) {
  const { conversation, task, reward, messages } = of;
  const { begins, lacking = [], explainedBy = [] } = failure ?? {};
  const parts = [
    task !== conversation && `task ${task}`,
    reward === 1 ? 'passed' : `failed, reward ${Number(reward.toFixed(3))}`,
    begins && `begins at message ${begins.message} (${begins.votes} of ${begins.blaming} passes)`,
    ...explainedBy,
  ];
  return (
    <Fold
      id={`conversation-${conversation}`}
      summary={
        <>
          <b>{conversation}</b> <span class="quiet">{parts.filter(Boolean).join(' · ')}</span>
        </>
      }
    >
      {begins && <p>{begins.reason}</p>}
      {lacking.map(({ capability, lacking: votes, passes, message, says }) => (
        <p key={capability}>
          {capability}, lacking in {votes} of {passes} passes{message !== undefined && `, message ${message}`}: {says}
        </p>
      ))}
      <Messages messages={messages} cited={begins?.message} />
    </Fold>
  );
}
