/** The supervisor with real child processes: tiny scripts that behave as services do. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs, { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import type { Home } from '../../../src/cli/project';
import { acquireLock, announce, isHeld, signalGroup, waitUntil } from '../../../src/cli/services/processes';
import { supervised, type SupervisedRun } from '../../../src/cli/services/supervisor';
import { newHome, service, steady, supervise } from '../../support/supervised';

afterEach(() => jest.restoreAllMocks());

const isGone = (group: number) => waitUntil(() => !signalGroup(group, 0), 10);
const stays = "console.log('ready'); setInterval(() => {}, 1000);";

describe('a supervised service', () => {
  /** Does `script` at its first `times` starts; then it is steady. */
  const unsteady = ({ home, times, script }: { home: Home; times: number; script: string }) =>
    service(
      'worker',
      `const fs = require('fs'); const file = ${JSON.stringify(join(home.root, 'starts'))}; fs.appendFileSync(file, '.');
      if (fs.readFileSync(file).length <= ${times}) { ${script} } else { ${steady} }`,
    );

  it('is started again after a kill -9, also before it is ready, but not without end', async () => {
    const { supervisor, restarts, pid, isReplaced } = supervise();
    await supervisor.start([service('worker', steady)]);
    const first = pid() ?? 0;
    process.kill(first, 'SIGKILL');
    expect(await isReplaced(first)).toBe(true);
    expect(restarts).toHaveLength(1);

    const script = "setTimeout(() => process.kill(process.pid, 'SIGKILL'), 250)";
    const early = supervise();
    await early.supervisor.start([unsteady({ home: early.home, times: 2, script })]);
    expect(early.restarts).toHaveLength(2);
    expect(early.pid()).toBeDefined();
    const other = supervise();
    await expect(other.supervisor.start([unsteady({ home: other.home, times: 99, script })])).rejects.toThrow(
      UserError,
    );
  });

  it('that keeps dying is given up, with the end of its log, and is never signalled again', async () => {
    const { home, supervisor } = supervise();
    const dying = "console.error('the disk is full'); process.exit(1)";
    const once = `if (fs.readFileSync(file).length > 1) { ${dying} } console.log('ready'); setTimeout(() => process.exit(1), 300);`;
    await supervisor.start([unsteady({ home, times: 99, script: once })]);
    const error = await supervisor.failure.catch((thrown: unknown) => thrown as UserError);
    expect(error.evidence).toContain('the disk is full');
    // Somebody else has the number by now, as far as anybody can tell: every signal to it would arrive.
    const kill = jest.spyOn(process, 'kill').mockReturnValue(true);
    supervisor.kill();
    await supervisor.stop();
    expect(kill).not.toHaveBeenCalled();
  });

  it('that does not start fails at once', async () => {
    const { supervisor, pid } = supervise();
    const starting = supervisor.start([
      service('worker', steady),
      service('server', `console.error('no model there'); process.exit(1)`),
    ]);
    await expect(starting).rejects.toMatchObject({ evidence: ['no model there'] });
    await supervisor.stop();
    expect(pid()).toBeUndefined();
  });

  it('that ignores SIGTERM is killed after its grace time, with what it started', async () => {
    const { supervisor, pid } = supervise();
    const script = `process.on('SIGTERM', () => {});
      require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']).on('spawn', () => console.log('ready'));
      setInterval(() => {}, 1000);`;
    await supervisor.start([{ ...service('worker', script), graceSeconds: 0.2 }]);
    const group = pid()!;
    await supervisor.stop();
    expect(await isGone(group)).toBe(true);
  });
});

