/** What an analysis found: in short on the terminal, with the conversations on the page. */
import { type Block, type Blocks, details, fold, heading, list, note, paragraph, table } from '../../report/blocks';
import { languageModelCost } from '../../report/build/cost';
import { wholeNumber } from '../../report/format';
import { pageHtml } from '../../report/html';
import { languageModelBlocks } from '../../report/sections/run';
import { candidatesTable, ruleText } from '../../report/sections/selection';
import { terminalText } from '../../report/terminal';
import { type Comparison, comparisonBlocks } from './people';
import type { AnalysedCapability, AnalysedFailure, Analysis, Cited } from './result';

export const analysisText = (analysis: Analysis): string => terminalText(blocksOf(analysis), process.stdout.columns);

export const analysisHtml = (analysis: Analysis, comparison?: Comparison): string =>
  pageHtml({
    title: `${analysis.name}: analysis`,
    views: [{ id: 'analysis', name: 'Analysis', blocks: blocksOf(analysis, comparison) }],
  });

const blocksOf = (analysis: Analysis, comparison?: Comparison): Blocks => [
  ...headBlocks(analysis),
  ...capabilitiesBlocks(analysis),
  ...details(...analysis.capabilities.flatMap((capability) => capabilityBlocks(capability, analysis))),
  ...(comparison ? comparisonBlocks(comparison) : []),
  ...failuresBlocks(analysis),
  ...faultsBlocks(analysis),
  ...costBlocks(analysis),
];

function headBlocks({ files, analyst, conversations, notes, madeAt }: Analysis): Blocks {
  const { total, failed, passed, tokens } = conversations;
  return details(
    paragraph('Capabilities that an agent lacks, found in conversations that it had.', 'quiet'),
    list([
      `Conversations: ${wholeNumber(total)}: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`,
      `Files: ${files.join('; ')}`,
      `Analyst: ${analyst.model} (analyst ${analyst.kind}, version ${analyst.version})`,
      `Made: ${madeAt}`,
      ...notes.map((one) => `Note: ${one}`),
    ]),
  );
}

const spread = ({ mean, std }: AnalysedCapability['coverage']) => ({ value: mean, std });

function capabilitiesBlocks({ capabilities, rule, passes, failedPasses, reason, conversations }: Analysis): Blocks {
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
  return [
    heading('Capabilities'),
    note(ruleText(rule, passes)),
    candidatesTable(rows),
    paragraph(reason === undefined ? outcome : `${outcome}: ${reason}`),
    ...failedPasses.map(({ pass, reason: why }) =>
      paragraph(`pass ${pass + 1} failed and is left out: ${why.split('\n')[0]}`, 'bad'),
    ),
  ];
}

const failureId = (conversation: string) => `failure-${conversation}`;

function capabilityBlocks(capability: AnalysedCapability, { failures }: Analysis): Blocks {
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
  return [
    heading(selected ? name : `${name} (not selected)`, 3, name),
    paragraph(definition),
    ...citations.map(citedBlock),
    items.length > 0 && fold(`Failed conversations that lack it, as most passes say (${items.length})`, [list(items)]),
  ];
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

function failuresBlocks(analysis: Analysis): Blocks {
  const { failures, passes } = analysis;
  const explained = failures.map((failure) => ({ ...failure, by: explanationOf(failure, analysis) }));
  const begun = explained.flatMap((one) => (one.begins ? [{ ...one, begins: one.begins }] : []));
  const counts = [NOT_EXPLAINED, FAULTS.environment, FAULTS.user].flatMap((what) => {
    const { length } = explained.filter(({ by }) => by === what);
    return length > 0 ? [`${length} ${what}`] : [];
  });
  const summary = [`${begun.length} of ${failures.length} failed conversations`, ...counts].join(', ');
  return [
    heading('Failed conversations'),
    note(
      'Message numbers count from 0, as in the file. A failure begins at the message that most passes name: the first after which the attempt could no longer pass unless the agent had noticed and undone it.',
    ),
    begun.length > 0 && paragraph(`where each failure begins: ${summary}`),
    table(begun, [
      ['conversation', ({ conversation }) => ({ link: conversation, to: failureId(conversation) })],
      ['message', ({ begins, messages }) => `${begins.message} of ${messages}`],
      ['votes', ({ begins }) => `${begins.votes}/${passes}`],
      ['explained by', ({ by }) => by],
    ]),
    ...details(...failures.map((failure) => failureBlock(failure, passes))),
  ];
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

const faultsBlocks = ({ faults }: Analysis): Blocks =>
  faults.length === 0
    ? []
    : [
        heading('Faults of the environment and of users'),
        note("What failed here for no fault of the agent's: it becomes no capability."),
        ...faults.flatMap(({ of, what, citations }) => [
          paragraph(`${of === 'user' ? 'the user' : 'the environment'}: ${what}`),
          ...details(...citations.map(citedBlock)),
        ]),
      ];

function costBlocks({ spent, budget, analyst, name }: Analysis): Blocks {
  const languageModel = languageModelCost(spent, budget);
  return languageModel
    ? [heading('Cost'), ...languageModelBlocks(languageModel, `asked so far of ${analyst.model} for ${name}`)]
    : details(heading('Cost'), paragraph('Nothing was paid for under this name.', 'quiet'));
}
