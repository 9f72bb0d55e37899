/** The base model on the page: what it solves of the train tasks, by group, and conversations. */
import type { Report } from './model';
import { figureView } from './figure-view';
import { wholeNumber } from './format';
import { markup, type Markup } from './markup';
import { table } from './sections';
import { episodeView } from './versions-section';

export const baseSection = ({ base, campaign }: Report): Markup | undefined => {
  if (base === undefined) return undefined;
  const { successRate, meanReward, groups = [], conversations } = base;
  const view = (figure: typeof successRate | undefined): Markup => figureView({ figure, campaign: campaign.name });
  const all = ['train tasks', wholeNumber(successRate.n), view(successRate), view(meanReward)];
  const rows = groups.map(({ group, tasks, arms: [one] }) => [
    group,
    wholeNumber(tasks),
    view(one?.successRate),
    view(one?.meanReward),
  ]);
  return markup`<h2>Base model</h2>
${table({ head: ['base rollouts', 'tasks', 'solved', 'mean reward'], rows: [all, ...rows] })}
${conversations.map(episodeView)}`;
};
