/** The text of an analysis, in sections, the answer first. Terminal and page show the same statements. */
import { countsOf, type Estimate, wilsonInterval } from '../../domain/statistics';
import { cut } from '../../domain/transcript';
import { failedPassesText, percent, shortPercent, valueText, wholeNumber } from '../../report/format';
import type { Difference, Parting } from './counts';
import type { AnalysedFailure, Analysis, Cause, Reading, Section, Statement } from './result';

type Found = Omit<Analysis, 'sections'>;

export const FAULTS = { environment: 'fault of the environment', user: 'fault of the user' };
export const NOT_EXPLAINED = 'not explained by a capability';

/** Fewer failed conversations than these make a finding tentative. */
const FEW = 30;

/** Sections without statements are left out. */
export function sectionsOf(found: Found): Section[] {
  const { reading, differences, partings, conversations, shown, notes, files } = found;
  const { failed, passed, total } = conversations;
  const lines = `${plural(total, 'conversation')} of ${plural(files.length, 'file')} ${total === 1 ? 'was' : 'were'} read`;
  const unseen = total - shown.length;
  const sections: Section[] = [
    { title: 'In short', statements: reading ? answer(found, reading) : countedAnswer(found) },
    ...(reading?.causes.map((cause) => ({
      title: `"${words(cause.capability)}"`,
      statements: causeText(cause, found),
    })) ?? []),
    { title: 'Where each failure begins', statements: reading?.failures.flatMap(beginningText) ?? [] },
    {
      title: passed > 0 ? 'How failed and passed conversations differ' : 'What the failed conversations have in common',
      statements: differences.map((one) => ({ text: differenceText(one, found) })),
    },
    { title: 'Attempts at one task', statements: partings.map(partingText) },
    { title: 'What is doubtful', statements: doubts(found).map((text) => ({ text })) },
    {
      title: 'The files',
      statements: [
        `${lines}: ${failed} failed, ${passed} passed, about ${wholeNumber(conversations.tokens)} tokens`,
        ...notes,
      ]
        .concat(unseen > 0 ? [`the page shows ${shown.length} of them, failed ones first`] : [])
        .map((text) => ({ text })),
    },
  ];
  return sections.filter(({ statements }) => statements.length > 0);
}

const plural = (n: number, what: string): string => `${wholeNumber(n)} ${what}${n === 1 ? '' : 's'}`;
const words = (capability: string): string => capability.replaceAll('_', ' ');
const ends = ({ low, high }: Estimate): string => `95% interval ${shortPercent(low)} to ${shortPercent(high)}`;

/** The causes, the most frequent first, and the failures that they leave. */
function answer({ conversations: { failed, passed } }: Found, { causes, failures, selection }: Reading): Statement[] {
  const left = [...countsOf(failures.flatMap(({ explainedBy }) => explainedBy))].flatMap(([what, n]) => {
    const own = failures.filter(({ explainedBy }) => explainedBy.includes(what));
    const names = own.map(({ conversation }) => conversation);
    const is = `${n} ${n === 1 ? 'is' : 'are'}`;
    if (what === NOT_EXPLAINED) return [{ text: `${is} not explained`, conversations: names }];
    return Object.values(FAULTS).includes(what) ? [{ text: `${is} a ${what}`, conversations: names }] : [];
  });
  const none = `No capability ${passed > 0 ? 'was selected' : 'is selected'}: ${selection.reason ?? 'there is no candidate'}`;
  const explained = new Set(causes.flatMap(({ explains }) => explains)).size;
  return [
    ...causes.map(({ capability, definition, explains }, n) => ({
      text:
        `${n === 0 ? 'Your agent lacks' : 'It also lacks'} "${words(capability)}": ${firstSentence(definition)} ` +
        `This explains ${explains.length} of ${plural(failed, 'failure')}`,
      conversations: explains,
    })),
    ...(causes.length > 1 ? [{ text: `Together they explain ${explained} of ${plural(failed, 'failure')}` }] : []),
    ...left,
    ...(selection.candidates.some(({ selected }) => selected) ? [] : [{ text: none }]),
  ];
}

const firstSentence = (text: string): string => /^.+?[.!?](?=\s|$)/s.exec(text)?.[0] ?? `${text}.`;

function countedAnswer({ conversations: { failed, passed, total, tokens }, differences }: Found): Statement[] {
  const success = wilsonInterval({ successes: passed, trials: total });
  const [first] = differences;
  const isClear = passed > 0 && first && (first.share.low > 0 || first.share.high < 0);
  return [
    {
      text: `${wholeNumber(failed)} of ${plural(total, 'conversation')} failed: success ${percent(success.value)} (${ends(success)})`,
    },
    ...(isClear
      ? [{ text: `The clearest difference: ${differenceText(first, { conversations: { failed, passed } })}` }]
      : []),
    ...(passed > 0 && first && !isClear
      ? [{ text: 'Tools, errors, lengths and ends do not differ clearly between failed and passed conversations' }]
      : []),
    ...(passed > 0 && !first
      ? [{ text: 'Tools, errors, lengths and ends are the same in all conversations, or in all but one' }]
      : []),
    {
      text: `The causes were not read. A language model reads them with --url URL --model NAME, about ${wholeNumber(Number(tokens.toPrecision(2)))} tokens each time`,
    },
  ];
}

