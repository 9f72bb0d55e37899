/** What language models will be asked, as text of the plan; nothing where none is. */
import { wholeNumber } from '../../report/format';
import type { LanguageModelPlan } from './language-models';
import { aligned, between, rounded, short } from './layout';

export function languageModelLines({ questions, total, trajectory, budget }: LanguageModelPlan): string[] {
  if (questions.length === 0) return [];
  const money = (dollars: (typeof total)['dollars']) => (dollars ? between(dollars, rounded) : 'no price');
  const prompts = { low: 0, high: 0 };
  const replies = { low: 0, high: 0 };
  const rows = questions.map(({ field, step, requests, promptTokens, completionTokens, dollars }) => {
    for (const end of ['low', 'high'] as const) {
      prompts[end] += promptTokens[end];
      replies[end] += completionTokens[end];
    }
    const counts = [between(requests, wholeNumber), between(promptTokens, short), between(completionTokens, short)];
    return [`${field}: ${step}`, ...counts, money(dollars)];
  });
  const all = [between(total.requests, wholeNumber), between(prompts, short), between(replies, short)];
  return [
    '',
    ...aligned([
      ['language models', 'requests', 'prompt tokens', 'reply tokens', 'dollars'],
      ...rows,
      ['all', ...all, money(total.dollars)],
    ]),
    `a base rollout shown to them: ${between(trajectory, rounded)} tokens; ${trajectory.basis}${trajectory.basis === 'measured' ? ' in' : ','} ${trajectory.source}`,
    ...(budget === undefined ? [] : [budget]),
  ];
}
