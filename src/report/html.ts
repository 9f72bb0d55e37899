/** A page as one self-contained file: the application of web/, which `make build` builds, with the data in it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Block, type Page, shownBlocks } from './blocks';

/** In the project's folder whether this runs from src or from dist. */
const FILE = join(__dirname, '..', '..', 'dist', 'page.html');

/** Throws an error where the application was not built. */
export function pageHtml(page: Page): string {
  const data = pageData(page);
  // No text ends the element that the data is in, or is taken for the end of a line of script.
  const safe = data.replace(/[<\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
  // Not as patterns: a text may hold `$&`.
  const title = page.title.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`);
  return template()
    .replace('<title>TITLE</title>', () => `<title>${title}</title>`)
    .replace('id="data">DATA<', () => `id="data">${safe}<`);
}

/** What the application shows. */
export function pageData(page: Page): string {
  const views = page.views.map((view) => ({ ...view, blocks: shownOf(view.blocks) }));
  return JSON.stringify({ ...page, views: views.filter(({ blocks }) => blocks.length > 0) });
}

let read: string | undefined;
function template(): string {
  try {
    return (read ??= readFileSync(FILE, 'utf8'));
  } catch (error) {
    throw new Error('the page of reports is not built; run `make build`', { cause: error });
  }
}

const shownOf = (blocks: Page['views'][number]['blocks']): Block[] =>
  shownBlocks(blocks, true).map((block) =>
    block.kind === 'fold' ? { ...block, blocks: shownOf(block.blocks) } : block,
  );
