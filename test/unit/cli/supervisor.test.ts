/** The supervisor with real child processes: tiny scripts that behave as services do. */
import { spawn, spawnSync } from 'node:child_process';
import fs, { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import type { Home } from '../../../src/cli/project';
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
import { Deaths, endingOf, restartPolicy } from '../../../src/cli/run/service';
import { supervised } from '../../../src/cli/run/supervisor';
import { atEnd, newHome, quick, service, steady, supervise } from '../../support/supervised';

jest.setTimeout(60_000);
afterEach(() => jest.restoreAllMocks());

/** A process of nobody's, until the end of the test. */
function stranger(args: string[] = []): number {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', ...args], {
    detached: true,
    stdio: 'ignore',
  });
  atEnd(() => child.kill('SIGKILL'));
  return child.pid ?? 0;
}
const isGone = (pid: number) => waitUntil(() => startTime(pid) === undefined, 10);

describe('deaths in a row', () => {
  const room = { uptimeMs: 0, diskIsFull: () => false };
  const delays = (deaths: Deaths, times: number, ...of: Parameters<Deaths['next']>) =>
    Array.from({ length: times }, () => deaths.next(...of).delayMs);

  it.each([
    ['a signal of its own', endingOf(null, 'SIGSEGV'), 'crash'],
    ['another one', endingOf(null, 'SIGABRT'), 'crash'],
    ['an exit code', endingOf(3, null), 'crash'],
    ['that code of a worker that takes no more', endingOf(3, null, true), 'fault'],
    ['a kill', endingOf(null, 'SIGKILL'), 'kill'],
    ['a kill, as a shell tells it', endingOf(137, null), 'kill'],
    ['an end in order', endingOf(0, null), 'kill'],
  ])('%s', (_what, { death }, expected) => expect(death).toBe(expected));

  it('crashes are waited for longer and longer, and the fifth is the last; kills and crashes are counted apart', () => {
    const deaths = new Deaths(restartPolicy);
    expect(delays(deaths, 4, 'crash', room)).toEqual([500, 1000, 2000, 4000]);
    expect(delays(deaths, 39, 'kill', room)).toEqual(Array(39).fill(1000));
    expect(deaths.next('crash', room)).toEqual({ times: 5 });
    expect(deaths.next('kill', room)).toEqual({ times: 40 });
    // A good while of service forgets them.
    expect(deaths.next('crash', { ...room, uptimeMs: 20_000 })).toEqual({ times: 1, delayMs: 500 });
  });

  it('a full disk is waited for without end', () =>
    expect(delays(new Deaths(restartPolicy), 9, 'crash', { ...room, diskIsFull: () => true })).toEqual(
      Array(9).fill(8000),
    ));

  it('a worker that takes no more is started again after a minute, then later and later, and never given up', () => {
    const minutes = delays(new Deaths(restartPolicy), 8, 'fault', { ...room, uptimeMs: 30_000 });
    expect(minutes.map((ms) => ms! / 60_000)).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
  });
});

