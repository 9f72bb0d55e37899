/** What language models cost as rows and as a sentence, for the page and the terminal. Invariant: what has no price is not counted as free. */
import type { Cost as Sum } from '../domain/endpoints';
import type { Report } from './model';
import { MISSING, percent, visible, wholeNumber } from './format';

type Cost = NonNullable<NonNullable<Report['cost']>['languageModel']>;

/** The steps of each role, with their sum where there are several. */
export function languageModelRows({ roles, steps, total }: Cost): { head: string[]; rows: string[][] } {
  const rows = [undefined, ...roles].flatMap((sum) => {
    const own = steps.filter(({ role }) => role === sum?.role);
    const ofSteps = own.map(({ role = '', step, ...spent }) => rowOf(role, step, spent));
    return sum && own.length > 1 ? [...ofSteps, rowOf(sum.role, 'all', sum)] : ofSteps;
  });
  const head = ['who', 'step', 'requests', 'prompt tokens', 'of them cached', 'completion tokens', 'dollars'];
  return { head, rows: [...rows, rowOf('all', '', total)] };
}

const rowOf = (who: string, step: string, spent: Sum): string[] => [
  who,
  visible(step),
  wholeNumber(spent.requests),
  wholeNumber(spent.promptTokens),
  wholeNumber(spent.cachedTokens),
  wholeNumber(spent.completionTokens),
  [dollarsText(spent.dollars), ...unpricedText(spent)].join(', '),
];

/** Cents; of less than one, the first digits that are not zero. */
export const dollarsText = (dollars: number | undefined): string => {
  if (dollars === undefined) return MISSING;
  return `$${dollars > 0 && dollars < 0.01 ? dollars.toPrecision(2) : dollars.toFixed(2)}`;
};

const unpricedText = ({ unpriced = 0, requests }: Sum): string[] =>
  unpriced === 0 ? [] : [`${wholeNumber(unpriced)} of ${wholeNumber(requests)} requests without a price`];

const allTokens = ({ promptTokens, completionTokens }: Sum): number => promptTokens + completionTokens;

/** `132 requests, 1,204,000 tokens of 5,000,000 (24.1%), $1.23 of $10.00 (12.3%): analyst $1.00, user $0.23`. */
export const spentText = ({ roles, total, budget }: Cost): string => {
  const used = (spent: number, limit: number): string => ` (${percent(spent / limit)})`;
  const tokens = allTokens(total);
  const ofTokens = budget.tokens === undefined ? '' : ` of ${wholeNumber(budget.tokens)}${used(tokens, budget.tokens)}`;
  const share = total.dollars === undefined || budget.dollars === undefined ? '' : used(total.dollars, budget.dollars);
  const ofDollars = budget.dollars === undefined ? '' : ` of ${dollarsText(budget.dollars)}${share}`;
  const ofRole = (sum: Sum): string =>
    sum.dollars === undefined ? `${wholeNumber(allTokens(sum))} tokens` : dollarsText(sum.dollars);
  const byRole = roles.map(({ role, ...sum }) => `${role} ${ofRole(sum)}`).join(', ');
  const all = [
    `${wholeNumber(total.requests)} requests`,
    `${wholeNumber(tokens)} tokens${ofTokens}`,
    ...(total.dollars === undefined && budget.dollars === undefined
      ? []
      : [`${dollarsText(total.dollars)}${ofDollars}`]),
    ...unpricedText(total),
  ].join(', ');
  return roles.length > 1 ? `${all}: ${byRole}` : all;
};
