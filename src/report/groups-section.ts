/** The arms by group of tasks on the page: one table of successes, one of mean rewards. */
import type { Figure } from '../domain/figure';
import type { Report } from './model';
import { figureView } from './figure-view';
import { MISSING } from './format';
import { groupsTable, type Measure } from './groups-table';
import { markup, type Markup } from './markup';
import { table } from './sections';

export const groupsSection = (report: Report): Markup | undefined => {
  const { groups, published, campaign } = report;
  if (groups === undefined) return undefined;
  const cellOf = (figure: Figure | undefined, measure: Measure): Markup => {
    const view = figureView({ figure, campaign: campaign.name });
    return figure && measure === 'successRate' ? markup`${view}${solvedCount(figure)}` : view;
  };
  const tableOf = (measure: Measure): Markup => {
    const { head, ours, published: theirs } = groupsTable(report, measure);
    return table({
      head: ['arm', ...head],
      rows: [
        ...ours.map(({ arm, cells }) => [arm, ...cells.map((figure) => cellOf(figure, measure))]),
        ...theirs.map(({ arm, cells }) =>
          [`${arm} (published, other run)`, ...cells.map((text) => text ?? MISSING)].map(
            (text) => markup`<span class="quiet">${text}</span>`,
          ),
        ),
      ],
    });
  };
  const { name, version } = campaign.target;
  return markup`<h2>Test tasks by group</h2>
<p class="small">Scored by ${name} ${version}.${
    published !== undefined &&
    ` Rows marked as published are from ${published.source} (${published.setUp}), over as many tasks as they say; nothing of them was measured here.`
  }</p>
<h3>Solved: tasks with reward 1</h3>${tableOf('successRate')}
<h3>Mean reward</h3>${tableOf('meanReward')}`;
};

/** `22 of 50`; with several trials the mean over them, `22.3 of 50`. */
const solvedCount = ({ value, n }: Figure): Markup | undefined =>
  value === null
    ? undefined
    : markup`<div class="quiet small">${`${Number((value * n).toFixed(1))} of ${String(n)}`}</div>`;