describe('a supervised service', () => {
  /** Does `script` at its first `times` starts; then it is steady. */
  const unsteady = ({ home, times, script }: { home: Home; times: number; script: string }) =>
    service(
      'worker',
      `const fs = require('fs'); const file = ${JSON.stringify(join(home.root, 'starts'))}; fs.appendFileSync(file, '.');
      if (fs.readFileSync(file).length <= ${times}) { ${script} } else { ${steady} }`,
    );

  it('is started again after a kill -9', async () => {
    const { supervisor, restarts, pid, isReplaced } = supervise();
    await supervisor.start([service('worker', steady)]);
    const first = pid() ?? 0;
    process.kill(first, 'SIGKILL');
    expect(await isReplaced(first)).toBe(true);
    expect(restarts).toEqual(['ended by SIGKILL']);
  });

  it('that is killed before it is ready is started again, but not without end', async () => {
    const script = "setTimeout(() => process.kill(process.pid, 'SIGKILL'), 250)";
    const { home, supervisor, restarts, pid } = supervise();
    await supervisor.start([unsteady({ home, times: 2, script })]);
    expect(restarts).toEqual(Array(2).fill('ended by SIGKILL'));
    expect(pid()).toBeDefined();
    const other = supervise();
    await expect(other.supervisor.start([unsteady({ home: other.home, times: 99, script })])).rejects.toThrow(
      'worker died 6 times in a row (ended by SIGKILL); the end of ',
    );
  });

  it('that keeps dying is given up, with the end of its log, and is never signalled again', async () => {
    const { home, supervisor } = supervise();
    const dying = "console.error('the disk is full'); process.exit(3)";
    const once = `if (fs.readFileSync(file).length > 1) { ${dying} } console.log('ready'); setTimeout(() => process.exit(3), 300);`;
    await supervisor.start([unsteady({ home, times: 99, script: once })]);
    const error = await supervisor.failure.catch((thrown: unknown) => thrown as UserError);
    expect(error.message).toMatch(/^worker died 3 times in a row \(exit code 3\); the end of .*worker\.log says:$/);
    expect(error.evidence).toContain('the disk is full');
    // Somebody else has the number by now, as far as anybody can tell: every signal to it would arrive.
    const kill = jest.spyOn(process, 'kill').mockReturnValue(true);
    supervisor.kill();
    await supervisor.stop();
    expect(kill).not.toHaveBeenCalled();
  });

  it.each([
    [
      'ends',
      "console.error('no model there'); process.exit(1)",
      /did not start \(exit code 1\)/,
      'no model there',
      false,
    ],
    [
      'finds its port taken',
      "console.error('bind: address already in use'); process.exit(1)",
      /did not start/,
      'bind',
      true,
    ],
  ])(
    'that %s instead of starting fails at once, and takes those with it that were started beside it',
    async (...of) => {
      const [, script, message, line, portTaken] = of;
      const { home, supervisor } = supervise();
      const starting = supervisor.start([service('worker', steady), service('server', script)]);
      await expect(starting).rejects.toThrow(message);
      const evidence = [expect.stringContaining(line)];
      await expect(starting).rejects.toMatchObject({ evidence, portTaken });
      expect(readRunState(home).processes).toEqual([]);
      // It is not stopped for good: the same services may be started again.
      await supervisor.start([service('worker', steady)]);
      expect(supervisor.processes).toHaveLength(1);
    },
  );

  it('whose program is not there is named', async () => {
    const spec = { ...service('server', ''), command: '/no/such/program' };
    await expect(supervise().supervisor.start([spec])).rejects.toThrow(
      /server did not start \(spawn \/no\/such\/program ENOENT\)/,
    );
  });

  it('that ignores SIGTERM is killed after its grace time, with what it started', async () => {
    const { home, supervisor } = supervise();
    const file = join(home.root, 'grandchild');
    const script = `process.on('SIGTERM', () => {});
      const child = require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
      require('fs').writeFileSync(${JSON.stringify(file)}, String(child.pid)); console.log('ready'); setInterval(() => {}, 1000);`;
    await supervisor.start([{ ...service('worker', script), graceSeconds: 0.2 }]);
    const grandchild = Number(readFileSync(file, 'utf8'));
    expect(startTime(grandchild)).toBeDefined();
    await supervisor.stop();
    expect(await isGone(grandchild)).toBe(true);
  });
});

