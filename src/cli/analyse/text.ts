/** What was found, on the terminal. Invariant: texts of models and files can do nothing to it. */
import { selectionRuleSchema } from '../../domain/campaign';
import { languageModelCost } from '../../report/build/report';
import { wholeNumber } from '../../report/format';
import { spentText } from '../../report/words';
import { alignColumns, plain } from '../../terminal';
import { type AnalysedCapability, type Analysis, explanationsOf, FAULT, NOT_EXPLAINED } from './result';

/** Failures on the terminal; the page has all. */
const SHOWN = 20;

const meanStd = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;

/** A capability as a row, here and on the page. */
export const capabilityHead = ['capability', 'selected', 'votes', 'Cov', 'Delta', 'agreement', 'failures'];
export const capabilityCells = (capability: AnalysedCapability): string[] => [
  capability.name,
  capability.selected ? 'yes' : 'no',
  `${capability.votes}/${capability.passes}`,
  meanStd(capability.coverage),
  meanStd(capability.delta),
  capability.agreement === undefined ? '–' : capability.agreement.toFixed(2),
  String(capability.lacking.length),
];

/** `given`: the file that a campaign can go on from. */
export function resultText(o: { analysis: Analysis; html: string; given?: string | undefined }): string {
  const { analysis, html, given } = o;
  const { capabilities, failedPasses, passes, reason, conversations, faults } = analysis;
  const { languageModel } = languageModelCost(analysis.spent, analysis);
  const selected = capabilities.filter((one) => one.selected).length;
  const lines = [
    ...(capabilities.length === 0 ? [] : [...alignColumns([capabilityHead, ...capabilities.map(capabilityCells)]), '']),
    `${selected} of ${capabilities.length} capabilities selected, from ${passes} passes over ${wholeNumber(conversations.total)} conversations` +
      (reason === undefined ? '' : `: ${reason}`),
    ...failedPasses.map(({ pass, reason: why }) => `pass ${pass + 1} failed and is left out: ${why.split('\n')[0]}`),
    ...beginnings(analysis),
    ...(faults.length > 0 ? [`${faults.length} faults of the environment or of users: see the page`] : []),
    ...(languageModel ? [`asked so far for ${analysis.name}: ${spentText(languageModel)}`] : []),
    '',
    html,
    ...(given === undefined ? [] : ['', 'a campaign goes on from here with', ...goOn(analysis, given)]),
  ];
  return lines.map(plain).join('\n');
}

/** Where each failure begins. */
function beginnings(analysis: Analysis): string[] {
  const { failures, passes } = analysis;
  const explained = explanationsOf(analysis);
  const begun = failures.flatMap(({ conversation, messages, begins }) =>
    begins ? [{ conversation: plain(conversation), messages, begins }] : [],
  );
  if (begun.length === 0) return [];
  const counted = [NOT_EXPLAINED, FAULT.environment, FAULT.user].flatMap((what) => {
    const { length } = failures.filter(({ conversation }) => explained(conversation) === what);
    return length > 0 ? [`${length} ${what}`] : [];
  });
  return [
    '',
    `where each failure begins: ${[`${begun.length} of ${failures.length} failed conversations`, ...counted].join(', ')}`,
    ...alignColumns([
      ['conversation', 'message', 'votes', 'explained by'],
      ...begun
        .slice(0, SHOWN)
        .map(({ conversation, messages, begins }) => [
          conversation,
          `${begins.message} of ${messages}`,
          `${begins.votes}/${passes}`,
          explained(conversation) ?? '',
        ]),
    ]),
    ...(begun.length > SHOWN ? [`and ${begun.length - SHOWN} more: see the page`] : []),
    '',
  ];
}

/** Lines of a campaign file. */
function goOn({ passes, rule }: Analysis, given: string): string[] {
  const usual = selectionRuleSchema.parse({});
  return [
    `  analyst: { kind: given, capabilities: ${JSON.stringify(given)} }`,
    ...(passes === usual.passes && rule.votes === usual.votes
      ? []
      : [`  selection: { passes: ${passes}, votes: ${rule.votes} }`]),
  ];
}