function differenceText(
  { what, failed, passed, share }: Difference,
  { conversations: of }: { conversations: { failed: number; passed: number } },
): string {
  if (of.passed === 0) return `${what}: ${failed} of ${of.failed} (${percent(share.value)}, ${ends(share)})`;
  const points = valueText({ value: share.value, unit: 'difference' });
  return `${what}: in ${failed} of ${of.failed} failed and ${passed} of ${of.passed} passed (${points}, ${ends(share)})`;
}

/** Reasons that are quoted of one cause. */
const QUOTED = 3;
const LONGEST = 160;

function causeText(cause: Cause, { shown, reading }: Found): Statement[] {
  const { capability, definition, explains, worth } = cause;
  const quotes = (reading?.failures ?? [])
    .filter(({ conversation }) => explains.includes(conversation))
    .flatMap(({ conversation, lacking }): Statement[] => {
      const own = lacking.find((one) => one.capability === capability);
      if (!own) return [];
      const messages = shown.find((one) => one.conversation === conversation)?.messages ?? [];
      const said = messages.find(({ message }) => message === own.message)?.text;
      const at = own.message === undefined ? '' : `message ${own.message}: `;
      const quote = said === undefined ? '' : `: “${cut(said.replace(/\s+/g, ' '), LONGEST)}”`;
      return [{ text: `${at}${own.says.replace(/[\s.]+$/, '')}${quote}`, conversations: [conversation] }];
    });
  return [
    { text: definition },
    {
      text:
        `Worth at most ${valueText({ value: worth.value, unit: 'difference' })} of success (${ends(worth)}): ` +
        'as if each failure that it explains had passed',
    },
    ...remedies(cause).map((text) => ({ text })),
    ...quotes.slice(0, QUOTED),
  ];
}

/** Shares of the conversations that call for a capability, below which an agent shows it seldom, and above which often. */
const SELDOM = 0.1;
const OFTEN = 0.5;

/** The repairs to try, the cheapest first, each with the counts that speak for it. */
function remedies({ explains, arises, shown, atErrors }: Cause): string[] {
  const share = arises === 0 ? 0 : shown / arises;
  const does = `the agent does it in ${shown} of ${plural(arises, 'conversation')} that call for it`;
  const steps = [
    atErrors > 0 && atErrors >= explains.length / 2
      ? `a tool: ${atErrors} of ${explains.length} failures begin at an error of a tool; let its error and its description say how to call it right`
      : undefined,
    share < OFTEN
      ? `the prompt: ${does}; say in the system message what to do, in the words of the definition`
      : `training: ${does}, so it is able to, and rewards can make it reliable; an instruction alone seldom does`,
    share < SELDOM
      ? `data: if the prompt does not help, show it examples; it does it too seldom for rewards to reinforce`
      : share < OFTEN
        ? 'training: where the prompt does not suffice; it does it often enough for rewards to reinforce'
        : undefined,
  ];
  return steps.filter((step) => step !== undefined).map((step, n) => `Try ${n === 0 ? 'first' : 'then'} ${step}`);
}

const beginningText = ({ conversation, begins, messages }: AnalysedFailure): Statement[] =>
  begins
    ? [{ text: `message ${begins.message} (of 0 to ${messages - 1}): ${begins.reason}`, conversations: [conversation] }]
    : [];

function partingText({ task, failed, passed, same, then }: Parting): Statement {
  const does = (one: Parting['then']['failed']) =>
    one ? `calls ${cut(one.call, LONGEST)} (message ${one.message})` : 'makes no call';
  const part = then.failed ?? then.passed;
  const differ = part
    ? `the failed one ${does(then.failed)}, the passed one ${does(then.passed)}`
    : 'only words differ';
  return { text: `task ${task}: after ${plural(same, 'equal call')} ${differ}`, conversations: [failed, passed] };
}

function doubts({ conversations: { failed, passed, total }, differences, reading, shown }: Found): string[] {
  const tasks = new Set(shown.map(({ task }) => task)).size;
  const model = reading?.analyst.model;
  const passes = reading ? reading.selection.passes - reading.selection.failedPasses.length : 0;
  return [
    failed < FEW && `Only ${plural(failed, 'failed conversation')}: others may show other causes. Give ${FEW} or more.`,
    passed === 0 && 'No conversation passed: a cause may be just as frequent where the agent succeeds.',
    passes > 0 &&
      `All reasons are from ${model}, asked ${plural(passes, 'time')} about the same conversations: agreement says how alike it answers, not that it is right. Read some.`,
    reading && failedPassesText(reading.selection),
    reading &&
      'What to try follows from counts by rule of thumb; what it is worth assumes that nothing else goes wrong.',
    passed > 0 &&
      differences.length > 1 &&
      `${differences.length} properties were compared: their intervals are widened so that all hold together with 95%. A difference is no cause.`,
    passed > 0 &&
      total === shown.length &&
      tasks < total &&
      `${total} conversations are of ${plural(tasks, 'task')}: the intervals of the differences count each conversation by itself and are too narrow.`,
  ].filter((one) => typeof one === 'string');
}
