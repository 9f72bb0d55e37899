/** Router: how often each option was chosen on the test split, with what success, and the mean of its probabilities where it gave any. */
import type { ReportedRouter, Role } from '../model';
import { figureTitle } from '../figure-view';
import { spreadText, valueText } from '../format';
import { markup, type Markup } from '../markup';
import { LABELS, linear, rowLabel, svg, text } from './scale';

const rowHeight = 26;
const left = LABELS;
const right = 470;

export const routerPlot = ({
  choices,
  roles,
  campaign,
}: {
  choices: NonNullable<ReportedRouter['choices']>;
  /** By arm; what was put together from several has none. */
  roles: ReadonlyMap<string, Role>;
  campaign: string;
}): Markup => {
  const x = linear({ domain: [0, Math.max(0.1, ...choices.map((c) => c.share.value ?? 0))], range: [left, right] });
  return svg(
    { width: 900, height: choices.length * rowHeight + 12, label: 'Share of conversations by chosen option' },
    choices.map(({ option, share, successRate, probability }, i) => {
      const y = i * rowHeight + 6;
      const end = x(share.value ?? 0);
      const given = probability && `mean probability ${valueText(probability)}`;
      const solved =
        successRate?.n && `${valueText(successRate)} (${spreadText(successRate)}) of ${successRate.n} solved`;
      const label = [valueText(share), spreadText(share), `n ${share.n}`, solved, given].filter(
        (t) => typeof t === 'string',
      );
      const title = [
        figureTitle({ figure: share, label: option, campaign }),
        ...(successRate ? [figureTitle({ figure: successRate, label: 'success of these', campaign })] : []),
        ...(probability ? [figureTitle({ figure: probability, label: 'mean probability', campaign })] : []),
      ].join('\n');
      return markup`<g><title>${title}</title>${rowLabel({ y: y + 13, name: option })}
<rect x="${left}" y="${y}" width="${end - left}" height="18" class="bar ${roles.get(option) ?? 'adapter'}"/>
${text({ x: end + 10, y: y + 13 }, label[0] ?? '')}${text({ x: end + 64, y: y + 13, class: 'quiet' }, label.slice(1).join(' · '))}</g>`;
    }),
  );
};
