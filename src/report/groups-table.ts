/** The arms by group of tasks as rows and columns, for the page and the terminal: ours first, published ones of the same groups under them. */
import type { Figure } from '../domain/figure';
import type { Report } from './model';
import { percent } from './format';

type Groups = NonNullable<Report['groups']>;
type PublishedCell = NonNullable<Report['published']>['arms'][number]['cells'][number];
export type Measure = 'successRate' | 'meanReward';

/** More groups than this are not seen at once: then `overall` stands first instead of last. */
const SEEN_AT_ONCE = 4;

export interface GroupsTable {
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
