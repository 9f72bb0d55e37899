/** What an analysis will take, as it is said before anything is asked. Invariant: said to be about so much. */
import type { Analyst } from '../../analyst/analyst';
import type { SelectionRule } from '../../domain/campaign';
import { costOf } from '../../domain/endpoints';
import { wholeNumber } from '../../report/format';
import { dollarsText } from '../../report/words';
import type { Conversations } from './conversations';
import type { AnalystSpec } from './spec';
import type { Finished } from './steps';

/** How much, what it depends on, and what leaves the machine. */
export function estimateLines(o: {
  analyst: Analyst;
  conversations: Conversations;
  rule: SelectionRule;
  spec: AnalystSpec;
  finished: Finished;
}): string[] {
  const { spec, finished } = o;
  const { requests, promptTokens, completionTokens } = remaining(o);
  const { dollars } = costOf({ promptTokens, completionTokens, cachedTokens: 0 }, spec.price);
  const about = [
    `${wholeNumber(requests)} requests to ${spec.model}`,
    `${rounded(promptTokens)} tokens in`,
    `${rounded(completionTokens)} out`,
    ...(dollars === undefined ? [] : [dollarsText(dollars)]),
  ];
  const done = [
    ...(finished.candidates === undefined ? [] : [`discovery (${finished.candidates.length} candidates)`]),
    ...(finished.passes === 0 ? [] : [`${finished.passes} passes`]),
  ];
  const sent =
    `  Sent to ${spec.url}: policy, tools and conversations, of each message its first ${wholeNumber(spec.messageChars)} ` +
    `characters and of a call's arguments ${wholeNumber(spec.argumentChars)}.`;
  return [
    `estimate: about ${about.join(', ')}`,
    '  More if the model reasons at length or answers have to be repaired; less where the endpoint caches prompts.' +
      (spec.price ? '' : ' Dollars with --price-input and --price-output.'),
    ...(requests > 0 ? [sent] : []),
    ...(done.length > 0 ? [`  Finished already and not asked for again: ${done.join(', ')}.`] : []),
  ];
}

function remaining(o: Parameters<typeof estimateLines>[0]) {
  const { analyst, rule, finished } = o;
  const { rollouts, description } = o.conversations;
  const { candidates } = finished;
  const nothing = { requests: 0, promptTokens: 0, completionTokens: 0 };
  const planned = analyst.estimate?.({ rollouts, description, rule, candidates });
  const discovery = (candidates === undefined && planned?.discovery) || nothing;
  const pass = planned?.pass ?? nothing;
  const passes = candidates?.length === 0 ? 0 : rule.passes - finished.passes;
  const sum = (field: keyof typeof nothing) => discovery[field] + passes * pass[field];
  return {
    requests: sum('requests'),
    promptTokens: sum('promptTokens'),
    completionTokens: sum('completionTokens'),
  };
}

/** To two digits: more would pretend. */
const rounded = (count: number): string => wholeNumber(Number(count.toPrecision(2)));
