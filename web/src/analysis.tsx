/** The selection of capabilities and what it rests on: of a campaign, and of conversations from elsewhere. */
import type { AnalysedFailure } from '../../src/cli/analyse/result';
import type { ReportedSelection } from '../../src/report/capability-model';
import { wholeNumber } from '../../src/report/format';
import type { Report } from '../../src/report/model';
import type { Page } from './page';
import { Citation, Facts, Fold, From, Messages, Num, Quiet, Section, Table, TrajectoryName } from './parts';
import { LanguageModels } from './run';

const ruleText = ({ rule: { rho, delta, votes }, passes }: ReportedSelection): string =>
  passes === 0
    ? 'The analyst gives the capabilities outright; nothing was labeled.'
    : `Each of ${passes} passes labels all conversations for every candidate. Coverage is the share of the failures that lack the capability; delta is how much more often failures lack it than successes. A pass votes for a candidate if coverage is at least ${rho} and delta at least ${delta}; ${votes} votes select it. Agreement is Krippendorff’s alpha of the passes’ labels: 1 where all label alike, 0 as by chance.`;

export function Selection({ selection }: { selection: ReportedSelection }) {
  const { candidates, reason, decision, failed, passed, failedPasses, passes, from } = selection;
  const hasAgreement = candidates.some(({ agreement }) => agreement !== undefined);
  return (
    <>
      <Section title="Selected capabilities">
        {reason !== undefined && <p class="bad">{reason}</p>}
        {failedPasses.length > 0 && (
          <p class="bad">
            {failedPasses.length} of {passes} labeling passes failed and are left out:{' '}
            {[...new Set(failedPasses.map((one) => one.reason))].join('; ')}.
          </p>
        )}
        <Table
          label="Candidates"
          rows={candidates}
          columns={[
            ['candidate', ({ name }) => name],
            ['selected', ({ selected }) => (selected ? 'yes' : 'no')],
            ['votes', ({ votes, passes: of }) => (of === 0 ? 'given' : `${votes}/${of}`)],
            ['coverage', ({ coverage }) => coverage],
            ['delta', ({ delta }) => delta],
            hasAgreement && ['agreement', ({ agreement }) => agreement],
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
      <Evidence selection={selection} />
      <Faults selection={selection} />
    </>
  );
}

const plural = (n: number, what: string) => (n > 0 ? [`${n} ${what}${n === 1 ? '' : 's'}`] : []);

function Evidence({ selection: { evidence = [], candidates } }: { selection: ReportedSelection }) {
  if (evidence.length === 0) return null;
  const selected = new Set(candidates.filter((one) => one.selected).map(({ name }) => name));
  return (
    <Section title="Evidence">
      <Quiet>Steps that the analyst cites, and failed conversations that passes label as lacking the capability.</Quiet>
      {evidence.map(({ capability, citations, lacking = [] }) => (
        <Fold
          key={capability}
          open={selected.has(capability)}
          summary={
            <>
              <b>{capability}</b>{' '}
              <span class="quiet">
                {[...plural(citations.length, 'cited step'), ...plural(lacking.length, 'failed conversation')].join(
                  ', ',
                )}
              </span>
            </>
          }
        >
          {citations.map((one, n) => (
            <Citation key={n} of={one} />
          ))}
          {lacking.map((one, n) => (
            <Citation
              key={n}
              of={one}
              also={`lacking in ${one.lacking} of ${one.passes} passes${one.message === undefined ? '' : `, ${one.citing} cite the message`}`}
            />
          ))}
        </Fold>
      ))}
    </Section>
  );
}

function Faults({ selection: { faults } }: { selection: ReportedSelection }) {
  if (!faults) return null;
  const { found, trajectories } = faults;
  return (
    <Section title="Faults of the environment or the simulated user">
      <Quiet>
        The agent cannot fix these: they never become a capability. A failed conversation counts here if more passes
        attribute it to the environment or the user than to the agent.
      </Quiet>
      {trajectories && (
        <p>
          Failed conversations attributed to the environment <Num of={trajectories.environment} /> to the user{' '}
          <Num of={trajectories.user} />
        </p>
      )}
      <ul>
        {trajectories?.examples.map((one) => (
          <li key={one.rollout}>
            <TrajectoryName of={one} also={`${one.of} in ${one.votes} of ${one.passes} passes:`} /> {one.reason}
          </li>
        ))}
      </ul>
      {found.map(({ of, what, citations }, n) => (
        <Fold
          key={n}
          open
          summary={
            <>
              <b>{of}</b> {what}
            </>
          }
        >
          {citations.map((one, number) => (
            <Citation key={number} of={one} />
          ))}
        </Fold>
      ))}
    </Section>
  );
}

/** The base model on the train tasks that were analysed. */
export function BaseModel({ report: { base } }: { report: Report }) {
  if (!base) return null;
  const { successRate, meanReward, groups = [] } = base;
  const all = { group: 'all', tasks: successRate.n, successRate, meanReward };
  return (
    <Table
      title="Base model on train tasks"
      rows={[all, ...groups.flatMap(({ group, tasks, arms: [arm] }) => (arm ? [{ ...arm, group, tasks }] : []))]}
      columns={[
        ['tasks', ({ group }) => group],
        ['n', ({ tasks }) => tasks],
        ['success rate', (one) => one.successRate],
        ['mean reward', (one) => one.meanReward],
      ]}
    />
  );
}

/** Conversations below which the analysis is called tentative. */
const FEW = 30;

/** The page of `campaign analyse`: how much each capability explains, then the conversations. */
export function AnalysisPage({ analysis, spent }: Extract<Page, { kind: 'analysis' }>) {
  const { selection, failures, conversations, files, analyst, notes, madeAt, name } = analysis;
  const passes = selection.passes - selection.failedPasses.length;
  const selected = selection.candidates.filter((one) => one.selected);
  const names = new Set(selected.map((one) => one.name));
  const of = (what: string) => failures.filter(({ explainedBy }) => explainedBy.includes(what));
  const others = [...new Set(failures.flatMap(({ explainedBy }) => explainedBy))].filter((one) => !names.has(one));
  const rows = [...selected, ...others.map((what) => ({ name: what, definition: '' }))];
  const doubts = [
    conversations.failed < FEW &&
      `Only ${conversations.failed} failed conversations were read: another sample may show other capabilities. Give ${FEW} or more.`,
    passes > 1 &&
      `Votes and agreement say how alike ${analyst.model} answers ${passes} times about the same conversations. They say nothing about other conversations.`,
  ].filter((one) => one !== false);
  return (
    <>
      <p class="answer">
        {selected.length === 0
          ? `No capability was selected${selection.reason === undefined ? '' : `: ${selection.reason}`}.`
          : `${selected.map((one) => one.name).join(', ')} ${selected.length === 1 ? 'explains' : 'explain'} ${failures.filter(({ explainedBy }) => explainedBy.some((one) => names.has(one))).length} of ${failures.length} failed conversations.`}
      </p>
      <Table
        title="What explains the failures"
        rows={rows}
        columns={[
          ['explanation', (row) => row.name],
          ['failed conversations', (row) => `${of(row.name).length} of ${failures.length}`],
          [
            'which',
            (row) =>
              of(row.name).map(({ conversation }, n) => (
                <>
                  {n > 0 && ', '}
                  <a href={`#failure-${conversation}`}>{conversation}</a>
                </>
              )),
          ],
          ['definition', (row) => row.definition],
        ]}
      />
      {doubts.length > 0 && (
        <Section title="What is doubtful">
          <ul class="bad">
            {doubts.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Failed conversations">
        <Quiet>
          Message numbers count from 0, as in the file. A failure begins at the message that most passes name: the first
          after which the attempt could no longer pass unless the agent had noticed and undone it.
        </Quiet>
        {failures.map((failure) => (
          <Failure key={failure.conversation} failure={failure} passes={passes} />
        ))}
      </Section>
      <Selection selection={selection} />
      <Section title="About this analysis">
        <Facts
          facts={[
            [
              'conversations',
              `${wholeNumber(conversations.total)}: ${wholeNumber(conversations.failed)} failed, ${wholeNumber(conversations.passed)} passed; about ${wholeNumber(conversations.tokens)} tokens`,
            ],
            ['files', files.join('; ')],
            ['analyst', `${analyst.model} (analyst ${analyst.kind}, version ${analyst.version})`],
            ['made', madeAt],
            ...notes.map((one) => ['note', one] as const),
          ]}
        />
        {spent ? <LanguageModels spent={spent} /> : <p class="quiet">Nothing was paid for under the name {name}.</p>}
      </Section>
    </>
  );
}

function Failure({ failure, passes }: { failure: AnalysedFailure; passes: number }) {
  const { conversation, task, reward, messages, lacking, begins, explainedBy } = failure;
  const parts = [
    task !== conversation && `task ${task}`,
    `reward ${Number(reward.toFixed(3))}`,
    begins && `begins at message ${begins.message} of ${messages} (${begins.votes} of ${passes} passes)`,
    ...explainedBy,
  ];
  return (
    <Fold
      id={`failure-${conversation}`}
      summary={
        <>
          <b>{conversation}</b> <span class="quiet">{parts.filter(Boolean).join(' · ')}</span>
        </>
      }
    >
      {begins && (
        <>
          <p>{begins.reason}</p>
          <Messages messages={begins.context} cited={begins.message} />
        </>
      )}
      {lacking.map(({ capability, votes, passes: of, reasons }) => (
        <Fold key={capability} summary={`${capability}: lacking in ${votes} of ${of} passes`}>
          <ul>
            {reasons.map(({ pass, reason, message }) => (
              <li key={pass}>
                pass {pass + 1}
                {message !== undefined && `, message ${message}`}: {reason}
              </li>
            ))}
          </ul>
        </Fold>
      ))}
    </Fold>
  );
}
