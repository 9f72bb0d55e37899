/** What the language models of a campaign cost. Invariant: dollars are of what has a price; where nothing has, there are none. */
import type { Spent } from '../../domain/endpoints';
import type { ReportDraft } from '../../domain/report';
import type { Campaign } from '../../domain/campaign';

type LanguageModelCost = NonNullable<NonNullable<ReportDraft['cost']>['languageModel']>;

/** Nothing where nothing was asked. */
export function languageModelCost(
  steps: readonly Spent[],
  { budget }: Pick<Campaign, 'budget'>,
): { languageModel?: LanguageModelCost } {
  if (steps.length === 0) return {};
  const sum = (field: 'requests' | 'promptTokens' | 'cachedTokens' | 'completionTokens') =>
    steps.reduce((total, step) => total + step[field], 0);
  const priced = steps.flatMap(({ dollars }) => dollars ?? []);
  const unpriced = steps.reduce(
    (total, { dollars, requests, unpriced = 0 }) => total + (dollars === undefined ? requests : unpriced),
    0,
  );
  const total: Spent = {
    step: 'all',
    requests: sum('requests'),
    promptTokens: sum('promptTokens'),
    cachedTokens: sum('cachedTokens'),
    completionTokens: sum('completionTokens'),
    ...(priced.length > 0 && {
      dollars: priced.reduce((total, dollars) => total + dollars, 0),
      ...(unpriced > 0 && { unpriced }),
    }),
  };
  return { languageModel: { steps: [...steps], total, budget } };
}
