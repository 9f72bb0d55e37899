/**
 * The parts that pages are made of: escaped markup, tables, figures that open to their origin, texts, conversations. Invariant: whatever is put into a
 * `markup` template is escaped, unless it is itself markup; so no name, reason or definition (some are written by models) can add elements or
 * attributes, or be read as something else than what it is.
 */
import { style } from './style';
import { lineageCommand, shortPercent, shortSha, spreadText, valueText, visible, wholeNumber } from '../format';
import type { ArtifactRef } from '../../domain/artifacts';
import type { Figure } from '../../domain/figure';
import { TEST, testText } from '../recommendation';
import type { ReportedCitation, ReportedMessage } from '../capability-model';

export class Markup {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
}

type Part = string | number | Markup | undefined | false | readonly Part[];

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => visible(text).replace(/[&<>"']/g, (character) => entities[character] ?? '');

const render = (part: Part): string => {
  if (part === undefined || part === false) return '';
  if (part instanceof Markup) return part.text;
  if (typeof part === 'number') {
    if (!Number.isFinite(part))
      throw new Error(`a plot or table was given ${part}: a measured number is finite or absent`);
    // Coordinates to a hundredth: less is not seen and makes the page larger.
    return String(Math.round(part * 100) / 100);
  }
  if (typeof part === 'string') return escape(part);
  return part.map(render).join('');
};

/** Template tag: `markup`<td>${name}</td>``. Lists are joined, undefined and false vanish; a number is a coordinate or a count, finite. */
export const markup = (strings: TemplateStringsArray, ...parts: Part[]): Markup =>
  new Markup(strings.reduce((text, string, i) => text + render(parts[i - 1]) + string));

type Cell = Markup | string | undefined;

/** A sum is called by its parts, and may be broken between them: a long name in the first column pushes the others off the page. */
const breakable = (cell: Cell): Cell | Markup[] =>
  typeof cell === 'string' ? cell.split('+').map((part, i) => markup`${i > 0 && markup`+<wbr>`}${part}`) : cell;

/** A table that scrolls when it is wider than the page. A cell in the last column may hold long text. */
export const table = ({ head, rows }: { head: string[]; rows: Cell[][] }): Markup =>
  markup`<div class="scroll"><table><tr>${head.map((h) => markup`<th>${h}</th>`)}</tr>${rows.map(
    (cells) =>
      markup`<tr>${cells.map((cell, i) => markup`<td${i === head.length - 1 && markup` class="wrap"`}>${i === 0 ? breakable(cell) : cell}</td>`)}</tr>`,
  )}</table></div>`;

/** A plot that scrolls when it is wider than the page, with what it shows and where it is from. */
export const plotFigure = (plot: {
  body: Markup;
  caption: string;
  from?: readonly ArtifactRef[];
  campaign: string;
}): Markup =>
  markup`<figure><div class="scroll">${plot.body}</div><figcaption>${plot.caption} ${
    plot.from !== undefined && sourceView({ from: plot.from, campaign: plot.campaign })
  }</figcaption></figure>`;

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

/** Characters that are shown at once. */
const SHORT = 300;

/** `missing` characters are not in the report. */
export const longText = (text: string, { missing = 0 }: { missing?: number | undefined } = {}): Markup => {
  const rest =
    missing > 0 && markup` <span class="quiet">… ${wholeNumber(missing)} more characters are in the artifact</span>`;
  if (text.length <= SHORT) return markup`<span class="text">${text}${rest}</span>`;
  // Never half of a character.
  const short = text.slice(0, SHORT).replace(/[\uD800-\uDBFF]$/, '');
  return markup`<details class="text"><summary><span class="cut">${short}… </span><span class="quiet">all ${wholeNumber(text.length + missing)} characters</span></summary>${text}${rest}</details>`;
};

export const roles = { system: 'system', user: 'user', assistant: 'agent', tool: 'result' } as const;

export const messagesView = (messages: readonly ReportedMessage[], cited?: number): Markup =>
  markup`<div class="conversation">${messages.map(
    ({ message, role, text, missing }) =>
      markup`<div class="who">${message} ${roles[role]}</div><div${message === cited && markup` class="cited"`}>${longText(text, { missing })}</div>`,
  )}</div>`;

/** `3ab0c1d2 task 12, attempt 0, failed`. */
export const trajectoryView = (
  { rollout, task, attempt, outcome }: Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome'>,
  campaign: string,
): Markup => {
  const key = markup`<code title="${lineageCommand({ start: rollout, campaign })}">${shortSha(rollout)}</code>`;
  if (task === undefined) return markup`${key} <span class="bad">not among the labeled rollouts</span>`;
  return markup`${key} task ${task}, attempt ${attempt ?? 0}, <span${outcome === 'failed' && markup` class="bad"`}>${outcome}</span>`;
};

/** One line that opens to the messages; `also` is said of it behind the trajectory. */
export const citationView = (
  citation: ReportedCitation,
  { campaign, also }: { campaign: string; also?: string },
): Markup => {
  const { message, says, context } = citation;
  const head = markup`${trajectoryView(citation, campaign)}${message !== undefined && `, message ${message}`}${also !== undefined && `, ${also}`}: ${longText(says)}`;
  if (context.length === 0) return markup`<div class="citation">${head}</div>`;
  return markup`<details class="citation"><summary>${head}</summary>${messagesView(context, message)}</details>`;
};

/** A whole page: one self-contained file, no script, nothing fetched. `style` is added to that of all pages. */
export const pageOf = (page: { title: string; style?: string; body: Markup }): string =>
  markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${page.title}</title><style>${new Markup(style + (page.style ?? ''))}</style></head><body>
${page.body}
</body></html>
`.text;
