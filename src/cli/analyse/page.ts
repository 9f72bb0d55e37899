/** What an analysis found, as sections: in short on the terminal, with the conversations on the page. */
import { languageModelCost } from '../../report/build/report';
import { wholeNumber } from '../../report/format';
import { pageHtml } from '../../report/html';
import { type Block, fold, note, paragraph, type Section, table } from '../../report/section';
import { terminalText } from '../../report/terminal';
import { languageModelTable, spentText } from '../../report/sections/run';
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
  const counts = `${wholeNumber(total)}: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`;
  const rows = [
    ['Conversations', counts],
    ['Files', ...files],
    ['Analyst', `${analyst.model} (analyst ${analyst.kind}, version ${analyst.version})`],
    ['Made', madeAt],
    ['Notes', ...notes],
  ] as const;
  const intro = paragraph('Capabilities that an agent lacks, found in conversations that it had.', 'quiet');
  return { on: 'page', blocks: [intro, { kind: 'facts', rows: rows.filter(({ length }) => length > 1) }] };
}

const meanStd = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;

function capabilitiesSection({ capabilities, rule, passes, failedPasses, reason, conversations }: Analysis): Section {
  const heads = ['capability', 'selected', 'votes', 'Cov', 'Delta', 'agreement', 'failures'];
  const rows = capabilities.map((one) => [
    { link: one.name, to: one.name },
    one.selected ? 'yes' : 'no',
    `${one.votes}/${one.passes}`,
    meanStd(one.coverage),
    meanStd(one.delta),
    one.agreement?.toFixed(2) ?? '–',
    String(one.lacking.length),
    one.definition,
  ]);
  const selected = capabilities.filter((one) => one.selected).length;
  const outcome = `${selected} of ${capabilities.length} capabilities selected, from ${passes} passes over ${wholeNumber(conversations.total)} conversations`;
  return {
    title: 'Capabilities',
    blocks: [
      note(
        `Each pass labels every conversation for every candidate. Cov is the share of the failures that lack it; Delta, how much more often failures lack it than passed conversations do. A pass votes for a candidate if Cov ≥ ${rule.rho.toFixed(2)} and Delta ≥ ${rule.delta.toFixed(2)}; ${rule.votes} votes select it. Agreement is Krippendorff's alpha of the passes: 1 is perfect, 0 is chance.`,
      ),
      table([...heads, { head: 'definition', on: 'page' }], rows),
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
    on: 'page',
    level: 3,
    id: name,
    title: selected ? name : `${name} (not selected)`,
    blocks: [
      paragraph(definition),
      ...citations.map(citedBlock),
      items.length > 0 && fold(summary, [{ kind: 'list', items }]),
    ],
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
  const explained = failures.map((failure) => ({ failure, by: explanationOf(failure, analysis) }));
  const rows = explained.flatMap(({ failure: { conversation, messages, begins }, by }) =>
    begins
      ? [
          [
            { link: conversation, to: failureId(conversation) },
            `${begins.message} of ${messages}`,
            `${begins.votes}/${passes}`,
            by,
          ],
        ]
      : [],
  );
  const counts = [NOT_EXPLAINED, FAULTS.environment, FAULTS.user].flatMap((what) => {
    const { length } = explained.filter(({ by }) => by === what);
    return length > 0 ? [`${length} ${what}`] : [];
  });
  const columns = ['conversation', 'message', 'votes', 'explained by'];
  const begun = `where each failure begins: ${[`${rows.length} of ${failures.length} failed conversations`, ...counts].join(', ')}`;
  return {
    title: 'Failed conversations',
    blocks: [
      note(
        'Message numbers count from 0, as in the file. A failure begins at the message that most passes name: the first after which the attempt could no longer pass unless the agent had noticed and undone it.',
      ),
      rows.length > 0 && paragraph(begun),
      { ...table(columns, rows.slice(0, SHOWN)), on: 'terminal' },
      rows.length > SHOWN && { ...paragraph(`and ${rows.length - SHOWN} more: see the page`), on: 'terminal' },
      { ...table(columns, rows), on: 'page' },
      ...failures.map((failure): Block => ({ ...failureBlock(failure, passes), on: 'page' })),
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
        {
          kind: 'list',
          items: reasons.map(({ pass, reason, message }) =>
            message === undefined ? `pass ${pass + 1}: ${reason}` : `pass ${pass + 1}, message ${message}: ${reason}`,
          ),
        },
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
            ...citations.map((cited): Block => ({ ...citedBlock(cited), on: 'page' })),
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
      { ...languageModelTable(languageModel), on: 'page' },
    ],
  };
}
