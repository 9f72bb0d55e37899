/** The command on a home with a report: what it refuses, and its end while an answer is under way. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import { serve, type ServeOptions } from '../../../src/cli/serve';
import { renderReport } from '../../../src/report/render';
import { completion, type DialectServer, startDialectServer } from '../../support/dialect-server';
import { fitByWords } from '../../support/gateway';
import { atEnd, closedAfterwards } from '../../support/opened';
import { reportFixture } from '../../support/report-fixture';
import { newFolder } from '../../support/temporary-folder';

let home: string;
let server: DialectServer;
let options: ServeOptions;
beforeEach(async () => {
  home = newFolder();
  server = closedAfterwards(await startDialectServer());
  options = { home, host: '127.0.0.1', port: 0, policyServer: server.url, json: true };
});

const store = () => openFolderStore(join(home, 'artifacts'));

async function report(option: string): Promise<void> {
  const draft = reportFixture();
  draft.router!.crossValidation.routed.from = [await fitByWords(store(), { constant: option })];
  mkdirSync(join(home, 'demo'), { recursive: true });
  writeFileSync(join(home, 'demo', 'report.json'), renderReport({ report: draft }).json);
}

const ask = (url: string, content: string) =>
  fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'trace', stream: true, messages: [{ role: 'user', content }] }),
  });

test('the end waits for what is being answered', async () => {
  await report('books');
  const printed = jest.spyOn(console, 'log').mockImplementation(() => undefined);
  const noted = jest.spyOn(process.stderr, 'write').mockImplementation(() => true);
  atEnd(() => jest.restoreAllMocks());
  server.health = 503;
  const serving = serve('demo', options);
  while (printed.mock.calls.length === 0) await Promise.race([sleep(20), serving]);
  const { url } = JSON.parse(String(printed.mock.calls[0])) as { url: string };
  while (noted.mock.calls.length === 0) await sleep(20);
  expect(String(noted.mock.calls[0])).toContain(`warning: no policy server answers at ${server.url}`);
  server.health = 200;
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  server.complete = async () => {
    await opened;
    return completion({ content: 'late' });
  };
  const begun = ask(url, 'a question');
  while (!server.requests.some(({ body }) => body['messages'])) await sleep(20);
  process.emit('SIGTERM');
  open();
  const answer = await begun;
  expect([answer.status, answer.headers.get('x-campaign-policy')]).toEqual([200, 'books']);
  expect(await answer.text()).toMatch(/late[^]*\[DONE\]/);
  await serving;
});
