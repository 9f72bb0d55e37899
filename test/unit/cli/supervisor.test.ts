/** The supervisor with real child processes: tiny scripts that behave as services do. */
import { ApplicationFailure } from '@temporalio/common';
import { spawn, spawnSync } from 'node:child_process';
import fs, { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import { homeAt, type Home } from '../../../src/cli/project';
import { decide } from '../../../src/cli/run/campaign';
import {
  acquireLock,
  endOrphans,
  isRunning,
  liveHolder,
  readRunState,
  recordOf,
  startTime,
  waitUntil,
} from '../../../src/cli/run/processes';
import { HomeDisk, supervised, Supervisor } from '../../../src/cli/run/supervisor';
import type { RestartPolicy, ServiceSpec } from '../../../src/cli/run/service';
import { lostReport } from '../../../src/cli/reports';
import { failureIn } from '../../../src/cli/temporal';

jest.setTimeout(60_000);

const homes: Home[] = [];
function newHome(): Home {
  const home = homeAt(mkdtempSync(join(tmpdir(), 'supervisor-')));
  homes.push(home);
  return home;
}
afterAll(() => homes.forEach(({ root }) => rmSync(root, { recursive: true })));
const quick: RestartPolicy = {
  minUptimeSeconds: 20,
  maxCrashes: 3,
  maxKills: 6,
  initialDelayMs: 10,
  maxDelayMs: 20,
  killDelayMs: 10,
};

/** A service that is one line of JavaScript; it is ready when it prints so. */
const service = (name: string, script: string): ServiceSpec => ({
  name,
  command: process.execPath,
  args: ['-e', script],
  cwd: tmpdir(),
  env: process.env,
  isReady: (output) => output.includes('ready'),
  readySeconds: 20,
  graceSeconds: 5,
});
const steady = "console.log('ready'); process.stdin.resume(); process.stdin.on('end', () => process.exit());";

const supervisors: Supervisor[] = [];
function supervise(home: Home, restarts: string[] = [], notes: string[] = []): Supervisor {
  const disk = new HomeDisk(home.root, (text) => notes.push(text));
  const supervisor = new Supervisor({ home, disk, onRestart: ({ cause }) => restarts.push(cause), policy: quick });
  supervisors.push(supervisor);
  return supervisor;
}
afterEach(async () => {
  await Promise.all(supervisors.splice(0).map((supervisor) => supervisor.stop()));
});

const restarted = (restarts: string[], times: number) => waitUntil(() => restarts.length >= times, 30);
const pidOf = (supervisor: Supervisor, name: string) => supervisor.processes().find((one) => one.name === name)?.pid;

describe('a supervised service', () => {
  it('is started again after a kill -9', async () => {
    const restarts: string[] = [];
    const supervisor = supervise(newHome(), restarts);
    await supervisor.start([service('worker', steady)]);
    const first = pidOf(supervisor, 'worker') ?? 0;
    process.kill(first, 'SIGKILL');
    expect(await waitUntil(() => ![undefined, first].includes(pidOf(supervisor, 'worker')), 20)).toBe(true);
    expect(restarts).toEqual(['ended by SIGKILL']);
  });

  /** A service that does `script` at its first `times` starts, where `ready` makes it ready first; then it is steady. */
  const unsteady = ({ home, times, script }: { home: Home; times: number; script: string }) =>
    service(
      'worker',
      `const fs = require('fs'); const ready = () => console.log('ready');
      const file = ${JSON.stringify(join(home.root, 'starts'))}; fs.appendFileSync(file, '.');
      if (fs.readFileSync(file).length <= ${times}) { ${script} } else { ${steady} }`,
    );
  const end = (signal: string) => `setTimeout(() => process.kill(process.pid, '${signal}'), 250)`;

  it.each(['SIGKILL', 'SIGTERM'])('that is ended by %s before it is ready is started again', async (signal) => {
    const home = newHome();
    const restarts: string[] = [];
    const supervisor = supervise(home, restarts);
    await supervisor.start([unsteady({ home, times: 2, script: end(signal) })]);
    expect(restarts).toEqual(Array(2).fill(`ended by ${signal}`));
    expect(pidOf(supervisor, 'worker')).toBeDefined();
  });

  it('that is killed before it is ready, again and again, does not start', async () => {
    const home = newHome();
    const starting = supervise(home).start([unsteady({ home, times: 99, script: end('SIGKILL') })]);
    await expect(starting).rejects.toThrow('worker died 6 times in a row (ended by SIGKILL); the end of ');
  });

  it('that is killed or asked to end is no service that crashes', async () => {
    const home = newHome();
    const restarts: string[] = [];
    const supervisor = supervise(home, restarts);
    // As many crashes and as many kills as are allowed, by turns.
    const script = `ready(); const n = fs.readFileSync(file).length;
      setTimeout(() => n % 3 === 0 ? process.exit(3) : n % 3 === 1 ? process.exit(0) : process.kill(process.pid, 'SIGKILL'), 200);`;
    await supervisor.start([unsteady({ home, times: 7, script })]);
    const ended = Promise.race([supervisor.failure.catch((error: UserError) => error.message), restarted(restarts, 7)]);
    expect(await ended).toBe(true);
    expect(restarts.filter((cause) => cause === 'exit code 3')).toHaveLength(2);
  });

  it.each(['SIGSEGV', 'SIGABRT', 'SIGBUS'])('that ends itself by %s crashes', async (signal) => {
    const home = newHome();
    const supervisor = supervise(home);
    await supervisor.start([unsteady({ home, times: 99, script: `ready(); ${end(signal)}` })]);
    await expect(supervisor.failure).rejects.toThrow(`worker died 3 times in a row (ended by ${signal})`);
  });

  it('that keeps dying is given up, with the end of its log', async () => {
    const home = newHome();
    const marker = join(home.root, 'was-here');
    // Ready the first time, broken ever after.
    const script = `const fs = require('fs');
      if (fs.existsSync(${JSON.stringify(marker)})) { console.error('the disk is full'); process.exit(3); }
      fs.writeFileSync(${JSON.stringify(marker)}, ''); console.log('ready'); setTimeout(() => process.exit(3), 300);`;
    const supervisor = supervise(home);
    await supervisor.start([service('worker', script)]);
    const error = await supervisor.failure.catch((thrown: unknown) => thrown as UserError);
    expect(error.message).toMatch(/^worker died 3 times in a row \(exit code 3\); the end of .*worker\.log says:$/);
    expect(error.evidence).toContain('the disk is full');
  });

  it('that does not start fails at once, with the end of its log', async () => {
    const home = newHome();
    const supervisor = supervise(home);
    const error = await supervisor
      .start([service('server', "console.error('no model there'); process.exit(1)")])
      .catch((thrown: unknown) => thrown as UserError);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ evidence: ['no model there'], portTaken: false });
    expect(readRunState(home).processes).toEqual([]);
  });

  it('that does not start takes those with it that were started beside it', async () => {
    const home = newHome();
    const supervisor = supervise(home);
    const broken = "setTimeout(() => { console.error('bind: address already in use'); process.exit(1); }, 500)";
    const starting = supervisor.start([service('worker', steady), service('server', broken)]);
    await expect(starting).rejects.toMatchObject({ portTaken: true });
    expect(supervisor.processes()).toEqual([]);
    // It is not stopped for good: the same services may be started again.
    await supervisor.start([service('worker', steady)]);
    expect(supervisor.processes()).toHaveLength(1);
  });

  it('whose program is not there is named', async () => {
    const supervisor = supervise(newHome());
    const spec = { ...service('server', ''), command: '/no/such/program' };
    await expect(supervisor.start([spec])).rejects.toThrow(/server did not start \(spawn \/no\/such\/program ENOENT\)/);
  });

  it('that ignores SIGTERM is killed after its grace time, with what it started', async () => {
    const home = newHome();
    const file = join(home.root, 'grandchild');
    const script = `process.on('SIGTERM', () => {});
      const child = require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
      require('fs').writeFileSync(${JSON.stringify(file)}, String(child.pid)); console.log('ready'); setInterval(() => {}, 1000);`;
    const supervisor = supervise(home);
    await supervisor.start([{ ...service('worker', script), graceSeconds: 0.2 }]);
    const grandchild = Number(readFileSync(file, 'utf8'));
    expect(startTime(grandchild)).toBeDefined();
    await supervisor.stop();
    expect(await waitUntil(() => startTime(grandchild) === undefined, 10)).toBe(true);
  });

  it('that is gone for good, with all it started, is never signalled again', async () => {
    const supervisor = supervise(newHome());
    await supervisor.start([service('worker', "console.log('ready'); setTimeout(() => process.exit(3), 300)")]);
    await supervisor.failure.catch(() => undefined);
    // Somebody else has the number by now, as far as anybody can tell: every signal to it would arrive.
    const signalled: number[] = [];
    const kill = jest.spyOn(process, 'kill').mockImplementation((pid) => {
      signalled.push(pid);
      return true;
    });
    try {
      supervisor.kill();
      await supervisor.stop();
      expect(signalled).toEqual([]);
    } finally {
      kill.mockRestore();
    }
  });

  it('ends when its supervisor is killed: its stdin ends', async () => {
    const child = spawn(process.execPath, ['-e', steady], { stdio: ['pipe', 'ignore', 'ignore'] });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.stdin.end();
    expect(await ended).toBe(0);
  });
});