describe('a supervisor', () => {
  it('stops services in the reverse order of their start, and starts nothing more', async () => {
    const { home, supervisor } = supervise();
    const log = join(home.root, 'order');
    const script = (name: string) => `process.on('SIGTERM', () => {
        require('fs').appendFileSync(${JSON.stringify(log)}, '${name} '); process.exit(); });
      setInterval(() => {}, 1000); console.log('ready');`;
    await supervisor.start([service('server', script('server'))]);
    await supervisor.start([service('worker', script('worker'))]);
    await supervisor.stop();
    expect(readFileSync(log, 'utf8')).toBe('worker server ');
    await expect(supervisor.start([service('late', steady)])).rejects.toThrow('stopped before everything was started');
    expect(existsSync(join(home.logs, 'late.log'))).toBe(false);
  });

  it('ends what a killed one left, also what a killed service had started, and nothing else', async () => {
    const { home, supervisor: killed } = supervise();
    const file = join(home.root, 'left');
    const leaving = `const left = require('child_process').spawn('sleep', ['60'], { stdio: 'ignore' });
      require('fs').writeFileSync(${JSON.stringify(file)}, String(left.pid)); console.log('ready'); setInterval(() => {}, 1000);`;
    await killed.start([service('temporal', "console.log('ready'); setInterval(() => {}, 1000)")]);
    await killed.start([service('worker', leaving)]);
    const [server, worker] = readRunState(home).processes;
    process.kill(worker!.pid, 'SIGKILL');
    expect(await isGone(worker!.pid)).toBe(true);
    const left = Number(readFileSync(file, 'utf8'));
    // A number that was ours once and is somebody else's now has another start time; and one may be another place's.
    const other = recordOf({ name: 'other', pid: stranger() })!;
    const { place } = other;
    const others = [
      { ...other, started: 'earlier' },
      { ...other, place: { ...place, boot: 'an earlier one' } },
      { ...other, place: { ...place, host: 'another', boot: 'its own' } },
      { ...other, place: { ...place, pidNamespace: '1' } },
    ];
    expect(await endOrphans([server!, worker!, ...others], 5)).toEqual(['temporal', 'worker']);
    expect({ server: isRunning(server!), left: await isGone(left) }).toEqual({ server: false, left: true });
    expect(others.map(isRunning)).toEqual([false, false, false, false]);
    expect(isRunning(other)).toBe(true);
  });

  it("leaves a stranger's group alone that has the number of ours and no leader", async () => {
    const script =
      "console.log(require('child_process').spawn('sleep', ['60'], { stdio: 'ignore' }).pid); process.exit();";
    const leader = spawn(process.execPath, ['-e', script], { detached: true });
    const record = recordOf({ name: 'worker', pid: leader.pid ?? 0 })!;
    const left = Number(await new Promise((done) => leader.stdout.once('data', done)));
    atEnd(() => process.kill(left, 'SIGKILL'));
    expect(await isGone(record.pid)).toBe(true);
    expect(await endOrphans([{ ...record, started: 'earlier' }], 1)).toEqual([]);
    expect(startTime(left)).toBeDefined();
  });

  it.each(['', '{"processes":', '{"processes":[{"pid":"x"}]}'])(
    'whose record is damaged (%s) finds the server of its database',
    async (text) => {
      const { home, supervisor } = supervise();
      const server = stranger(['--db-filename', home.temporalDatabase]);
      const another = stranger(['--db-filename', `${home.temporalDatabase}2`]);
      writeFileSync(home.state, text);
      expect(await supervisor.endOrphans()).toEqual(['temporal']);
      expect(await isGone(server)).toBe(true);
      expect(startTime(another)).toBeDefined();
      expect(JSON.parse(readFileSync(home.state, 'utf8'))).toEqual({ processes: [] });
    },
  );
});

describe('a full disk', () => {
  it('neither ends a supervisor that records what it runs, nor stays unrecorded', async () => {
    const { home, supervisor, notes, pid, isReplaced } = supervise();
    await supervisor.start([service('worker', steady)]);
    const first = pid() ?? 0;
    jest.spyOn(fs, 'writeFileSync').mockImplementation(() => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    });
    process.kill(first, 'SIGKILL');
    expect(await isReplaced(first)).toBe(true);
    expect(readRunState(home).processes).toMatchObject([{ pid: first }]);
    expect(notes).toEqual([expect.stringContaining(`the disk of ${home.root} is full: free at least 1 GiB`)]);
    jest.restoreAllMocks();
    expect(await waitUntil(() => readRunState(home).processes[0]?.pid === pid(), 20)).toBe(true);
  });

  it('is waited for by a service that can do nothing without room', async () => {
    const { home, supervisor, restarts, notes, pid } = supervise();
    const statfs = jest.spyOn(fs, 'statfsSync').mockReturnValue({ bavail: 3, bsize: 4096 } as fs.StatsFs);
    const room = join(home.root, 'room');
    const script = `console.log('ready'); if (!require('fs').existsSync(${JSON.stringify(room)})) process.exit(1); ${steady}`;
    writeFileSync(room, '');
    await supervisor.start([service('server', script)]);
    rmSync(room);
    process.kill(pid() ?? 0, 'SIGKILL');
    // More often than a crash may happen.
    expect(await waitUntil(() => restarts.length >= quick.crash.limit * 2, 30)).toBe(true);
    writeFileSync(room, '');
    statfs.mockRestore();
    expect(await waitUntil(() => pid() !== undefined, 20)).toBe(true);
    expect(notes).toHaveLength(1);
  });
});

