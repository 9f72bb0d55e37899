/** The arms by group of tasks: one table of successes, one of mean rewards, with published figures of the same target under ours. */
import type { Figure } from '../domain/figure';
import type { Report } from '../domain/report';
import { figureView } from './figure-view';
import { percent } from './format';
import { markup, type Markup } from './markup';
import { table } from './sections';

type Groups = NonNullable<Report['groups']>;
type Cell = NonNullable<Report['published']>['arms'][number]['cells'][number];
type Measure = 'successRate' | 'meanReward';

export const PUBLISHED = 'published, other run';

/** `22 of 50`; with several trials the mean over them, `22.3 of 50`. */
export const successCount = ({ successRate, tasks }: { successRate: number; tasks: number }): string =>
  `${Number((successRate * tasks).toFixed(1))} of ${tasks}`;

/** What the tables show of a published figure; undefined where the source has none. */
export const publishedText = (cell: Cell, measure: Measure): string | undefined => {
  if (measure === 'successRate') return `${percent(cell.successRate)} (${successCount(cell)})`;
  return cell.meanReward?.toFixed(3);
};

export const groupsSection = ({ groups, published, campaign }: Report): Markup | undefined => {
  if (groups === undefined) return undefined;
  const { name, version } = campaign.target;
  const measured = (figure: Figure | undefined, measure: Measure): Markup => {
    const view = figureView({ figure, campaign: campaign.name });
    if (measure === 'meanReward' || figure === undefined || figure.value === null) return view;
    const count = successCount({ successRate: figure.value, tasks: figure.n });
    return markup`${view}<div class="quiet small">${count}</div>`;
  };
  const rows = (measure: Measure): Markup => {
    const arms = groups[0]?.arms.map(({ arm }) => arm) ?? [];
    const ours = arms.map((arm) => [
      arm,
      ...groups.map((group) => measured(group.arms.find((one) => one.arm === arm)?.[measure], measure)),
    ]);
    const theirs = (published?.arms ?? []).flatMap(({ arm, cells }) => {
      const texts = groups
        .map(({ group }) => cells.find((cell) => cell.group === group))
        .map((cell) => cell && publishedText(cell, measure));
      const quiet = (text: string) => markup`<span class="quiet">${text}</span>`;
      return texts.some((text) => text !== undefined)
        ? [[quiet(`${arm} (${PUBLISHED})`), ...texts.map((text) => quiet(text ?? '–'))]]
        : [];
    });
    return table({ head: ['arm', ...groups.map((group) => heading(group))], rows: [...ours, ...theirs] });
  };
  return markup`<h2>Test tasks by group</h2>
<p class="small">Scored by ${name} ${version}.${
    published !== undefined &&
    ` Rows marked "${PUBLISHED}" are from ${published.source} (${published.setUp}), over as many tasks as they say; nothing of them was measured here.`
  }</p>
<h3>Solved: tasks with reward 1</h3>${rows('successRate')}
<h3>Mean reward</h3>${rows('meanReward')}`;
};

const heading = ({ group, tasks }: Groups[number]): string => `${group} (${tasks})`;
