/** Where campaigns stand by the files of their home, no server being there to ask. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import { readStatus, type Snapshot, writeStatus } from '../../../src/cli/watch/snapshot';
import { renderReport } from '../../../src/report/render';
import { announcedServer } from '../../support/announced-server';
import { campaignCommand } from '../../support/campaign-command';
import { reportFixture } from '../../support/report-fixture';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let home: string;
eachTemporaryFolder((folder) => (home = folder));
const said = async (...argv: string[]) => {
  const { text, code } = await campaignCommand(home, ...argv);
  expect(code).toBe(0);
  return text;
};
const json = async (...argv: string[]) => JSON.parse(await said(...argv, '--json')) as unknown;

const startedAt = Date.parse('2025-03-01T12:00:00Z');
const snapshot = (over: Partial<Snapshot> = {}): Snapshot => ({
  name: 'demo',
  runId: 'run',
  status: 'RUNNING',
  startedAt,
  stage: 'selection',
  progress: {
    campaign: 'demo',
    seed: 1,
    stages: [
      { name: 'rollouts', status: 'completed', detail: '340 train tasks, base model' },
      { name: 'selection', status: 'running', detail: '' },
      { name: 'capabilities', status: 'waiting', detail: '' },
    ],
    children: [],
    rollouts: {
      scored: 338,
      broken: 2,
      causes: [{ type: 'BadEnvironment', message: 'no id', count: 2, task: 'train-5' }],
    },
  },
  activities: [
    {
      type: 'label',
      state: 'started',
      attempt: 1,
      heartbeat: { kind: 'analysis', title: 'pass 2', done: 30, total: 400 },
    },
  ],
  children: [],
  ...over,
});
const completed = { status: 'COMPLETED', closedAt: startedAt + 221_000, stage: 'evaluation' as const, activities: [] };

function writeReport(name: string, over: object = {}): string {
  mkdirSync(join(home, name), { recursive: true });
  const draft = reportFixture();
  const file = join(home, name, 'report.json');
  writeFileSync(file, renderReport({ report: { ...draft, campaign: { ...draft.campaign, name, ...over } } }).json);
  return file;
}

describe('status.json', () => {
  it.each<[string, (text: string) => string]>([
    ['is empty', () => ''],
    ['is cut off', (text) => text.slice(0, -9)],
    ['holds something else', () => '{"at": 1, "snapshot": {"name": "demo"}}'],
  ])('that %s counts as none', async (_what, damage) => {
    await writeStatus({ home, snapshot: snapshot() });
    const file = join(home, 'demo', 'status.json');
    writeFileSync(file, damage(readFileSync(file, 'utf8')));
    expect(readStatus({ home, name: 'demo' })).toBeUndefined();
  });
});

describe('without a server', () => {
  it('status shows the last known state of a campaign that was running, as an object too', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    expect(await said('status', 'demo')).toContain('was running');
    const asOf = expect.any(Number) as number;
    expect(await json('status', 'demo')).toMatchObject({ ...snapshot(), asOf });
    const campaigns = [{ name: 'demo', status: 'was running', asOf }];
    expect(await json('list')).toMatchObject({ server: false, campaigns });
  });

  it('status says after which stage one stopped, from either file', async () => {
    await writeStatus({ home, snapshot: snapshot({ ...completed, stage: 'rollouts' }) });
    expect(await said('status', 'demo')).toContain('stopped after rollouts');
    writeReport('other', { status: 'completed', stage: 'selection' });
    expect(await said('status', 'other')).toContain('stopped after selection');
  });

  it('status shows one that completed, from either file, and its report', async () => {
    await writeStatus({ home, snapshot: snapshot(completed) });
    const file = writeReport('demo');
    expect(await said('status', 'demo')).toContain(`report ${file}`);
    rmSync(join(home, 'demo', 'status.json'));
    expect(await said('status', 'demo')).toContain(`report ${file}`);
    await expect(said('approve', 'other')).rejects.toThrow(UserError);
  });

  it('list shows what the files tell', async () => {
    expect(await json('list')).toMatchObject({ campaigns: [] });
    await writeStatus({ home, snapshot: snapshot({ name: 'late', startedAt: Date.now() }) });
    writeReport('early');
    mkdirSync(join(home, 'logs'));
    expect(await json('list')).toMatchObject({ campaigns: [{ name: 'late' }, { name: 'early' }] });
  });

  it('status --watch shows the last frame of one that failed and ends; report names `status`', async () => {
    const failure = 'no train tasks';
    await writeStatus({ home, snapshot: snapshot({ ...completed, status: 'FAILED', failure }) });
    const [first] = (await said('status', 'demo', '--watch', '--json')).split('\n');
    expect(JSON.parse(first!)).toMatchObject({ campaign: 'demo', status: 'failed', detail: failure });
    await expect(said('report', 'demo')).rejects.toThrow('campaign status demo');
  });

  it('an unknown name is an error that lists the known ones, of report those with one', async () => {
    await expect(said('status', 'dmeo')).rejects.toThrow(UserError);
    await writeStatus({ home, snapshot: snapshot() });
    writeReport('other');
    await expect(said('status', 'dmeo')).rejects.toThrow(/(demo, other|other, demo)/);
    await expect(said('report', 'dmeo')).rejects.toThrow(/one: other$/);
  });

  it('a damaged report.json is named with the remedy, and hides no other campaign', async () => {
    const file = writeReport('demo');
    writeFileSync(file, '{"campaign": {"name": "demo"');
    writeReport('other');
    for (const command of ['status', 'report']) await expect(said(command, 'demo')).rejects.toThrow(file);
    expect(await said('list')).toMatch(/^other/m);
    // What status.json tells does not need the report.
    await writeStatus({ home, snapshot: snapshot() });
    expect(await said('status', 'demo')).toContain('was running');
  });

  it('the address of a server that is gone is no error', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    // Nobody listens on port 1.
    const temporalAddress = '127.0.0.1:1';
    const server = await announcedServer(home);
    server.isAt(temporalAddress);
    // It hangs, or was killed a moment ago.
    expect(await said('status', 'demo')).toContain('was running');
    await server.release();
    expect(await said('status', 'demo')).toContain('was running');
    // Somebody else may listen there by now.
    await expect(said('cancel', 'demo')).rejects.toThrow(UserError);
    const named = said('--temporal-address', temporalAddress, 'list');
    await expect(named).rejects.toThrow(temporalAddress);
  });
});
