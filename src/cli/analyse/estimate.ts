/**
 * What an analysis will take, before anything is asked. Invariant: said to be about so much: it counts the requests as the analyst by language
 * model makes them (chunks of whole trajectories), and guesses how much a reply says.
 */
import { z } from 'zod';
import type { SelectionRule } from '../../domain/campaign';
import { compactOne } from '../../domain/transcript';
import type { LanguageModelSpec } from '../../domain/endpoints';
import { isSuccess } from '../../domain/rollout';
import { costOf, tokensOf } from '../../language-model/costs';
import { openPrompts } from '../../language-model/prompts';
import { wholeNumber } from '../../report/format';
import type { Loaded } from './conversations';
import { dollarText, type Cost } from './cost';
import type { Kept } from './kept';

/** Of a reply, in tokens: thinking before the answer, what is proposed, where one failure begins, one label with its reason. */
const THINKING = 1500;
const PROPOSALS = 2500;
const FAILURE = 50;
const LABEL = 40;
/** Until discovery has said how many. */
const CANDIDATES = 6;
const DEFINITION = 100;

/** The analyst's options that cut conversations, and share them out to requests. */
export const cutting = z.object({
  chunkTokens: z.number(),
  labelsPerChunk: z.number(),
  messageChars: z.number(),
  argumentChars: z.number(),
});

export interface EstimateInput {
  loaded: Pick<Loaded, 'rollouts' | 'description'>;
  spec: LanguageModelSpec;
  rule: Pick<SelectionRule, 'passes' | 'maxCandidates'>;
  kept: Kept;
}

export function estimate({ loaded, spec, rule, kept }: EstimateInput): Cost {
  const { rollouts, description } = loaded;
  const { chunkTokens, labelsPerChunk, messageChars, argumentChars } = cutting.parse(spec);
  const lengths = { message: messageChars, arguments: argumentChars };
  const { contextTokens, maxTokens, price } = spec;
  const trajectories = rollouts.reduce(
    (sum, rollout) => sum + tokensOf(compactOne({ rollout, id: 'r100', lengths }).length),
    0,
  );
  const candidates = kept.candidates ?? Math.min(CANDIDATES, rule.maxCandidates);

  const fixed = fixedTokens({ description, spec, rule });
  const chunksBeside = (beside: number): number => {
    const room = Math.max(1000, 0.9 * (contextTokens - maxTokens) - beside);
    return Math.max(1, Math.ceil(trajectories / Math.min(chunkTokens, room)));
  };

  const perDiscovery = fixed.discovery;
  const chunks = kept.candidates === undefined ? chunksBeside(perDiscovery) : 0;
  const merges = chunks > 1 ? 1 : 0;

  const passes = candidates === 0 ? 0 : rule.passes - kept.passes;
  const perLabels = fixed.labels + candidates * DEFINITION;
  const cut = chunksBeside(perLabels);
  const requests = cut * Math.ceil(rollouts.length / cut / labelsPerChunk);
  const failed = rollouts.filter((rollout) => !isSuccess(rollout)).length;

  const usage = {
    promptTokens:
      (chunks > 0 ? trajectories + chunks * perDiscovery : 0) +
      merges * chunks * PROPOSALS +
      passes * (trajectories + requests * perLabels),
    cachedTokens: 0,
    completionTokens:
      (chunks + merges) * (THINKING + PROPOSALS) +
      passes * (requests * THINKING + failed * FAILURE + rollouts.length * candidates * LABEL),
  };
  return { requests: chunks + merges + passes * requests, ...usage, ...costOf(usage, price) };
}

/** Of a request besides trajectories and capabilities. */
export function fixedTokens(o: {
  description: EstimateInput['loaded']['description'];
  spec: LanguageModelSpec;
  rule: Pick<SelectionRule, 'maxCandidates'>;
}): { discovery: number; labels: number } {
  const { description, spec, rule } = o;
  const prompts = openPrompts({ folder: spec.prompts });
  const target = tokensOf(description.policy.length + JSON.stringify(description.tools).length);
  const common = { policy: '', tools: '', trajectories: '' };
  const fixed = (name: string, values: Record<string, string>): number =>
    target + prompts.render(name, values).reduce((sum, { content }) => sum + tokensOf(content.length), 0);
  return {
    discovery: fixed('discover', { ...common, failed: '', passed: '', maxCandidates: String(rule.maxCandidates) }),
    labels: fixed('label', { ...common, capabilities: '', ids: '' }),
  };
}

/** How much, what it depends on, and what leaves the machine. */
export function estimateLines({ cost, spec, kept }: { cost: Cost; spec: LanguageModelSpec; kept: Kept }): string[] {
  const dollars = cost.dollars === undefined ? [] : [dollarText(cost.dollars)];
  const about = [
    `${wholeNumber(cost.requests)} requests to ${spec.model}`,
    `${rounded(cost.promptTokens)} tokens in`,
    `${rounded(cost.completionTokens)} out`,
    ...dollars,
  ];
  const done = [
    ...(kept.candidates === undefined ? [] : [`discovery (${kept.candidates} candidates)`]),
    ...(kept.passes === 0 ? [] : [`${kept.passes} passes`]),
  ];
  const { messageChars, argumentChars } = cutting.parse(spec);
  const sent =
    `  Sent to ${spec.url}: policy, tools and conversations, of each message its first ${wholeNumber(messageChars)} ` +
    `characters and of a call's arguments ${wholeNumber(argumentChars)}.`;
  return [
    `estimate: about ${about.join(', ')}`,
    '  More if the model reasons at length or answers have to be repaired; less where the endpoint caches prompts.' +
      (spec.price ? '' : ' Dollars with --price-input and --price-output.'),
    ...(cost.requests > 0 ? [sent] : []),
    ...(done.length > 0 ? [`  Finished already and not asked for again: ${done.join(', ')}.`] : []),
  ];
}

/** To two digits: more would pretend. */
const rounded = (count: number): string => wholeNumber(Number(count.toPrecision(2)));
