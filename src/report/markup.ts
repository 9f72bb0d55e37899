/**
 * HTML and SVG as text. Invariant: whatever is put into a `markup` template is escaped, unless it is itself markup; so no name, reason
 * or definition (some are written by models) can add elements or attributes, or be read as something else than what it is.
 */
import { visible } from './format';

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
