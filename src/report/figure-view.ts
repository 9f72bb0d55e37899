/** How a figure is shown: its value, interval and n, the short hash of what it came from, and the command that leads back to rollouts. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Figure } from '../domain/figure';
import { lineageCommand, shortPercent, shortSha, spreadText, valueText } from './format';
import { markup, type Markup } from './markup';
import { TEST, testText } from './recommendation';

/** Hashes as a label: the first in short, and how many more. */
const shas = (from: readonly ArtifactRef[]): string | undefined => {
  const [first, ...more] = from;
  if (first === undefined) return undefined;
  return shortSha(first.sha256) + (more.length > 0 ? ` +${more.length}` : '');
};

/** Everything about a figure in lines of text: the tooltip of its mark in a plot. */
export const figureTitle = ({
  figure,
  label,
  campaign,
}: {
  figure: Figure;
  label: string;
  campaign: string;
}): string => {
  const spread = spreadText(figure);
  const level =
    figure.interval === undefined ? '' : ` (${shortPercent(figure.interval.level)}, ${figure.interval.method})`;
  return [
    `${label}: ${valueText(figure)}`,
    ...(spread === undefined ? [] : [spread + level]),
    `n ${figure.n}`,
    ...[testText(figure) ?? []].flat(),
    ...(figure.from.length > 0 ? [`artifact ${shas(figure.from)}`] : []),
    lineageCommand({ start: figure.id, campaign }),
  ].join('\n');
};

/** A figure in a table cell or a line: opens to its artifacts and its lineage command. */
export const figureView = ({ figure, campaign }: { figure: Figure | undefined; campaign: string }): Markup => {
  if (figure === undefined) return markup`<span class="quiet">–</span>`;
  const small = [spreadText(figure), `n ${figure.n}`].filter((t) => t !== undefined).join(' · ');
  const command = lineageCommand({ start: figure.id, campaign });
  return markup`<details class="figure"><summary title="${command}"><b>${valueText(figure)}</b><span class="sha">${shas(figure.from)}</span>
<div class="quiet">${small}</div></summary><div class="source">${
    figure.interval !== undefined &&
    markup`<p>${shortPercent(figure.interval.level)} interval, ${figure.interval.method}</p>`
  }${figure.test && markup`<p>${testText(figure)} (${TEST})</p>`}<p><code>${command}</code></p>${figure.from.map(
    (ref) => markup`<p>artifact <code title="${ref.sha256}">${shortSha(ref.sha256)}</code> ${ref.mediaType}</p>`,
  )}</div></details>`;
};

/** A label for artifacts that stand behind a whole plot. */
export const sourceView = ({ from, campaign }: { from: readonly ArtifactRef[]; campaign: string }): Markup =>
  markup`<span class="sources">${from.map(
    (ref) => markup`<code title="${lineageCommand({ start: ref.sha256, campaign })}">${shortSha(ref.sha256)}</code> `,
  )}</span>`;
