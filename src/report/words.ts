/** What is said of arms, groups, selection, adapters and costs in the same words on the page, the terminal and in the verdict. */
import type { Arm, Report, ReportDraft } from './model';
import type { ReportedCapability, ReportedSelection } from './capability-model';
import { causesText } from '../domain/rollout';
import { partNames } from '../domain/capability';
import { MISSING, percent, valueText, visible, wholeNumber } from './format';
import type { Figure } from '../domain/figure';
import type { Cost as Sum } from '../domain/endpoints';

/** Of an arm of which another iteration than the last is evaluated, or that trained beyond the budget; undefined for the others. */
export const evaluatedAt = ({ step, evaluatedRollouts, trainedTo }: Arm): string | undefined => {
  const parts = [
    ...(evaluatedRollouts ? [`evaluated at step ${step}, ${valueText(evaluatedRollouts)} rollouts`] : []),
    ...(trainedTo ? [`trained on to ${valueText(trainedTo)}`] : []),
  ];
  return parts.length > 0 ? parts.join('; ') : undefined;
};

/** `3,072 (trained on to 4,608)`. */
export const trainingText = ({ trainingRollouts, trainedTo }: Arm): string =>
  valueText(trainingRollouts) + (trainedTo === undefined ? '' : ` (trained on to ${valueText(trainedTo)})`);

/** Empty where none failed. */
export const failedPassesText = ({ passes, failedPasses }: ReportedSelection): string[] => {
  const { length } = failedPasses;
  if (length === 0) return [];
  const reasons = [...new Set(failedPasses.map(({ reason }) => reason))].join('; ');
  return [`${length} of ${passes} labeling passes failed and ${length === 1 ? 'is' : 'are'} left out: ${reasons}.`];
};

export const AGREEMENT =
  'Agreement of the passes on the labels: Krippendorff’s alpha over the trajectories, 1 where all passes label alike, 0 as by chance.';

/** `12 of 214 failed trajectories are put down to the environment, 3 to the simulated user`; undefined where none is. */
export const faultsText = ({ faults }: ReportedSelection): string | undefined => {
  const { environment, user } = faults?.trajectories ?? {};
  if (!environment || !user || !(environment.value || user.value)) return undefined;
  const [broken, misled] = [valueText(environment), valueText(user)];
  return `${broken} of ${environment.n} failed trajectories are put down to the environment, ${misled} to the simulated user`;
};

/** Votes out of all passes; what the analyst selects outright has none, nor has a composite. */
export const votesText = (
  { votes, passes, parts }: Pick<ReportedCapability, 'votes' | 'passes' | 'parts'>,
  of: string,
): string => (parts ? 'mixed' : passes === 0 ? 'given' : `${votes}${of}${passes}`);

/** Undefined of what is no composite. */
export const compositeText = ({ parts }: Pick<ReportedCapability, 'parts'>): string | undefined =>
  parts &&
  `of ${partNames({ parts }).join(', ')}: on their environments in turns, trained from the sum of their adapters`;

/** `12 rollouts broke and are in no figure of success: 12 BadEnvironment, as at task n-7: ...`; undefined where none did. */
export const brokenText = ({ rollouts }: Pick<ReportDraft, 'rollouts'>): string | undefined => {
  const broken = rollouts?.broken.value ?? 0;
  if (!rollouts || broken === 0) return undefined;
  const causes = rollouts.brokenByError.map(({ errorType: type, rollouts: { value }, ...at }) => {
    return { type, ...at, count: value ?? 0 };
  });
  const why = causes.length > 0 ? `: ${causesText(causes, broken)}` : '';
  return `${wholeNumber(broken)} ${broken === 1 ? 'rollout broke and is' : 'rollouts broke and are'} in no figure of success${why}`;
};

/** What is said of an adapter in a word: `helps`, `no gain`, `helps, gamed`. */
export const adapterVerdict = ({ statement }: Pick<ReportedCapability, 'statement'>): string =>
  statement ? `${statement.verdict.replace('_', ' ')}${statement.gamed ? ', gamed' : ''}` : MISSING;

type Groups = NonNullable<Report['groups']>;
type PublishedCell = NonNullable<Report['published']>['arms'][number]['cells'][number];
export type Measure = 'successRate' | 'meanReward';

/** More groups than this are not seen at once: then `overall` stands first instead of last. */
const SEEN_AT_ONCE = 4;

interface GroupsTable {
  /** Of the columns after the arm. */
  head: string[];
  ours: { arm: string; cells: (Figure | undefined)[] }[];
  published: { arm: string; cells: (string | undefined)[] }[];
}

export function groupsTable({ groups = [], published }: Report, measure: Measure): GroupsTable {
  const columns = inOrder(groups);
  const arms = columns[0]?.arms.map(({ arm }) => arm) ?? [];
  const theirs = (published?.arms ?? []).map(({ arm, cells }) => ({
    arm,
    cells: columns.map(({ group }) => {
      const cell = cells.find((one) => one.group === group);
      return cell && publishedText(cell, measure);
    }),
  }));
  return {
    head: columns.map(({ group, tasks }) => `${group} (${tasks})`),
    ours: arms.map((arm) => ({
      arm,
      cells: columns.map((group) => group.arms.find((one) => one.arm === arm)?.[measure]),
    })),
    published: theirs.filter(({ cells }) => cells.some((cell) => cell !== undefined)),
  };
}

const inOrder = (groups: Groups): Groups =>
  groups.length > SEEN_AT_ONCE ? [...groups.slice(-1), ...groups.slice(0, -1)] : groups;

/** As its source gives it; undefined where the source has none. */
function publishedText(
  { tasks, solved, successRate, meanReward }: PublishedCell,
  measure: Measure,
): string | undefined {
  if (measure === 'meanReward') return meanReward === undefined ? undefined : `${meanReward.toFixed(3)} of ${tasks}`;
  return `${solved ?? percent(successRate)} of ${tasks}`;
}

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
