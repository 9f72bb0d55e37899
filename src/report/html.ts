/** Sections as a page. Invariant: one self-contained file: no script, nothing fetched, every text escaped. */
import type { Figure } from '../domain/figure';
import { messageRoles } from './capability-model';
import {
  lineageCommand,
  shortPercent,
  shortSha,
  shortStart,
  spreadText,
  TEST,
  testText,
  valueText,
  wholeNumber,
} from './format';
import { markup, Markup, style } from './markup';
import { drawPlot } from './plots';
import { type Block, type Line, type Page, type Piece, piecesOf, sectionsOn, shownOn, type Tone } from './section';

export const pageHtml = ({ title, campaign = '', sections }: Page): string =>
  markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title><style>${new Markup(style)}</style></head><body>
<h1>${title}</h1>
${sectionsOn('page', sections).map(
  ({ id, title: heading, level, blocks }) =>
    markup`${heading !== undefined && headingOf(level ?? 2, id, heading)}${blocks.map((block) => blockOf(block, campaign))}
`,
)}</body></html>
`.text;

const anchor = (id: string | undefined): Markup | false => id !== undefined && markup` id="${id}"`;

const headingOf = (level: 2 | 3, id: string | undefined, text: string): Markup =>
  level === 2 ? markup`<h2${anchor(id)}>${text}</h2>\n` : markup`<h3${anchor(id)}>${text}</h3>\n`;

const classed = (tone: Tone | undefined): Markup | false => tone !== undefined && markup` class="${tone}"`;

function blockOf(block: Block, campaign: string): Markup {
  const line = (of: Line): Markup[] => lineOf(of, campaign);
  switch (block.kind) {
    case 'paragraph':
      return markup`<p${classed(block.tone)}>${line(block.text)}</p>\n`;
    case 'facts':
      return markup`<dl>${block.rows.map(([name, ...values]) => markup`<dt>${name}</dt>${values.map((value) => markup`<dd>${line(value)}</dd>`)}`)}</dl>\n`;
    case 'table':
      return tableOf(block, campaign);
    case 'list':
      return markup`<ul>${block.items.map((item) => markup`<li>${line(item)}</li>`)}</ul>\n`;
    case 'quote':
      return markup`<div class="quote">${block.messages.map(
        ({ message, role, text, missing }) =>
          markup`<div class="quiet">${message} ${messageRoles[role]}</div><div class="said${message === block.cited && ' cited'}">${longText(text, missing)}</div>`,
      )}</div>${left(block.missing, 'messages are in the artifact')}`;
    case 'diff':
      return markup`<pre class="diff">${block.lines.map((one) => markup`<span class="${changes[one.charAt(0)] ?? 'same'}">${one}</span>\n`)}</pre>${left(block.missing, 'lines are in the artifacts')}`;
    case 'plot':
      return markup`<figure><div class="scroll">${drawPlot(block.plot)}</div><figcaption class="quiet">${block.caption} ${block.from && line({ lineage: block.from })}</figcaption></figure>\n`;
    case 'fold': {
      const inner = shownOn('page', block.blocks);
      const head = line(block.summary);
      if (inner.length === 0) return markup`<div class="fold"${anchor(block.id)}>${head}</div>\n`;
      return markup`<details class="fold"${anchor(block.id)}${block.open === true && markup` open`}><summary>${head}</summary><div>${inner.map((one) => blockOf(one, campaign))}</div></details>\n`;
    }
  }
}

const changes: Record<string, string> = { '+': 'added', '-': 'removed', '@': 'quiet' };

const left = (missing: number | undefined, what: string): Markup | false =>
  missing !== undefined && missing > 0 && markup`<p class="quiet">${wholeNumber(missing)} more ${what}</p>`;

/** It scrolls in a frame of its own where it is wider than the page. */
function tableOf({ columns, rows }: Extract<Block, { kind: 'table' }>, campaign: string): Markup {
  const shown = columns.flatMap((column, n) => {
    const { head, on } = typeof column === 'string' ? { head: column } : { on: undefined, ...column };
    return on === 'terminal' ? [] : [{ head, n }];
  });
  const cell = (of: Line): Markup => {
    const pieces = piecesOf(of);
    const isText = pieces.some((piece) => typeof piece === 'string' && piece.length > 18);
    return markup`<td${isText && markup` class="text"`}>${lineOf(of, campaign, true)}</td>`;
  };
  return markup`<div class="scroll"><table><tr>${shown.map(({ head }) => markup`<th>${head}</th>`)}</tr>
${rows.map((row) => markup`<tr>${shown.map(({ n }) => cell(row[n]))}</tr>\n`)}</table></div>\n`;
}

/** `folds`: long texts open. */
const lineOf = (line: Line, campaign: string, folds = false): Markup[] =>
  piecesOf(line).map((piece, n) => markup`${n > 0 && ' '}${pieceOf(piece, campaign, folds)}`);

function pieceOf(piece: Piece, campaign: string, folds: boolean): Markup {
  if (piece === '\n') return markup`<br>`;
  if (typeof piece === 'string') return folds ? longText(piece) : markup`${piece}`;
  if ('tone' in piece) return markup`<span class="${piece.tone}">${piece.text}</span>`;
  if ('code' in piece) return markup`<code>${piece.code}</code>`;
  if ('link' in piece) return markup`<a href="#${piece.to}">${piece.link}</a>`;
  if ('id' in piece) return figureOf(piece, campaign);
  return markup`${piece.lineage.map((start, n) => {
    const command = lineageCommand({ start: typeof start === 'string' ? start : start.sha256, campaign });
    return markup`${n > 0 && ' '}<code title="${command}">${shortStart(start)}</code>`;
  })}`;
}

/** It opens to its artifacts and its lineage command. */
function figureOf(figure: Figure, campaign: string): Markup {
  const { id, n, interval, test, from } = figure;
  const command = lineageCommand({ start: id, campaign });
  const small = [spreadText(figure), `n ${n}`].filter((part) => part !== undefined).join(' · ');
  return markup`<details class="figure"><summary title="${command}"><b>${valueText(figure)}</b><span class="quiet">${small}</span></summary>${
    interval !== undefined && markup`<p>${shortPercent(interval.level)} interval, ${interval.method}</p>`
  }${test && markup`<p>${testText(figure)} (${TEST})</p>`}<p><code>${command}</code></p>${from.map(
    (ref) => markup`<p>artifact <code title="${ref.sha256}">${shortSha(ref.sha256)}</code> ${ref.mediaType}</p>`,
  )}</details>`;
}

/** Characters that are shown at once. */
const SHORT = 300;

/** `missing` characters are not in the report. */
function longText(text: string, missing = 0): Markup {
  const rest =
    missing > 0 && markup` <span class="quiet">… ${wholeNumber(missing)} more characters are in the artifact</span>`;
  if (text.length <= SHORT) return markup`${text}${rest}`;
  // Never half of a character.
  const short = text.slice(0, SHORT).replace(/[\uD800-\uDBFF]$/, '');
  return markup`<details><summary>${short}… <span class="quiet">all ${wholeNumber(text.length + missing)} characters</span></summary>${text}${rest}</details>`;
}
