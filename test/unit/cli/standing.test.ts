/** Where campaigns stand by the files of their home, no server being there to ask. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../src/cli/ports';
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
  paused: false,
  startedAt,
  stage: 'selection',
  progress: {
    campaign: 'demo',
    seed: 1,
    paused: false,
    stages: [
      { name: 'rollouts', status: 'done', detail: '340 train tasks, base model' },
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
      id: '7',
      workflowId: 'demo',
      type: 'label',
      state: 'started',
      attempt: 1,
      heartbeat: { kind: 'analysis', title: 'pass 2', done: 30, total: 400 },
      heartbeatAt: startedAt,
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
  it('holds what was seen, and when', async () => {
    const before = Date.now();
    await writeStatus({ home, snapshot: snapshot() });
    const kept = readStatus({ home, name: 'demo' });
    expect(kept?.snapshot).toEqual(snapshot());
    expect(kept?.at).toBeGreaterThanOrEqual(before);
    expect(kept?.at).toBeLessThanOrEqual(Date.now());
    expect(readdirSync(join(home, 'demo'))).toEqual(['status.json']);
  });

  it.each<[string, (text: string) => string]>([
    ['is empty', () => ''],
    ['is cut off', (text) => text.slice(0, -9)],
    ['holds something else', () => '{"at": 1, "snapshot": {"name": "demo"}}'],
    ['has another letter', (text) => text.replace('"stages"', '"stbges"')],
  ])('that %s counts as none', async (_what, damage) => {
    await writeStatus({ home, snapshot: snapshot() });
    const file = join(home, 'demo', 'status.json');
    writeFileSync(file, damage(readFileSync(file, 'utf8')));
    expect(readStatus({ home, name: 'demo' })).toBeUndefined();
  });

  it('is left out on a full disk, and only there', async () => {
    // It answers every write with ENOSPC.
    if (existsSync('/dev/full')) {
      mkdirSync(join(home, 'full'));
      symlinkSync('/dev/full', join(home, 'full', 'status.json.part'));
      await writeStatus({ home, snapshot: snapshot({ name: 'full' }) });
      expect(readdirSync(join(home, 'full'))).toEqual([]);
    }
    writeFileSync(join(home, 'demo'), 'a file where the folder should be');
    await expect(writeStatus({ home, snapshot: snapshot() })).rejects.toThrow(/EEXIST|ENOTDIR/);
  });
});

describe('without a server', () => {
  it('status shows the last known state of a campaign that was running, as an object too', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    const text = await said('status', 'demo');
    expect(text).toMatch(/^demo · seed 1 · was running /);
    await expect(said('approvals', 'demo')).rejects.toThrow('start it with `campaign serve`');
    expect(text).toContain('✓ rollouts      340 train tasks, base model');
    expect(text).toContain('pass 2 30/400');
    expect(text).toMatch(
      /as of 20\S+ \S+ UTC; no Temporal server of this home is running: `campaign run FILE` goes on from what is done, `campaign serve` brings the UI back$/,
    );
    const asOf = expect.any(Number) as number;
    expect(await json('status', 'demo')).toMatchObject({ ...snapshot(), server: false, asOf });
    const campaigns = [{ name: 'demo', status: 'was running', startedAt, asOf }];
    expect(await json('status')).toEqual({ server: false, campaigns });
  });

  it('status says after which stage one stopped, from either file', async () => {
    await writeStatus({ home, snapshot: snapshot({ ...completed, stage: 'rollouts', stoppedAfter: 'rollouts' }) });
    expect(await said('status', 'demo')).toMatch(/^demo · seed 1 · stopped after rollouts 3 min 41 s\n/);
    writeReport('other', { status: 'stopped_at_stage', stage: 'selection' });
    expect(await said('status')).toMatch(/^other +stopped after selection /m);
    expect(await json('status', 'other')).toMatchObject({ stoppedAfter: 'selection' });
  });

  it('status shows one that completed, from either file, and its report', async () => {
    await writeStatus({ home, snapshot: snapshot(completed) });
    const file = writeReport('demo');
    const text = await said('status', 'demo');
    expect(text).toMatch(/^demo · seed 1 · completed 3 min 41 s\n/);
    expect(text).toContain(`report ${file}`);
    expect(text).toContain('`campaign report demo` shows its report');
    rmSync(join(home, 'demo', 'status.json'));
    const from = await said('status', 'demo');
    expect(from).toMatch(/^demo · completed \d/);
    expect(from).toContain('✓ evaluation');
    expect(from).toContain(`report ${file}`);
    await expect(said('approvals', 'demo')).rejects.toThrow('does not run (completed): nothing of it waits');
    await expect(said('approve', 'other')).rejects.toThrow(/^there is no campaign other in .*; known: demo$/);
  });

  it('status without a name lists what the files tell; a home without any says so', async () => {
    expect(await said('status')).toBe(`no campaigns in ${home} yet; start one with \`campaign run FILE\``);
    await writeStatus({ home, snapshot: snapshot({ name: 'late', paused: true, startedAt: Date.now() }) });
    writeReport('early');
    mkdirSync(join(home, 'logs'));
    const [late, early, away] = (await said('status')).split('\n');
    expect(late).toMatch(/^late {3}was paused {2}started 20.* {2}as of 20/);
    expect(early).toMatch(/^early {2}completed {3}started 20.* {2}as of 20/);
    expect(away).toContain('no Temporal server of this home is running');
  });

  it('watch shows the last frame of one that failed and ends; report says where it stands and where to look', async () => {
    const failure = 'no train tasks';
    await writeStatus({ home, snapshot: snapshot({ ...completed, status: 'FAILED', failure }) });
    const lines = (await said('watch')).split('\n').map((line) => JSON.parse(line) as Record<string, string>);
    expect(lines[0]).toMatchObject({ campaign: 'demo', status: 'failed', detail: failure });
    expect(lines.at(-1)?.['detail']).toMatch(/as of .*goes on from what is done/);
    for (const args of [['report', 'demo'], ['report']]) {
      const text = await said(...args);
      expect(text).toMatch(/^no report of demo in .*: one is written when a campaign completes/);
      expect(text).toMatch(/demo · seed 1 · failed 3 min 41 s[\s\S]*why: no train tasks/);
      expect(text).toContain(join(home, 'logs'));
    }
    expect(await json('report', 'demo')).toMatchObject({ status: 'FAILED', failure });
  });

  it.each(['status', 'watch', 'report'])('%s of an unknown name is an error that lists the known ones', async (one) => {
    await expect(said(one, 'dmeo')).rejects.toThrow(`there is no campaign dmeo in ${home}; none is known yet`);
    await writeStatus({ home, snapshot: snapshot() });
    writeReport('other');
    await expect(said(one, 'dmeo')).rejects.toThrow(/; known: (demo, other|other, demo)$/);
  });

  it('a damaged report.json is named with the remedy, and hides no other campaign', async () => {
    const file = writeReport('demo');
    writeFileSync(file, '{"campaign": {"name": "demo"');
    writeReport('other');
    for (const command of ['status', 'report'])
      await expect(said(command, 'demo')).rejects.toThrow(
        new RegExp(`^${file} is no JSON, or cut off .*; the same \`campaign run FILE\` writes it anew$`),
      );
    expect(await said('status')).toMatch(/^other {2}completed/);
    // What status.json tells does not need the report.
    await writeStatus({ home, snapshot: snapshot() });
    expect(await said('status', 'demo')).toMatch(/^demo · seed 1 · was running/);
  });

  it('the address of a server that is gone is no error', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    const temporalAddress = `127.0.0.1:${await freePort()}`;
    const server = await announcedServer(home);
    server.isAt(temporalAddress);
    // It hangs, or was killed a moment ago.
    expect(await said('status', 'demo')).toMatch(/^demo · seed 1 · was running/);
    await server.kill();
    expect(await said('status', 'demo')).toMatch(/^demo · seed 1 · was running/);
    // Somebody else may listen there by now.
    await expect(said('pause', 'demo')).rejects.toThrow(
      `no Temporal server of ${home} is running; start it with \`campaign serve\``,
    );
    const named = said('--temporal-address', temporalAddress, 'status');
    await expect(named).rejects.toThrow(`no Temporal server answers at ${temporalAddress}`);
  }, 30_000);
});
