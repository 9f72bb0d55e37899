/** The page of an analysis. */
import { type Block, type Blocks, details, fold, heading, list, note, paragraph, table } from '../../report/blocks';
import { languageModelCost } from '../../report/build/cost';
import { wholeNumber } from '../../report/format';
import { pageHtml } from '../../report/html';
import { languageModelBlocks } from '../../report/sections/run';
import { selectionBlocks } from '../../report/sections/selection';
import type { AnalysedFailure, Analysis } from './result';
import { explanations, FAULTS } from './text';

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

function failuresBlocks(analysis: Analysis): Blocks {
  const { passes, failures, begun, summary } = explanations(analysis);
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
