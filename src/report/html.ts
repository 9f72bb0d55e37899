/** A page as one self-contained file: the application of web/, which `make build` builds, with the data in it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Comparison } from './comparison';
import type { Report } from './model';

/** The project's folder is two above this one, in src and in dist. */
const FILE = join(__dirname, '..', '..', 'dist', 'page.html');

/** Throws an error where the application was not built. The kinds of pages are those of web/src/page.ts. */
export function pageHtml<Page extends { kind: string; title: string }>(page: Page): string {
  // No text ends the element that holds the data, or is taken for the end of a line of script.
  const data = JSON.stringify(page).replace(
    /[<\u2028\u2029]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  // Functions, since a text may hold `$&`.
  const title = page.title.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`);
  return template()
    .replace('<title>TITLE</title>', () => `<title>${title}</title>`)
    .replace('id="data">DATA<', () => `id="data">${data}<`);
}

export const reportHtml = (report: Report): string =>
  pageHtml({ kind: 'campaign', title: report.campaign.name, report: { ...report, solverMatrix: undefined } });

export const comparisonHtml = (comparison: Comparison): string =>
  pageHtml({
    kind: 'comparison',
    title: `${comparison.runs.map(({ name }) => name).join(', ')}: comparison`,
    comparison,
  });

function template(): string {
  try {
    return readFileSync(FILE, 'utf8');
  } catch (error) {
    throw new Error('the page of reports is not built; run `make build`', { cause: error });
  }
}
