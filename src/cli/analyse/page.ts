/** What an analysis found, as sections: in short on the terminal, with the conversations on the page. */
import { languageModelCost } from '../../report/build/report';
import { wholeNumber } from '../../report/format';
import { pageHtml } from '../../report/html';
import { type Block, detail, fold, list, note, paragraph, type Section, table } from '../../report/section';
import { languageModelTable, spentText } from '../../report/sections/run';
import { candidatesTable, ruleText } from '../../report/sections/selection';
import { terminalText } from '../../report/terminal';
import { type Comparison, comparisonSection } from './people';
import type { AnalysedCapability, AnalysedFailure, Analysis, Cited } from './result';

export const analysisText = (analysis: Analysis): string => terminalText(sectionsOf(analysis), process.stdout.columns);

export const analysisHtml = (analysis: Analysis, comparison?: Comparison): string =>
  pageHtml({ title: `${analysis.name}: analysis`, sections: sectionsOf(analysis, comparison) });

const sectionsOf = (analysis: Analysis, comparison?: Comparison): Section[] => [
  headSection(analysis),
  capabilitiesSection(analysis),
  ...analysis.capabilities.map((capability) => capabilitySection(capability, analysis)),
  ...(comparison ? [comparisonSection(comparison)] : []),
  failuresSection(analysis),
  faultsSection(analysis),
  costSection(analysis),
];

function headSection({ files, analyst, conversations, notes, madeAt }: Analysis): Section {
  const { total, failed, passed, tokens } = conversations;
  return {
    detail: true,
    blocks: [
      paragraph('Capabilities that an agent lacks, found in conversations that it had.', 'quiet'),
      list([
        `Conversations: ${wholeNumber(total)}: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`,
        `Files: ${files.join('; ')}`,
        `Analyst: ${analyst.model} (analyst ${analyst.kind}, version ${analyst.version})`,
        `Made: ${madeAt}`,
        ...notes.map((one) => `Note: ${one}`),
      ]),
    ],
  };
}

const spread = ({ mean, std }: AnalysedCapability['coverage']) => ({ value: mean, std });

function capabilitiesSection({ capabilities, rule, passes, failedPasses, reason, conversations }: Analysis): Section {
  const rows = capabilities.map((one) => ({
    ...one,
    name: { link: one.name, to: one.name },
    coverage: spread(one.coverage),
    delta: spread(one.delta),
    agreement: { value: one.agreement ?? null },
    failures: one.lacking.length,
  }));
  const selected = capabilities.filter((one) => one.selected).length;
  const outcome = `${selected} of ${capabilities.length} capabilities selected, from ${passes} passes over ${wholeNumber(conversations.total)} conversations`;
  return {
    title: 'Capabilities',
    blocks: [
      note(ruleText(rule, passes)),
      candidatesTable(rows),
      paragraph(reason === undefined ? outcome : `${outcome}: ${reason}`),
      ...failedPasses.map(({ pass, reason: why }) =>
        paragraph(`pass ${pass + 1} failed and is left out: ${why.split('\n')[0]}`, 'bad'),
      ),
    ],
  };
}

const failureId = (conversation: string) => `failure-${conversation}`;

function capabilitySection(capability: AnalysedCapability, { failures }: Analysis): Section {
  const { name, definition, citations, lacking, selected } = capability;
  const items = failures
    .filter(({ conversation }) => lacking.includes(conversation))
    .map(({ conversation, lacking: lacked }) => {
      const own = lacked.find((one) => one.capability === name);
      const at = own?.message === undefined ? '' : `, message ${own.message}`;
      const says = own?.reasons.find(({ message }) => message === own.message) ?? own?.reasons[0];
      const votes = `(${own?.votes ?? 0} of ${own?.passes ?? 0} passes${at}): ${says?.reason ?? ''}`;
      return [{ link: conversation, to: failureId(conversation) }, votes];
    });
  const summary = `Failed conversations that lack it, as most passes say (${items.length})`;
  return {
    detail: true,
    level: 3,
    id: name,
    title: selected ? name : `${name} (not selected)`,
    blocks: [paragraph(definition), ...citations.map(citedBlock), items.length > 0 && fold(summary, [list(items)])],
  };
}

const citedBlock = ({ conversation, outcome, message, says, context }: Cited): Block =>
  fold(`${conversation} (${outcome}), message ${message}: ${says}`, [
    { kind: 'quote', messages: context, cited: message },
  ]);

