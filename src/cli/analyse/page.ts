/** What an analysis found: in short on the terminal, with the conversations on the page. */
import { countsOf } from '../../domain/statistics';
import { type Block, type Blocks, details, fold, heading, list, note, paragraph, table } from '../../report/blocks';
import { languageModelCost } from '../../report/build/cost';
import { wholeNumber } from '../../report/format';
import { pageHtml } from '../../report/html';
import { languageModelBlocks } from '../../report/sections/run';
import { selectionBlocks } from '../../report/sections/selection';
import { terminalText } from '../../report/terminal';
import type { AnalysedFailure, Analysis } from './result';

export const analysisText = (analysis: Analysis): string => terminalText(blocksOf(analysis), process.stdout.columns);

export const analysisHtml = (analysis: Analysis): string =>
  pageHtml({
    title: `${analysis.name}: analysis`,
    views: [{ id: 'analysis', name: 'Analysis', blocks: blocksOf(analysis) }],
  });

const blocksOf = (analysis: Analysis): Blocks => [
  ...headBlocks(analysis),
  ...selectionBlocks(analysis),
  ...failuresBlocks(analysis),
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

const failureId = (conversation: string) => `failure-${conversation}`;

const NOT_EXPLAINED = 'not explained by a capability';
const FAULTS = { environment: 'fault of the environment', user: 'fault of the user' };

/** Selected capabilities that most passes call LACKING, a fault that is not the agent's, or neither; nothing where no pass looked at it. */
function explanationsOf({ begins, lacking }: AnalysedFailure, selected: ReadonlySet<string>): string[] {
  if (!begins) return [];
  if (begins.of !== 'agent') return [FAULTS[begins.of]];
  const names = lacking.filter(({ capability, label }) => label === 'LACKING' && selected.has(capability));
  return names.length > 0 ? names.map(({ capability }) => capability) : [NOT_EXPLAINED];
}

function failuresBlocks({ failures, selection }: Analysis): Blocks {
  const passes = selection.passes - selection.failedPasses.length;
  const selected = new Set(selection.candidates.flatMap((one) => (one.selected ? [one.name] : [])));
  const explained = failures.map((failure) => ({ ...failure, by: explanationsOf(failure, selected) }));
  const begun = explained.flatMap((one) => (one.begins ? [{ ...one, begins: one.begins }] : []));
  const counts = [...countsOf(explained.flatMap(({ by }) => by))].map(([what, number]) => `${what}: ${number}`);
  const summary = [`${begun.length} of ${failures.length} failed conversations`, ...counts].join('; ');
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
      ['explained by', ({ by }) => by.join(', ')],
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
        paragraph(`${capability}: ${votes} of ${passes} passes`),
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

function costBlocks({ spent, budget, analyst, name }: Analysis): Blocks {
  const languageModel = languageModelCost(spent, budget);
  return languageModel
    ? [heading('Cost'), ...languageModelBlocks(languageModel, `asked so far of ${analyst.model} for ${name}`)]
    : details(heading('Cost'), paragraph('Nothing was paid for under this name.', 'quiet'));
}