describe('a supervisor', () => {
  it('stops services in the reverse order of their start, and starts nothing more', async () => {
    const { home, supervisor } = supervise();
    const log = join(home.root, 'order');
    const script = (name: string) => `process.on('SIGTERM', () => {
        require('fs').appendFileSync(${JSON.stringify(log)}, '${name} '); process.exit(); }); ${stays}`;
    await supervisor.start([service('server', script('server'))]);
    await supervisor.start([service('worker', script('worker'))]);
    await supervisor.stop();
    expect(readFileSync(log, 'utf8')).toBe('worker server ');
    await expect(supervisor.start([service('late', steady)])).rejects.toThrow('stopped before everything was started');
    expect(existsSync(join(home.logs, 'late.log'))).toBe(false);
  });

  it('that was killed leaves services, for whose end the next one waits', async () => {
    const home = newHome();
    const child = spawn(process.execPath, ['-e', steady], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    announce(home, { groups: [child.pid!] });
    jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    let isAlive = true;
    child.once('exit', () => (isAlive = false));
    const running = supervised({ options: { home: home.root }, work: async () => (isAlive ? 1 : 0) });
    // Its stdin ends with the killed supervisor.
    setTimeout(() => child.stdin.end(), 500);
    expect(await running).toBe(0);
  });
});

it('a service that dies on a full disk starts again when there is room, and says so once', async () => {
  const { supervisor, restarts, notes, pid } = supervise();
  await supervisor.start([service('server', `console.log('ready'); ${steady}`)]);
  const statfs = jest.spyOn(fs, 'statfsSync').mockReturnValue({ bavail: 3, bsize: 4096 } as fs.StatsFs);
  process.kill(pid() ?? 0, 'SIGKILL');
  expect(await waitUntil(() => restarts.length === 1, 30)).toBe(true);
  await new Promise((done) => setTimeout(done, 500));
  expect(pid()).toBeUndefined();
  statfs.mockRestore();
  const lasts = async () => {
    const before = pid();
    await new Promise((done) => setTimeout(done, 500));
    return before !== undefined && pid() === before;
  };
  expect(await waitUntil(lasts, 20)).toBe(true);
  expect(notes).toHaveLength(1);
});

describe('the lock of a home', () => {
  it('is held by one process, and given back', async () => {
    const home = newHome();
    const release = await acquireLock(home);
    expect(isHeld(home)).toBe(true);
    await expect(acquireLock(home)).rejects.toThrow(`${home.root} is in use`);
    await release();
    expect(isHeld(home)).toBe(false);
  });

  it('is taken over from a process that was killed', async () => {
    const home = newHome();
    const source = resolve(__dirname, '../../../src/cli/services/processes.ts');
    const script = `require('${source}').acquireLock(${JSON.stringify(home)}).then(() => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-r', resolve(__dirname, '../../support/register.cjs'), '-e', script]);
    expect(isHeld(home)).toBe(true);
    await (
      await acquireLock(home)
    )();
  });
});

describe('a supervised command', () => {
  it('that has failed ends what waits for its end, and gives the home back', async () => {
    const home = newHome();
    let ended = false;
    jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    // As a killed supervisor has left it.
    announce(home, { temporalAddress: 'host:1' });
    const running = supervised({
      options: { home: home.root },
      work: ({ supervisor, signal }) => {
        signal.addEventListener('abort', () => (ended = true));
        expect(existsSync(home.state)).toBe(false);
        announce(home, { temporalAddress: 'host:2' });
        supervisor.fail(new UserError('damaged', 'temporal.db', 'the database is damaged'));
        return new Promise(() => undefined);
      },
    });
    await expect(running).rejects.toThrow('the database is damaged');
    expect([ended, existsSync(home.lock), existsSync(home.state)]).toEqual([true, false, false]);
  });

  it('whose reader has gone stops its services in order, and gives the home back', () => {
    const home = newHome();
    const sources = resolve(__dirname, '../../../src/cli');
    const script = `const { main } = require('${sources}/main.ts');
      const { supervised } = require('${sources}/services/supervisor.ts');
      const spec = ${JSON.stringify(service('server', steady))};
      const work = async ({ output, supervisor, signal }) => {
        const args = () => ['-e', ${JSON.stringify(steady)}];
        await supervisor.start([{ ...spec, args, isReady: (lines) => lines.includes('ready') }]);
        const notes = setInterval(() => output.note('services', 'more'), 20);
        await require('events').once(signal, 'abort');
        clearInterval(notes);
        return 130;
      };
      void main(['--help'])
        .then(() => supervised({ options: { home: ${JSON.stringify(home.root)} }, work }))
        .then((code) => process.stderr.write(\`code \${code}\`));`;
    const node = [process.execPath, '-r', resolve(__dirname, '../../support/register.cjs'), '-e', script];
    const { stderr } = spawnSync('sh', ['-c', '"$@" | head -c 1', 'sh', ...node], { encoding: 'utf8' });
    expect(stderr).toBe('code 130');
    expect(isHeld(home)).toBe(false);
  });

  it('ends at SIGHUP, and listens on for a second signal', async () => {
    const before = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((name) => [name, process.listeners(name)] as const);
    jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const work = async ({ supervisor, signal }: SupervisedRun) => {
      await supervisor.start([service('control-worker', steady)]);
      process.emit('SIGHUP');
      expect(signal.aborted).toBe(true);
      return 130;
    };
    expect(await supervised({ options: { home: newHome().root }, work })).toBe(130);
    for (const [name, known] of before)
      for (const one of process.listeners(name)) if (!known.includes(one)) process.off(name, one);
  });
});
