/**
 * The views of a report as pictures, at two widths, light and dark, as docs/pictures has them of a demo:
 *
 *   node -r ./test/support/register.cjs bench/pictures.ts report.json [--out docs/pictures]
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { reportSchema } from '../src/report/model';
import { reportHtml } from '../src/report/sections/report';
import { openBrowser } from '../test/support/browser';

const VIEWS = ['summary', 'arms', 'selection', 'capabilities', 'training', 'router', 'run'];

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { out: { type: 'string', default: 'docs/pictures' } },
  });
  if (positionals[0] === undefined) throw new Error('pictures.ts report.json: name a report');
  const html = reportHtml(reportSchema.parse(JSON.parse(readFileSync(positionals[0], 'utf8'))));
  mkdirSync(values.out, { recursive: true });
  const browser = await openBrowser();
  for (const width of [1300, 420])
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browser.open({ html, context: { viewport: { width, height: 860 }, colorScheme } });
      for (const view of VIEWS) {
        await page.evaluate(`window.location.hash = '${view}'`);
        await page.waitForSelector(`nav a[href="#${view}"][aria-current]`);
        await page.waitForTimeout(300);
        const path = join(values.out, `${view}-${width}-${colorScheme}.png`);
        await page.screenshot({ path });
      }
      await page.close();
    }
  await browser.close();
  if (browser.problems.length > 0) throw new Error(browser.problems.join('\n'));
}

void main();
