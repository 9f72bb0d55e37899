/** The supervisor with real child processes: tiny scripts that behave as services do. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../src/cli/errors';
import { homeAt, type Home } from '../../src/cli/project';
import { decide } from '../../src/cli/run/decide';
import { acquireLock, liveHolder } from '../../src/cli/run/lock';
import { endOrphans, isRunning, startTime, waitUntil } from '../../src/cli/run/processes';
import { readRunState } from '../../src/cli/run/run-state';
import type { RestartPolicy, ServiceSpec } from '../../src/cli/run/service';
import { Supervisor } from '../../src/cli/run/supervisor';

const newHome = (): Home => homeAt(mkdtempSync(join(tmpdir(), 'supervisor-')));
const quick: RestartPolicy = { minUptimeSeconds: 20, maxCrashes: 3, initialDelayMs: 10, maxDelayMs: 20 };

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
function supervise(home: Home, restarts: string[] = []): Supervisor {
  const supervisor = new Supervisor(home, ({ cause }) => restarts.push(cause), quick);
  supervisors.push(supervisor);
  return supervisor;
}
afterEach(async () => {
  await Promise.all(supervisors.splice(0).map((supervisor) => supervisor.stop()));
});

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
      const reused = { name: 'reused', pid: stranger.pid ?? 0, started: 'earlier' };
      expect(await endOrphans([orphan ?? reused, reused], 5)).toEqual(['temporal']);
      expect(orphan && isRunning(orphan)).toBe(false);
      expect(startTime(stranger.pid ?? 0)).toBeDefined();
    } finally {
      stranger.kill('SIGKILL');
    }
  });
});

describe('the lock of a home', () => {
  it('is held by one that lives', async () => {
    const home = newHome();
    const holder = spawn(process.execPath, ['-e', steady], { stdio: ['pipe', 'ignore', 'ignore'] });
    const pid = holder.pid ?? 0;
    writeFileSync(home.lock, JSON.stringify({ name: 'supervisor', pid, started: startTime(pid) }));
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
    writeFileSync(home.lock, JSON.stringify({ name: 'supervisor', pid: process.pid, started: 'before the reboot' }));
    acquireLock(home)();
    expect(existsSync(home.lock)).toBe(false);
  });
});

describe('a name that Temporal knows', () => {
  const state = { runId: 'r', configDigest: 'a' };
  const about = { name: 'demo', configDigest: 'a' };
  it.each([
    ['is new', undefined, undefined, 'start'],
    ['is running', { ...state, status: 'RUNNING' }, undefined, 'attach'],
    ['has completed', { ...state, status: 'COMPLETED' }, undefined, 'show'],
    [
      'has stopped at a stage, and more is asked for',
      { ...state, status: 'COMPLETED', until: 'selection' },
      undefined,
      'start',
    ],
    [
      'has stopped at the stage that is asked for',
      { ...state, status: 'COMPLETED', until: 'selection' },
      'selection',
      'show',
    ],
    ['has failed', { ...state, status: 'FAILED' }, undefined, 'start'],
    ['was terminated', { ...state, status: 'TERMINATED' }, undefined, 'start'],
  ] as const)('%s', (_what, known, until, decision) => {
    expect(decide({ ...about, state: known, until })).toBe(decision);
  });

  it('with another configuration is refused with the fix', () => {
    expect(() => decide({ ...about, state: { runId: 'r', status: 'FAILED', configDigest: 'b' } })).toThrow(
      'was run with another configuration; give this one its own name with --name, for example --name demo-2',
    );
  });
});