describe('a supervisor', () => {
  it('stops services in the reverse order of their start', async () => {
    const home = newHome();
    const log = join(home.root, 'order');
    // Ready only once the signal is heard.
    const script = (name: string) => `process.on('SIGTERM', () => {
        require('fs').appendFileSync(${JSON.stringify(log)}, '${name} '); process.exit(); });
      setInterval(() => {}, 1000); console.log('ready');`;
    const supervisor = supervise(home);
    await supervisor.start([service('server', script('server'))]);
    await supervisor.start([service('worker', script('worker'))]);
    await supervisor.stop();
    expect(readFileSync(log, 'utf8')).toBe('worker server ');
  });

  it('that is stopped starts nothing more', async () => {
    const home = newHome();
    const supervisor = supervise(home);
    await supervisor.stop();
    await expect(supervisor.start([service('worker', steady)])).rejects.toThrow(
      'stopped before everything was started',
    );
    expect(existsSync(join(home.logs, 'worker.log'))).toBe(false);
  });

  it('ends what a killed one left, and nothing else', async () => {
    const home = newHome();
    const killed = supervise(home);
    const stubborn = "console.log('ready'); setInterval(() => {}, 1000)";
    await killed.start([service('temporal', stubborn)]);
    const [orphan] = readRunState(home).processes;
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true });
    try {
      // A number that was ours once and is somebody else's now has another start time.
      const reused = { ...recordOf({ name: 'reused', pid: stranger.pid ?? 0 })!, started: 'earlier' };
      expect(await endOrphans([orphan ?? reused, reused], 5)).toEqual(['temporal']);
      expect(orphan && isRunning(orphan)).toBe(false);
      expect(startTime(stranger.pid ?? 0)).toBeDefined();
    } finally {
      stranger.kill('SIGKILL');
    }
  });

  /** Leaves a process behind in its group, without its leader; says which. */
  const leaving = (file: string) =>
    `const left = require('child_process').spawn('sleep', ['60'], { stdio: 'ignore' });
    require('fs').writeFileSync(${JSON.stringify(file)}, String(left.pid));`;

  it('ends what a killed service had started', async () => {
    const home = newHome();
    const file = join(home.root, 'left');
    const killed = supervise(home);
    await killed.start([service('worker', `${leaving(file)} console.log('ready'); setInterval(() => {}, 1000);`)]);
    const records = readRunState(home).processes;
    const left = Number(readFileSync(file, 'utf8'));
    process.kill(records[0]!.pid, 'SIGKILL');
    expect(await waitUntil(() => startTime(records[0]!.pid) === undefined, 10)).toBe(true);
    expect(startTime(left)).toBeDefined();
    expect(await endOrphans(records, 5)).toEqual(['worker']);
    expect(await waitUntil(() => startTime(left) === undefined, 5)).toBe(true);
  });

  it("leaves a stranger's group alone that has the number of ours and no leader", async () => {
    const file = join(newHome().root, 'left');
    const leader = spawn(process.execPath, ['-e', `${leaving(file)} process.exit();`], { detached: true });
    const record = recordOf({ name: 'worker', pid: leader.pid ?? 0 })!;
    await new Promise((resolve) => leader.once('exit', resolve));
    const left = Number(readFileSync(file, 'utf8'));
    try {
      expect(await endOrphans([{ ...record, started: 'earlier' }], 1)).toEqual([]);
      expect(startTime(left)).toBeDefined();
    } finally {
      process.kill(left, 'SIGKILL');
    }
  });

  it.each([
    ['boot', { boot: 'an earlier one' }],
    ['host', { host: 'another', boot: 'its own' }],
    ['container', { pidNamespace: '1' }],
  ])('leaves alone what was written down on another %s', async (_what, other) => {
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true });
    try {
      // Its pid and its start time happen to be those.
      const record = recordOf({ name: 'worker', pid: stranger.pid ?? 0 })!;
      const recorded = { ...record, place: { ...record.place, ...other } };
      expect(await endOrphans([recorded], 1)).toEqual([]);
      expect(isRunning(recorded)).toBe(false);
      expect(startTime(stranger.pid ?? 0)).toBeDefined();
    } finally {
      stranger.kill('SIGKILL');
    }
  });
});

