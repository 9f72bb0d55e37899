/** The arms by group of tasks on a terminal: successes, then mean rewards, our arms first. Invariant: at most four groups, `overall` among them. */
import type { Report } from '../domain/report';
import { MISSING, percent, valueText } from './format';

const SHOWN = 4;

/** Rows of cells for one measure; the first row is the head. */
export const groupRows = ({ groups = [], published }: Report, measure: 'successRate' | 'meanReward'): string[][] => {
  const shown = [...groups.slice(0, -1).slice(0, SHOWN - 1), ...groups.slice(-1)];
  const arms = groups[0]?.arms.map(({ arm }) => arm) ?? [];
  const theirs = (published?.arms ?? []).flatMap(({ arm, cells }) => {
    const texts = shown.map(({ group }) => {
      const cell = cells.find((one) => one.group === group);
      const value = measure === 'successRate' ? cell && percent(cell.successRate) : cell?.meanReward?.toFixed(2);
      return cell && value !== undefined ? `${value} (${cell.tasks})` : MISSING;
    });
    return texts.some((text) => text !== MISSING) ? [[`${arm}, published`, ...texts]] : [];
  });
  return [
    [measure === 'successRate' ? 'solved' : 'mean reward', ...shown.map(({ group, tasks }) => `${group} (${tasks})`)],
    ...arms.map((arm) => [
      arm,
      ...shown.map((group) => {
        const figure = group.arms.find((one) => one.arm === arm)?.[measure];
        return figure === undefined ? MISSING : valueText(figure);
      }),
    ]),
    ...theirs,
  ];
};

/** What has to be said under the tables. */
export const groupNotes = ({ groups = [], published, campaign }: Report): string[] => [
  `scored by ${campaign.target.name} ${campaign.target.version}`,
  ...(groups.length > SHOWN ? [`${groups.length - SHOWN} more groups are in the page`] : []),
  ...(published ? [`published: ${published.source}, other run, over the tasks in brackets`] : []),
];
