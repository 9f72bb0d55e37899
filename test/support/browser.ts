/** A real browser for pages: Chromium, driven by Playwright. Where the machine has none, that of the package @sparticuz/chromium, which is unpacked once. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BrowserContextOptions, type BrowserServer, chromium, type Page } from 'playwright-core';
import { shared } from './services';

const PLACES = [
  ...['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'],
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** $CHROMIUM, else what the machine has, else the package's. */
async function executable(): Promise<string> {
  const own = process.env['CHROMIUM'] ?? PLACES.find((path) => existsSync(path));
  if (own) return own;
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('there is no Chromium: install it, or name one with CHROMIUM=/path/to/chromium');
  // The package unpacks the libraries that Chromium needs only where it takes the machine for one of these.
  process.env['AWS_LAMBDA_JS_RUNTIME'] ??= 'nodejs22.x';
  const { default: packed } = await import('@sparticuz/chromium');
  return packed.executablePath();
}

export interface OpenBrowser {
  /** Errors of a page, refused requests, and requests to other hosts. */
  problems: string[];
  open(o: { html?: string; url?: string; context?: BrowserContextOptions }): Promise<Page>;
  close(): Promise<void>;
}

export const launchChromium = async (): Promise<BrowserServer> =>
  chromium.launchServer({ executablePath: await executable(), args: ['--no-sandbox', '--no-zygote'] });

/** Opens pages in the Chromium of all test files; outside Jest in one of its own. */
export async function openBrowser(): Promise<OpenBrowser> {
  const service = await shared<{ address: string }>('chromium');
  const own = service ? undefined : await launchChromium();
  const browser = await chromium.connect(service?.address ?? own!.wsEndpoint());
  const folder = mkdtempSync(join(tmpdir(), 'page-'));
  const problems: string[] = [];
  let files = 0;
  return {
    problems,
    async open({ html, url, context = {} }) {
      const page = await (await browser.newContext(context)).newPage();
      const file = join(folder, `${files++}.html`);
      if (html !== undefined) writeFileSync(file, html);
      const address = url ?? pathToFileURL(file).href;
      page.on('console', (said) => said.type() === 'error' && problems.push(said.text()));
      page.on('pageerror', ({ message }) => problems.push(message));
      page.on('request', (request) => {
        if (!request.url().startsWith(new URL(address).origin === 'null' ? address : new URL(address).origin))
          problems.push(`asks for ${request.url()}`);
      });
      await page.goto(address, { timeout: 120_000 });
      return page;
    },
    async close() {
      await browser.close();
      await own?.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the rules that axe finds violated on a page opened with `bypassCSP`, each with its first place. Content wider than the window counts. */
export async function violationsOf(page: Page): Promise<[string, string | undefined][]> {
  await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations } = (await page.evaluate('axe.run({ resultTypes: ["violations"] })')) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  const beyond = Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'));
  return [
    ...violations.map(({ id, nodes }): [string, string | undefined] => [id, nodes[0]?.html]),
    ...(beyond > 0 ? [['wider than the window', `${beyond} pixels`] as [string, string]] : []),
  ];
}

/** The markup of all views of a page, as the browser has it, in their order. */
export async function viewsOf(page: Page): Promise<string> {
  const names = await page
    .locator('nav a')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''));
  const shown: string[] = [];
  for (const name of names.length > 0 ? names : ['#']) {
    await page.evaluate(`window.location.hash = '${name}'`);
    if (name !== '#') await page.waitForSelector(`nav a[href="${name}"][aria-current]`);
    await page.locator('.chart:empty').first().waitFor({ state: 'detached' });
    shown.push(await page.locator('main').innerHTML());
  }
  return shown.join('\n').replaceAll('<wbr>', '');
}

/** All words of a page's data, a text a line; cells of a row and pieces of a line stand beside each other. */
export function wordsOf(html: string): string {
  const [, data = ''] = /id="data">(.*)<\/script><script>/.exec(html) ?? [];
  const words = (value: unknown): string =>
    typeof value === 'string'
      ? value
      : Array.isArray(value)
        ? value
            .map(words)
            .join(value.some((one) => typeof one === 'object' && one !== null && 'kind' in one) ? '\n' : ' ')
        : typeof value === 'object' && value !== null
          ? Object.values(value).map(words).join('\n')
          : String(value);
  return words(JSON.parse(data));
}