describe('a full disk', () => {
  const noRoom = () => {
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  };
  afterEach(() => jest.restoreAllMocks());

  it('neither ends a supervisor that writes down what it runs, nor stays unrecorded', async () => {
    const home = newHome();
    const restarts: string[] = [];
    const notes: string[] = [];
    const supervisor = supervise(home, restarts, notes);
    await supervisor.start([service('worker', steady)]);
    const first = pidOf(supervisor, 'worker') ?? 0;
    jest.spyOn(fs, 'writeFileSync').mockImplementation(noRoom);
    process.kill(first, 'SIGKILL');
    expect(await waitUntil(() => ![undefined, first].includes(pidOf(supervisor, 'worker')), 20)).toBe(true);
    expect(readRunState(home).processes).toMatchObject([{ pid: first }]);
    expect(notes).toEqual([expect.stringContaining(`the disk of ${home.root} is full: free at least 1 GiB`)]);
    jest.restoreAllMocks();
    const second = pidOf(supervisor, 'worker');
    expect(await waitUntil(() => readRunState(home).processes[0]?.pid === second, 20)).toBe(true);
  });

  it('is waited for by a service that can do nothing without room', async () => {
    const home = newHome();
    const restarts: string[] = [];
    const notes: string[] = [];
    const supervisor = supervise(home, restarts, notes);
    const statfs = jest.spyOn(fs, 'statfsSync').mockReturnValue({ bavail: 3, bsize: 4096 } as fs.StatsFs);
    const room = join(home.root, 'room');
    const script = `console.log('ready'); if (!require('fs').existsSync(${JSON.stringify(room)})) process.exit(1); ${steady}`;
    writeFileSync(room, '');
    await supervisor.start([service('server', script)]);
    rmSync(room);
    process.kill(pidOf(supervisor, 'server') ?? 0, 'SIGKILL');
    // More often than a crash may happen.
    expect(await restarted(restarts, 6)).toBe(true);
    writeFileSync(room, '');
    statfs.mockRestore();
    expect(await waitUntil(() => pidOf(supervisor, 'server') !== undefined, 20)).toBe(true);
    expect(notes).toHaveLength(1);
  });
});

