/** Where campaigns stand by the files of their home, no server being there to ask. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/cli/ports';
import { readStatus, type Snapshot, writeStatus } from '../../../src/cli/watch/snapshot';
import { renderReport } from '../../../src/report/render';
import { announcedServer } from '../../support/announced-server';
import { campaignCommand } from '../../support/campaign-command';
import { reportFixture } from '../../support/report-fixture';

let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'standing-'))));
afterEach(() => rmSync(home, { recursive: true }));

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

  it.each(['', '{"at": 1', '{"at": 1, "snapshot": {"name": "demo"}}'])('that is damaged counts as none: %s', (text) => {
    mkdirSync(join(home, 'demo'));
    writeFileSync(join(home, 'demo', 'status.json'), text);
    expect(readStatus({ home, name: 'demo' })).toBeUndefined();
  });

  it('of which a letter was changed counts as none', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    const file = join(home, 'demo', 'status.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace('"stages"', '"stbges"'));
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
  it('status shows the last known state of a campaign that was running', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    const { text, code } = await campaignCommand(home, 'status', 'demo');
    expect(code).toBe(0);
    expect(text).toMatch(/^demo · seed 1 · was running /);
    expect(text).toContain('✓ rollouts      340 train tasks, base model');
    expect(text).toContain('pass 2 30/400');
    expect(text).toMatch(
      /as of 20\S+ \S+ UTC; no Temporal server of this home is running: `campaign run FILE` goes on from what is done, `campaign serve` brings the UI back$/,
    );
  });

  it('status says after which stage one stopped, from either file', async () => {
    await writeStatus({ home, snapshot: snapshot({ ...completed, stage: 'rollouts', stoppedAfter: 'rollouts' }) });
    expect((await campaignCommand(home, 'status', 'demo')).text).toMatch(
      /^demo · seed 1 · stopped after rollouts 3 min 41 s\n/,
    );
    writeReport('other', { status: 'stopped_at_stage', stage: 'selection' });
    expect((await campaignCommand(home, 'status')).text).toMatch(/^other +stopped after selection /m);
    expect(JSON.parse((await campaignCommand(home, 'status', 'other', '--json')).text)).toMatchObject({
      stoppedAfter: 'selection',
    });
  });

  it('status shows one that completed, from either file, and its report', async () => {
    await writeStatus({ home, snapshot: snapshot(completed) });
    const file = writeReport('demo');
    const { text } = await campaignCommand(home, 'status', 'demo');
    expect(text).toMatch(/^demo · seed 1 · completed 3 min 41 s\n/);
    expect(text).toContain(`report ${file}`);
    expect(text).toContain('`campaign report demo` shows its report');
    rmSync(join(home, 'demo', 'status.json'));
    const from = (await campaignCommand(home, 'status', 'demo')).text;
    expect(from).toMatch(/^demo · completed \d/);
    expect(from).toContain('✓ evaluation');
    expect(from).toContain(`report ${file}`);
  });

  it('status --json is one object with the same facts', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    expect(JSON.parse((await campaignCommand(home, 'status', 'demo', '--json')).text)).toMatchObject({
      ...snapshot(),
      server: false,
      asOf: expect.any(Number),
    });
    expect(JSON.parse((await campaignCommand(home, 'status', '--json')).text)).toEqual({
      server: false,
      campaigns: [{ name: 'demo', status: 'was running', startedAt, asOf: expect.any(Number) }],
    });
  });

  it('status without a name lists what the files tell; a home without any says so', async () => {
    expect(await campaignCommand(home, 'status')).toEqual({
      text: `no campaigns in ${home} yet; start one with \`campaign run FILE\``,
      code: 0,
    });
    await writeStatus({ home, snapshot: snapshot({ name: 'late', paused: true, startedAt: Date.now() }) });
    writeReport('early');
    mkdirSync(join(home, 'logs'));
    const [late, early, away] = (await campaignCommand(home, 'status')).text.split('\n');
    expect(late).toMatch(/^late {3}was paused {2}started 20.* {2}as of 20/);
    expect(early).toMatch(/^early {2}completed {3}started 20.* {2}as of 20/);
    expect(away).toContain('no Temporal server of this home is running');
  });

  it('watch shows the last frame and ends', async () => {
    await writeStatus({ home, snapshot: snapshot({ ...completed, status: 'FAILED', failure: 'no train tasks' }) });
    const { text, code } = await campaignCommand(home, 'watch');
    expect(code).toBe(0);
    const lines = text.split('\n').map((line) => JSON.parse(line) as Record<string, string>);
    expect(lines[0]).toMatchObject({ campaign: 'demo', status: 'failed', detail: 'no train tasks' });
    expect(lines.at(-1)?.['detail']).toMatch(/as of .*goes on from what is done/);
  });

  it('report of one without a report says where it stands and where to look', async () => {
    const failure = 'no train tasks';
    await writeStatus({ home, snapshot: snapshot({ ...completed, status: 'FAILED', failure }) });
    for (const args of [['report', 'demo'], ['report']]) {
      const { text, code } = await campaignCommand(home, ...args);
      expect(code).toBe(0);
      expect(text).toMatch(/^no report of demo in .*: one is written when a campaign completes/);
      expect(text).toMatch(/demo · seed 1 · failed 3 min 41 s[\s\S]*why: no train tasks/);
      expect(text).toContain(join(home, 'logs'));
    }
    expect(JSON.parse((await campaignCommand(home, 'report', 'demo', '--json')).text)).toMatchObject({
      status: 'FAILED',
      failure,
    });
  });

  it('an unknown name is an error that lists the known ones', async () => {
    for (const command of ['status', 'watch', 'report'])
      await expect(campaignCommand(home, command, 'dmeo')).rejects.toThrow(
        `there is no campaign dmeo in ${home}; none is known yet`,
      );
    await writeStatus({ home, snapshot: snapshot() });
    writeReport('other');
    for (const command of ['status', 'watch', 'report'])
      await expect(campaignCommand(home, command, 'dmeo')).rejects.toThrow(/; known: (demo, other|other, demo)$/);
  });

  it('a damaged report.json is named with the remedy, and hides no other campaign', async () => {
    const file = writeReport('demo');
    writeFileSync(file, '{"campaign": {"name": "demo"');
    writeReport('other');
    for (const command of ['status', 'report'])
      await expect(campaignCommand(home, command, 'demo')).rejects.toThrow(
        new RegExp(`^${file} is no JSON, or cut off .*; the same \`campaign run FILE\` writes it anew$`),
      );
    expect((await campaignCommand(home, 'status')).text).toMatch(/^other {2}completed/);
    // What status.json tells does not need the report.
    await writeStatus({ home, snapshot: snapshot() });
    expect((await campaignCommand(home, 'status', 'demo')).text).toMatch(/^demo · seed 1 · was running/);
  });

  it('the address of a server that is gone is no error', async () => {
    await writeStatus({ home, snapshot: snapshot() });
    const temporalAddress = `127.0.0.1:${await freePort()}`;
    const server = await announcedServer(home);
    server.isAt(temporalAddress);
    // It hangs, or was killed a moment ago.
    expect((await campaignCommand(home, 'status', 'demo')).text).toMatch(/^demo · seed 1 · was running/);
    await server.kill();
    expect((await campaignCommand(home, 'status', 'demo')).text).toMatch(/^demo · seed 1 · was running/);
    // Somebody else may listen there by now.
    await expect(campaignCommand(home, 'pause', 'demo')).rejects.toThrow(`no Temporal server of ${home} is running`);
    await expect(campaignCommand(home, '--temporal-address', temporalAddress, 'status')).rejects.toThrow(
      `no Temporal server answers at ${temporalAddress}`,
    );
  }, 30_000);
});
