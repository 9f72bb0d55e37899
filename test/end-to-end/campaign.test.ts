/** A smaller campaign, end to end and for real: Temporal, policy server, workers, trainer, report; then the same command again. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { openFolderStore } from '../../src/artifacts/folder-store';
import { figuresIn } from '../../src/domain/figure';
import { type Report, reportSchema } from '../../src/report/model';

jest.setTimeout(15 * 60_000);
const run = promisify(execFile);
const repository = resolve(__dirname, '..', '..');
const home = mkdtempSync(join(tmpdir(), 'end-to-end-'));
let report: Report;

const campaign = (...args: string[]) =>
  run(join(repository, 'bin', 'campaign'), ['--home', home, ...args], { maxBuffer: 2 ** 26 });
const runSmoke = async () => {
  const ports = ['--temporal-port', '0', '--ui-port', '0'];
  return campaign('run', join(repository, 'campaigns', 'smoke.yaml'), '--exit', '--json', ...ports);
};
const readReport = () => reportSchema.parse(JSON.parse(readFileSync(join(home, 'smoke', 'report.json'), 'utf8')));

beforeAll(async () => {
  await runSmoke();
  report = readReport();
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('every stage left its part of the report', () => {
  expect(report.campaign.status).toBe('completed');
  expect(report.selection?.candidates.length).toBeGreaterThan(0);
  expect(report.capabilities?.length).toBeGreaterThan(0);
  for (const { name, status, reason } of report.capabilities ?? []) {
    // So few rollouts may miss a calibration band; anything else is a defect.
    expect({ name, status, reason }).toEqual({
      name,
      status: expect.stringMatching(/^(trained|not_calibrated)$/),
      reason,
    });
  }
  expect(report.arms?.map((arm) => arm.name)).toEqual(
    expect.arrayContaining(['base', 'trace', 'union_ceiling', 'grpo_target']),
  );
  expect(report.leakage).toMatchObject({ passed: true });
  expect(report.rollouts?.broken.value).toBe(0);
});

test('every figure leads back to artifacts that are there', async () => {
  const store = openFolderStore(join(home, 'artifacts'));
  const figures = figuresIn(report);
  expect(figures.length).toBeGreaterThan(30);
  for (const ref of figures.flatMap((figure) => figure.from)) await store.provenance(ref);
  const { stdout } = await campaign('lineage', 'arms.grpo_target.success_rate', '--campaign', 'smoke');
  expect(stdout).toMatch(/rollouts/);
});

test('the same command again makes nothing again and shows the same report', async () => {
  const before = readFileSync(join(home, 'smoke', 'report.json'), 'utf8');
  const { stdout } = await runSmoke();
  expect(stdout).toContain('report.html');
  expect(readFileSync(join(home, 'smoke', 'report.json'), 'utf8')).toBe(before);
});