describe('the lock of a home', () => {
  const me = recordOf({ name: 'supervisor', pid: process.pid })!;

  it('is held by one that lives, and taken from one that is dead', async () => {
    const home = newHome();
    const pid = stranger();
    writeFileSync(home.lock, JSON.stringify(recordOf({ name: 'supervisor', pid })));
    expect(() => acquireLock(home)).toThrow(`in use by another \`campaign run\` or \`campaign serve\` (pid ${pid})`);
    expect(liveHolder(home)?.pid).toBe(pid);
    process.kill(pid, 'SIGKILL');
    expect(await isGone(pid)).toBe(true);
    const release = acquireLock(home);
    expect(liveHolder(home)?.pid).toBe(process.pid);
    release();
    expect(existsSync(home.lock)).toBe(false);
  });

  it.each([
    '{"pid":',
    '{}',
    'null',
    '',
    JSON.stringify({ ...me, started: 'earlier' }),
    JSON.stringify({ ...me, place: { ...me.place, boot: 'before the reboot' } }),
  ])('that is torn or of another time is taken over: %s', (text) => {
    const home = newHome();
    writeFileSync(home.lock, text);
    acquireLock(home)();
    expect(existsSync(home.lock)).toBe(false);
  });

  it.each([
    ['on another machine', { host: 'gpu-7', boot: 'its own' }, 'gpu-7'],
    ['in another container', { pidNamespace: '1' }, hostname()],
  ])('is not taken from a holder %s, of whom nothing is known', (_where, other, host) => {
    const home = newHome();
    // No process of ours has its number.
    const text = JSON.stringify({ ...me, pid: 2 ** 30, started: '1', place: { ...me.place, ...other } });
    writeFileSync(home.lock, text);
    expect(() => acquireLock(home)).toThrow(`${home.lock} names host ${host} (pid ${2 ** 30}); end it there, or`);
    expect(readFileSync(home.lock, 'utf8')).toBe(text);
    expect(readdirSync(home.root)).toEqual(['run.lock']);
  });

  it('is not given back for somebody else', () => {
    const home = newHome();
    const release = acquireLock(home);
    writeFileSync(home.lock, JSON.stringify({ ...me, place: { ...me.place, host: 'gpu-7' } }));
    release();
    expect(existsSync(home.lock)).toBe(true);
  });
});

describe('a supervised command', () => {
  it('that has failed ends what waits for its end, and gives the home back', async () => {
    const home = newHome();
    let ended = false;
    jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const running = supervised({
      options: { home: home.root },
      work: ({ supervisor, interruption }) => {
        interruption.signal.addEventListener('abort', () => (ended = true));
        supervisor.fail(new UserError('the database is damaged'));
        return new Promise(() => undefined);
      },
    });
    await expect(running).rejects.toThrow('the database is damaged');
    expect({ ended, locked: existsSync(home.lock) }).toEqual({ ended: true, locked: false });
  });

  it('whose reader has gone stops its services in order, and gives the home back', () => {
    const home = newHome();
    const sources = resolve(__dirname, '../../../src/cli');
    const script = `const { main } = require('${sources}/main.ts');
      const { supervised } = require('${sources}/run/supervisor.ts');
      const spec = ${JSON.stringify(service('server', steady))};
      const work = async ({ output, supervisor, interruption }) => {
        await supervisor.start([{ ...spec, isReady: (lines) => lines.includes('ready') }]);
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
    expect(readRunState(home)).toEqual({ processes: [] });
    expect(existsSync(home.lock)).toBe(false);
  });

  it('removes what killed processes left in the store', async () => {
    const home = newHome();
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    const aside = join(home.root, 'artifacts', 'aside');
    mkdirSync(aside, { recursive: true });
    writeFileSync(join(aside, `${hostname()}-${pid}-0123456789abcdef`), 'half');
    const output = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    expect(await supervised({ options: { home: home.root }, work: async () => 0 })).toBe(0);
    expect(output.mock.calls.join()).toContain('removed 1 unfinished file');
    expect(readdirSync(aside)).toEqual([]);
  });
});
