/** Sections as a page. Invariant: one self-contained file: no script, nothing fetched, every text escaped. */
import type { Figure } from '../domain/figure';
import { messageRoles } from './capability-model';
import { beginningOf, shortPercent, shortSha, spreadText, TEST, testText, valueText, wholeNumber } from './format';
import { markup, Markup, style } from './markup';
import { drawPlot } from './plots';
import { type Block, type Blocks, type Line, type Page, type Piece, piecesOf, shownBlocks, type Table } from './blocks';

export const pageHtml = ({ title, campaign = '', blocks }: Page): string =>
  markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title><style>${new Markup(style)}</style></head><body>
<h1>${title}</h1>
${blocksOf(blocks, campaign)}</body></html>
`.text;

const blocksOf = (blocks: Blocks, campaign: string): Markup[] =>
  shownBlocks(blocks, true).map((block) => blockOf(block, campaign));

const anchor = (id: string | undefined): Markup | false => id !== undefined && markup` id="${id}"`;

function blockOf(block: Block, campaign: string): Markup {
  const line = (of: Line): Markup[] => lineOf(of, campaign);
  switch (block.kind) {
    case 'heading': {
      const tag = new Markup(`h${block.level}`);
      return markup`<${tag}${anchor(block.id)}>${block.text}</${tag}>\n`;
    }
    case 'paragraph':
      return markup`<p${block.tone && markup` class="${block.tone}"`}>${line(block.text)}</p>\n`;
    case 'list':
      return markup`<ul>${block.items.map((item) => markup`<li>${line(item)}</li>`)}</ul>\n`;
    case 'table':
      return tableOf(block, campaign);
    case 'quote':
      return markup`<div class="quote">${block.messages.map(
        ({ message, role, text, missing }) =>
          markup`<div class="quiet">${message} ${messageRoles[role]}</div><div class="said${message === block.cited && ' cited'}">${longText(text, missing)}</div>`,
      )}</div>${left(block.missing, 'messages are in the artifact')}`;
    case 'diff':
      return markup`<pre class="diff">${block.lines.map((one) => markup`<span class="${changes[one.charAt(0)] ?? 'same'}">${one}</span>\n`)}</pre>${left(block.missing, 'lines are in the artifacts')}`;
    case 'plot':
      return markup`<figure><div class="scroll">${drawPlot(block.plot)}</div><figcaption class="quiet">${line(block.caption)}</figcaption></figure>\n`;
    case 'fold': {
      const [summary, inner] = [line(block.summary), blocksOf(block.blocks, campaign)];
      if (inner.length === 0) return markup`<div class="fold"${anchor(block.id)}>${summary}</div>\n`;
      return markup`<details class="fold"${anchor(block.id)}${block.open && markup` open`}><summary>${summary}</summary><div>${inner}</div></details>\n`;
    }
  }
}

const changes: Record<string, string> = { '+': 'added', '-': 'removed', '@': 'quiet' };

const left = (missing = 0, what: string): Markup | false =>
  missing > 0 && markup`<p class="quiet">${wholeNumber(missing)} more ${what}</p>`;

/** It scrolls in a frame of its own where it is wider than the page. */
const tableOf = ({ columns, rows }: Table, campaign: string): Markup =>
  markup`<div class="scroll"><table><tr>${columns.map(({ head }) => markup`<th>${head}</th>`)}</tr>
${rows.map((row) => markup`<tr>${row.map((cell) => markup`<td>${lineOf(cell, campaign, true)}</td>`)}</tr>\n`)}</table></div>\n`;

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
  if ('value' in piece) return markup`<b>${valueText(piece)}</b> <span class="quiet">${spreadText(piece)}</span>`;
  return markup`${piece.lineage.map((one, n) => {
    const start = typeof one === 'string' ? one : one.sha256;
    const short = /^[0-9a-f]{64}$/.test(start) ? shortSha(start) : start;
    return markup`${n > 0 && ' '}<code title="${lineageCommand(start, campaign)}">${short}</code>`;
  })}`;
}

const lineageCommand = (start: string, campaign: string) => `campaign lineage ${start} --campaign ${campaign}`;

/** It opens to its artifacts and its lineage command. */
function figureOf(figure: Figure, campaign: string): Markup {
  const { id, n, interval, test, from } = figure;
  const command = lineageCommand(id, campaign);
  const small = [spreadText(figure), `n ${n}`].filter(Boolean).join(' · ');
  const inside = [
    interval && `${shortPercent(interval.level)} interval, ${interval.method}`,
    test && `${testText(figure)} (${TEST})`,
    markup`<code>${command}</code>`,
    ...from.map((ref) => markup`artifact <code title="${ref.sha256}">${shortSha(ref.sha256)}</code> ${ref.mediaType}`),
  ];
  return markup`<details class="figure"><summary title="${command}"><b>${valueText(figure)}</b><span class="quiet">${small}</span></summary>${inside.map((one) => one && markup`<p>${one}</p>`)}</details>`;
}

/** Characters that are shown at once. */
const SHORT = 300;

/** `missing` characters are not in the report. */
function longText(text: string, missing = 0): Markup {
  const rest =
    missing > 0 && markup` <span class="quiet">… ${wholeNumber(missing)} more characters are in the artifact</span>`;
  if (text.length <= SHORT) return markup`${text}${rest}`;
  return markup`<details><summary>${beginningOf(text, SHORT)}… <span class="quiet">all ${wholeNumber(text.length + missing)} characters</span></summary>${text}${rest}</details>`;
}
