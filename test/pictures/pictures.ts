/**
 * Every view of the page as pictures, at two widths, light and dark: `make pictures`. It runs the demo, with approval of what is selected, then
 * trains with another seed, and looks while they run and after:
 *
 *   node -r ./test/support/register.cjs test/pictures/pictures.ts [--home .pictures] [--out docs/pictures] [--only regexp]
 *
 * A home that has both campaigns already is looked at as it is: what can be seen only while they run keeps its pictures.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { parse, stringify } from 'yaml';
import { analyse } from '../../src/cli/analyse/run';
import { conversations, fileOf, startAnalyst } from '../support/analyse-endpoint';
import { type OpenBrowser, openBrowser } from '../support/browser';

const root = resolve(__dirname, '../..');
const { values } = parseArgs({
  options: {
    home: { type: 'string', default: '.pictures' },
    out: { type: 'string', default: 'docs/pictures' },
    only: { type: 'string', default: '' },
  },
});
const home = resolve(values.home);
const only = new RegExp(values.only);

const campaign = (...args: string[]): ChildProcess =>
  spawn(process.execPath, [join(root, 'bin/campaign'), '--home', home, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

async function ended(child: ChildProcess): Promise<void> {
  child.stdout?.resume();
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${child.spawnargs.slice(2).join(' ')} ended with ${code}`);
}

/** While `campaign view` serves a campaign. */
async function viewing(name: string, look: (url: string) => Promise<void>): Promise<void> {
  const view = campaign('view', name, '--port', '0', '--json');
  try {
    const [line] = (await once(createInterface({ input: view.stdout! }), 'line')) as [string];
    await look((JSON.parse(line) as { url: string }).url);
  } finally {
    view.kill('SIGINT');
    await once(view, 'close');
  }
}

/** Four pictures of what is at an address, once it shows `wanted`. */
async function shoot(browser: OpenBrowser, name: string, url: string, wanted: string): Promise<void> {
  if (!only.test(name)) return;
  for (const width of [1300, 420])
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browser.open({ url, context: { viewport: { width, height: 860 }, colorScheme } });
      const shown = page.locator(wanted).first();
      await shown.waitFor({ timeout: 600_000 });
      await page.waitForTimeout(500);
      const cut = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
      if (cut !== 0) throw new Error(`${name} is ${String(cut)} pixels wider than ${width}`);
      await page.screenshot({ path: join(values.out, `${name}-${width}-${colorScheme}.png`) });
      await page.close();
    }
}

/** Approves what is selected, where that waits still; `seen` at the page of what waits, and of the training after it. */
async function approved(browser: OpenBrowser, url: string, seen: (view: string) => Promise<void>): Promise<void> {
  const page = await browser.open({ url: `${url}#approval` });
  const approve = page.locator('.decision button', { hasText: 'Approve' });
  // A curve is one once it has two points.
  const curve = page.locator('.chart path[d*="L"]').first();
  await approve.or(curve).first().waitFor({ timeout: 1_800_000, state: 'attached' });
  if (await approve.isVisible()) {
    await seen('approval');
    await approve.click();
    await approve.waitFor({ timeout: 60_000, state: 'detached' });
  }
  await page.evaluate(`window.location.hash = 'live'`);
  await curve.waitFor({ timeout: 1_800_000, state: 'attached' });
  await seen('live');
  await page.close();
}

async function ran(browser: OpenBrowser, args: string[], name: string): Promise<void> {
  if (existsSync(join(home, name, 'report.json'))) return;
  const running = campaign('run', join(home, 'demo.yaml'), '--json', ...args);
  const done = ended(running);
  const wanted = { approval: '.decision', live: '.chart svg' };
  // It serves what the home knows of, and that only once it has begun.
  while (!existsSync(join(home, name))) await Promise.race([new Promise((next) => setTimeout(next, 1000)), done]);
  await viewing(name, (url) =>
    approved(browser, url, async (view) => {
      // Of the first, so that what waits has not been decided before.
      if (args.length === 0) await shoot(browser, view, `${url}#${view}`, wanted[view as keyof typeof wanted]);
    }),
  );
  await done;
}

async function main(): Promise<void> {
  mkdirSync(home, { recursive: true });
  mkdirSync(values.out, { recursive: true });
  const demo = parse(readFileSync(join(root, 'campaigns/demo.yaml'), 'utf8')) as object;
  const file = {
    ...demo,
    plugins: [join(root, 'examples/shop')],
    baseModel: { path: join(root, 'models/base') },
    approval: { capabilities: true },
  };
  writeFileSync(join(home, 'demo.yaml'), stringify(file));
  const browser = await openBrowser();
  try {
    await ran(browser, [], 'demo');
    await viewing('demo', async (url) => {
      for (const view of ['summary', 'policies', 'analysis', 'capabilities', 'training', 'router', 'run'])
        await shoot(browser, view, `${url}#${view}`, `nav a[href="#${view}"][aria-current]`);
      await shoot(browser, 'conversations', `${url}#conversations`, 'tbody a');
      const list = await browser.open({ url: `${url}#conversations` });
      const place = await list.locator('tbody a').first().getAttribute('href', { timeout: 60_000 });
      await list.close();
      await shoot(browser, 'conversation', url + place, '.messages');
    });
    if (only.test('comparison')) {
      await ran(browser, ['--training-seed', '2'], 'demo-s2');
      await ended(campaign('report', 'demo', 'demo-s2', '--out', join(home, 'comparison')));
      const page = pathToFileURL(join(home, 'comparison', 'comparison.html')).href;
      await shoot(browser, 'comparison', page, '.chart svg');
    }
    const server = await startAnalyst();
    const found = { home, url: server.url, model: 'reader', passes: 3, yes: true, json: true, name: 'library' };
    await analyse([fileOf(conversations())], found).finally(() => server.close());
    await shoot(browser, 'analyse', pathToFileURL(join(home, 'library', 'analysis.html')).href, 'main table');
    if (browser.problems.length > 0) throw new Error(browser.problems.join('\n'));
  } finally {
    await browser.close();
  }
}

void main();