describe('the lock of a home', () => {
  it('is held by one that lives', async () => {
    const home = newHome();
    const holder = spawn(process.execPath, ['-e', steady], { stdio: ['pipe', 'ignore', 'ignore'] });
    const pid = holder.pid ?? 0;
    writeFileSync(home.lock, JSON.stringify(recordOf({ name: 'supervisor', pid })));
    expect(() => acquireLock(home)).toThrow(`in use by another \`campaign run\` or \`campaign serve\` (pid ${pid})`);
    expect(liveHolder(home)?.pid).toBe(pid);
    const ended = new Promise((resolve) => holder.once('exit', resolve));
    holder.kill('SIGKILL');
    await ended;
    // Its holder is dead: it is taken over.
    const release = acquireLock(home);
    expect(liveHolder(home)?.pid).toBe(process.pid);
    release();
    expect(existsSync(home.lock)).toBe(false);
  });

  it('that is torn or of another time is taken over', () => {
    const home = newHome();
    writeFileSync(home.lock, '{"pid":');
    acquireLock(home)();
    const me = recordOf({ name: 'supervisor', pid: process.pid })!;
    for (const dead of [
      { ...me, started: 'earlier' },
      { ...me, place: { ...me.place, boot: 'before the reboot' } },
    ]) {
      writeFileSync(home.lock, JSON.stringify(dead));
      acquireLock(home)();
    }
    for (const text of ['{}', 'null', '[1]', '']) {
      writeFileSync(home.lock, text);
      acquireLock(home)();
    }
    expect(existsSync(home.lock)).toBe(false);
  });
});

