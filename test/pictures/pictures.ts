/** The picture of README.md: the first view of a finished campaign's page (`make pictures`). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { openBrowser } from '../support/browser';

const root = resolve(__dirname, '../..');

async function main(name = 'demo', home = '.campaigns'): Promise<void> {
  const args = [join(root, 'bin/campaign'), '--home', resolve(home), 'view', name, '--port', '0', '--json'];
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const browser = await openBrowser();
  try {
    const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
    const { url } = JSON.parse(line) as { url: string };
    const page = await browser.open({ url, context: { viewport: { width: 1300, height: 860 }, colorScheme: 'light' } });
    await page.locator('.answer').waitFor();
    await page.screenshot({ path: join(root, 'docs/pictures/summary-1300-light.png') });
  } finally {
    await browser.close();
    server.kill('SIGINT');
  }
}

void main(...process.argv.slice(2));
