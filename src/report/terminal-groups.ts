/** The arms by group of tasks on a terminal. Invariant: at most four groups, so that the lines stay short. */
import type { Report } from './model';
import { MISSING, valueText } from './format';
import { groupsTable, type Measure } from './groups-table';

const MOST = 4;
/** Columns of one group, and of the arm's name. */
const [GROUP, NAME] = [17, 14];
const shownIn = (width: number): number => Math.max(1, Math.min(MOST, Math.floor((width - NAME) / GROUP)));

/** Rows of cells for one measure; the first row is the head. */
export function groupRows(report: Report, measure: Measure, width: number): string[][] {
  const { head, ours, published } = groupsTable(report, measure);
  const rows = [
    [measure === 'successRate' ? 'solved' : 'mean reward', ...head],
    ...ours.map(({ arm, cells }) => [arm, ...cells.map((figure) => (figure ? valueText(figure) : MISSING))]),
    ...published.map(({ arm, cells }) => [`${arm}, published`, ...cells.map((text) => text ?? MISSING)]),
  ];
  return rows.map((cells) => cells.slice(0, 1 + shownIn(width)));
}

/** What has to be said under the tables. */
export const groupNotes = ({ groups = [], published, campaign }: Report, width: number): string[] => [
  `scored by ${campaign.target.name} ${campaign.target.version}`,
  ...(campaign.target.notes ?? []).map((note) => `of the target: ${note}`),
  ...(groups.length > shownIn(width)
    ? [`groups left out here, all of them in the page: ${groups.length - shownIn(width)}`]
    : []),
  ...(published ? [`published: ${published.source}, other run, over as many tasks as it says`] : []),
];