describe('the lock of a home that others share', () => {
  it.each([
    ['on another machine', { host: 'gpu-7', boot: 'its own' }, 'gpu-7'],
    ['in another container', { pidNamespace: '1' }, hostname()],
  ])('is not taken from a holder %s, of whom nothing is known', (_where, other, host) => {
    const home = newHome();
    // No process of ours has its number.
    const holder = { ...recordOf({ name: 'supervisor', pid: process.pid })!, pid: 2 ** 30, started: '1' };
    const text = JSON.stringify({ ...holder, place: { ...holder.place, ...other } });
    writeFileSync(home.lock, text);
    expect(() => acquireLock(home)).toThrow(`${home.lock} names host ${host} (pid ${2 ** 30}); end it there, or`);
    expect(readFileSync(home.lock, 'utf8')).toBe(text);
    expect(readdirSync(home.root)).toEqual(['run.lock']);
  });

  it('is not given back for somebody else', () => {
    const home = newHome();
    const release = acquireLock(home);
    const me = recordOf({ name: 'supervisor', pid: process.pid })!;
    writeFileSync(home.lock, JSON.stringify({ ...me, place: { ...me.place, host: 'gpu-7' } }));
    release();
    expect(existsSync(home.lock)).toBe(true);
  });
});

describe('a record of what runs that is damaged', () => {
  it.each(['', '{"processes":', '{"processes":[{"pid":"x"}]}'])(
    '(%s) stops no run, and hides no server',
    async (text) => {
      const home = newHome();
      const run = (database: string) =>
        spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', '--db-filename', database], {
          detached: true,
          stdio: 'ignore',
        });
      const [server, another] = [run(home.temporalDatabase), run(`${home.temporalDatabase}2`)];
      const ended = new Promise((resolve) => server.once('exit', resolve));
      try {
        writeFileSync(home.state, text);
        expect(await supervise(home).endOrphans()).toEqual(['temporal']);
        await ended;
        expect(startTime(another.pid ?? 0)).toBeDefined();
        expect(readRunState(home)).toEqual({ processes: [] });
        expect(JSON.parse(readFileSync(home.state, 'utf8'))).toEqual({ processes: [] });
      } finally {
        for (const child of [server, another]) child.kill('SIGKILL');
      }
    },
  );
});

describe('a supervised command', () => {
  it('that has failed ends what waits for its end, and gives the home back', async () => {
    const home = newHome();
    let ended = false;
    const output = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const running = supervised({
      options: { home: home.root },
      work: ({ supervisor, interruption }) =>
        new Promise((resolve) => {
          interruption.signal.addEventListener('abort', () => {
            ended = true;
            resolve(0);
          });
          supervisor.fail(new UserError('the database is damaged'));
        }),
    });
    await expect(running).rejects.toThrow('the database is damaged');
    output.mockRestore();
    expect({ ended, locked: existsSync(home.lock) }).toEqual({ ended: true, locked: false });
  });

  it('whose reader has gone stops its services in order, and gives the home back', () => {
    const home = newHome();
    const sources = resolve(__dirname, '../../../src/cli');
    const spec = service('server', steady);
    const script = `const { main } = require('${sources}/main.ts');
      const { supervised } = require('${sources}/run/supervisor.ts');
      const work = async ({ output, supervisor, interruption }) => {
        await supervisor.start([{ ...${JSON.stringify(spec)}, isReady: (output) => output.includes('ready') }]);
        const notes = setInterval(() => output.note('services', 'more'), 20);
        await interruption.first;
        clearInterval(notes);
        return 130;
      };
      void main(['--help'])
        .then(() => supervised({ options: { home: ${JSON.stringify(home.root)} }, work }))
        .then((code) => process.stderr.write(\`code \${code}\`));`;
    const node = [process.execPath, '-r', resolve(__dirname, '../../support/register.cjs'), '-e', script];
    const { stderr } = spawnSync('sh', ['-c', '"$@" | head -c 1', 'sh', ...node], { encoding: 'utf8' });
    expect(stderr).toBe('code 130');
    expect({ state: readRunState(home), locked: existsSync(home.lock) }).toEqual({
      state: { processes: [] },
      locked: false,
    });
  });

  it('removes what killed processes left in the store', async () => {
    const home = newHome();
    const dead = spawn(process.execPath, ['-e', '']);
    await new Promise((resolve) => dead.once('exit', resolve));
    const aside = join(home.root, 'artifacts', 'aside');
    mkdirSync(aside, { recursive: true });
    writeFileSync(join(aside, `${hostname()}-${dead.pid}-0123456789abcdef`), 'half');
    const output = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    expect(await supervised({ options: { home: home.root }, work: () => Promise.resolve(0) })).toBe(0);
    const said = output.mock.calls.map(([text]) => String(text)).join('');
    output.mockRestore();
    expect(said).toContain('removed 1 unfinished file');
    expect(readdirSync(aside)).toEqual([]);
  });
});