const NOT_EXPLAINED = 'not explained by a capability';
const FAULTS = { environment: 'fault of the environment', user: 'fault of the user' };

/** Selected capabilities that most passes call LACKING, a fault that is not the agent's, or neither; undefined where no pass looked at it. */
function explanationOf({ conversation, begins }: AnalysedFailure, { capabilities }: Analysis): string | undefined {
  if (!begins) return undefined;
  if (begins.of !== 'agent') return FAULTS[begins.of];
  const names = capabilities.filter(({ selected, lacking }) => selected && lacking.includes(conversation));
  return names.map(({ name }) => name).join(', ') || NOT_EXPLAINED;
}

/** Failures on the terminal; the page has all. */
const SHOWN = 20;

function failuresSection(analysis: Analysis): Section {
  const { failures, passes } = analysis;
  const explained = failures.map((failure) => ({ ...failure, by: explanationOf(failure, analysis) }));
  const begun = explained.flatMap((one) => (one.begins ? [{ ...one, begins: one.begins }] : []));
  const counts = [NOT_EXPLAINED, FAULTS.environment, FAULTS.user].flatMap((what) => {
    const { length } = explained.filter(({ by }) => by === what);
    return length > 0 ? [`${length} ${what}`] : [];
  });
  const summary = [`${begun.length} of ${failures.length} failed conversations`, ...counts].join(', ');
  return {
    title: 'Failed conversations',
    blocks: [
      note(
        'Message numbers count from 0, as in the file. A failure begins at the message that most passes name: the first after which the attempt could no longer pass unless the agent had noticed and undone it.',
      ),
      begun.length > 0 && paragraph(`where each failure begins: ${summary}`),
      table(
        begun,
        [
          ['conversation', ({ conversation }) => ({ link: conversation, to: failureId(conversation) })],
          ['message', ({ begins, messages }) => `${begins.message} of ${messages}`],
          ['votes', ({ begins }) => `${begins.votes}/${passes}`],
          ['explained by', ({ by }) => by],
        ],
        { most: SHOWN },
      ),
      ...failures.map((failure) => detail(failureBlock(failure, passes))),
    ],
  };
}

function failureBlock(failure: AnalysedFailure, of: number): Block {
  const { conversation, task, reward, messages, lacking, begins } = failure;
  const parts = [
    task !== conversation && `task ${task}`,
    `reward ${Number(reward.toFixed(3))}`,
    begins && `begins at message ${begins.message} of ${messages} (${begins.votes} of ${of} passes)`,
    begins && begins.of !== 'agent' && FAULTS[begins.of],
    ...lacking.slice(0, 3).map(({ capability, votes, passes }) => `${capability} ${votes}/${passes}`),
  ];
  const line = parts.filter(Boolean).join(' · ');
  return fold(
    [
      { tone: 'strong', text: conversation },
      { tone: 'quiet', text: line },
    ],
    [
      begins && paragraph(begins.reason),
      begins && { kind: 'quote', messages: begins.context, cited: begins.message },
      ...lacking.flatMap(({ capability, votes, passes, reasons }): Block[] => [
        paragraph([{ link: capability, to: capability }, `${votes} of ${passes} passes`]),
        list(
          reasons.map(({ pass, reason, message }) =>
            message === undefined ? `pass ${pass + 1}: ${reason}` : `pass ${pass + 1}, message ${message}: ${reason}`,
          ),
        ),
      ]),
    ],
    { id: failureId(conversation) },
  );
}

const faultsSection = ({ faults }: Analysis): Section => ({
  title: 'Faults of the environment and of users',
  blocks:
    faults.length === 0
      ? []
      : [
          note("What failed here for no fault of the agent's: it becomes no capability."),
          ...faults.flatMap(({ of, what, citations }): Block[] => [
            paragraph(`${of === 'user' ? 'the user' : 'the environment'}: ${what}`),
            ...citations.map((cited) => detail(citedBlock(cited))),
          ]),
        ],
});

function costSection({ spent, budget, analyst, name }: Analysis): Section {
  const { languageModel } = languageModelCost(spent, { budget });
  if (!languageModel) return { title: 'Cost', blocks: [note('Nothing was paid for under this name.')] };
  return {
    title: 'Cost',
    blocks: [
      paragraph(`asked so far of ${analyst.model} for ${name}: ${spentText(languageModel)}`),
      languageModelTable(languageModel),
    ],
  };
}
