/** Router: how often each option was chosen on the test split. */
import type { ReportedRouter } from '../../domain/report';
import { figureTitle } from '../figure-view';
import { spreadText, valueText } from '../format';
import { markup, type Markup } from '../markup';
import { LABELS, linear, rowLabel, svg, text } from './scale';

const rowHeight = 26;
const left = LABELS;
const right = 560;

export const routerPlot = ({
  choices,
  campaign,
}: {
  choices: NonNullable<ReportedRouter['choices']>;
  campaign: string;
}): Markup => {
  const x = linear({ domain: [0, Math.max(0.1, ...choices.map((c) => c.share.value ?? 0))], range: [left, right] });
  return svg(
    { width: 900, height: choices.length * rowHeight + 12, label: 'Share of conversations by chosen option' },
    choices.map(({ option, share }, i) => {
      const y = i * rowHeight + 6;
      const end = x(share.value ?? 0);
      const label = [valueText(share), spreadText(share), `n ${share.n}`].filter((t) => t !== undefined);
      return markup`<g><title>${figureTitle({ figure: share, label: option, campaign })}</title>${rowLabel({ y: y + 13, name: option })}
<rect x="${left}" y="${y}" width="${end - left}" height="18" class="bar ${option === 'base' ? 'base' : 'adapter'}"/>
${text({ x: end + 10, y: y + 13 }, label[0] ?? '')}${text({ x: end + 64, y: y + 13, class: 'quiet' }, label.slice(1).join(' · '))}</g>`;
    }),
  );
};