describe('the report of a campaign that has ended', () => {
  it.each(['{"campaign":', '{}'])('that is damaged (%s) is named with the fix', (text) => {
    const home = newHome();
    const file = join(home.root, 'demo', 'report.json');
    expect(lostReport({ home, name: 'demo' })?.message).toContain(`the report ${file} is missing; if campaign demo`);
    mkdirSync(dirname(file));
    writeFileSync(file, text);
    expect(lostReport({ home, name: 'demo' })?.message).toMatch(
      /^the report .*report\.json is damaged \(.+\); the same `campaign run` writes it anew$/,
    );
  });
});

describe('why a campaign failed', () => {
  const lost = ApplicationFailure.nonRetryable('sha256 of objects/ab is not ab12', 'ArtifactDamaged', undefined);
  const chain = (cause: Error) =>
    new Error('child workflow failed', { cause: new Error('activity failed', { cause }) });
  it('is its innermost cause, and whether an artifact was damaged', () => {
    expect(failureIn(chain(new Error('no model')))).toEqual({ reason: 'no model' });
    expect(failureIn(chain(lost))).toEqual({ reason: lost.message, damaged: lost.message });
    const wrapped = ApplicationFailure.create({
      message: 'the adapter is damaged',
      type: 'ArtifactDamaged',
      cause: new Error('EIO'),
    });
    expect(failureIn(chain(wrapped))).toEqual({ reason: 'EIO', damaged: 'the adapter is damaged' });
  });
});

describe('a name that Temporal knows', () => {
  const state = { runId: 'r', taskQueue: 'control-s', configDigest: 'a', terms: 't' };
  const configDigests = { rollouts: 'r', evaluation: 'a' };
  const about = { name: 'demo', store: 's', configDigests, terms: 't' };
  it.each([
    ['is new', undefined, undefined, 'start'],
    ['is running', { ...state, status: 'RUNNING' }, undefined, 'attach'],
    ['has completed', { ...state, status: 'COMPLETED' }, undefined, 'show'],
    [
      'has stopped at a stage, and more is asked for',
      { ...state, status: 'COMPLETED', until: 'rollouts', configDigest: 'r' },
      undefined,
      'start',
    ],
    [
      'has stopped at the stage that is asked for',
      { ...state, status: 'COMPLETED', until: 'rollouts', configDigest: 'r' },
      'rollouts',
      'show',
    ],
    ['has failed', { ...state, status: 'FAILED' }, undefined, 'start'],
    ['was terminated', { ...state, status: 'TERMINATED' }, undefined, 'start'],
    ['has completed, and may spend more now', { ...state, status: 'COMPLETED', terms: 's' }, undefined, 'start'],
    ['is running, and may spend more later', { ...state, status: 'RUNNING', terms: 's' }, undefined, 'attach'],
  ] as const)('%s', (_what, known, until, decision) => {
    expect(decide({ ...about, state: known, until })).toBe(decision);
  });

  it('with another configuration of what it has used is refused with the fix', () => {
    const early = { ...state, status: 'COMPLETED', until: 'rollouts', configDigest: 'q' } as const;
    expect(() => decide({ ...about, state: early })).toThrow('with another configuration');
    expect(() => decide({ ...about, state: { ...state, status: 'FAILED', configDigest: 'b' } })).toThrow(
      'was run with another configuration; give this one its own name with --name, for example --name demo-2',
    );
  });

  it.each(['RUNNING', 'COMPLETED', 'FAILED'] as const)('of another home (%s) is refused with the fixes', (status) => {
    expect(() => decide({ ...about, state: { ...state, status, taskQueue: 'control-other' } })).toThrow(
      /(is running|was run) on this Temporal server from another home \(task queue control-other\); give this one its own name with --name, for example --name demo-2, name that home with --home, or/,
    );
  });
});
