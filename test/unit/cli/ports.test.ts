/** Ports of the services: chosen, named, and taken by somebody between the choice and the start. */
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { runChecks } from '../../../src/checks/check';
import { portCheck } from '../../../src/cli/checks/machine';
import { chooseTemporalPorts, freePort, freePorts, type PortOptions, uiPort } from '../../../src/cli/ports';
import { projectRoot } from '../../../src/artifacts/project-root';
import { servicesOf, waitUntil } from '../../../src/cli/run/processes';
import { answersOk, policyServerService } from '../../../src/cli/run/services';
import { startOnFreePorts } from '../../../src/cli/run/temporal-server';
import { atEnd, supervise } from '../../support/supervised';
import { newFolder } from '../../support/temporary-folder';

jest.setTimeout(60_000);

/** A port that somebody else listens on until the end of the test. */
async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

/** Sets an environment variable until the end of the test. */
function setEnv(name: string, value: string): void {
  const before = process.env[name];
  process.env[name] = value;
  atEnd(() => (before === undefined ? delete process.env[name] : (process.env[name] = before)));
}

/** A program of this text, in a folder of its own. */
function program(name: string, text: string): { folder: string; file: string } {
  const folder = newFolder();
  const file = join(folder, name);
  writeFileSync(file, text);
  chmodSync(file, 0o755);
  return { folder, file };
}

describe('a port', () => {
  const choose = async (options: PortOptions) => {
    const notes: string[] = [];
    return { ...(await chooseTemporalPorts({ options, note: (text) => notes.push(text) })), notes };
  };

  it('that is named is that one, or an error that says how to name another', async () => {
    const [port, ui] = (await freePorts({ count: 2, except: [] })) as [number, number];
    expect(await choose({ temporalPort: port, uiPort: ui })).toEqual({ port, uiPort: ui, notes: [] });
    const taken = await takenPort();
    await expect(choose({ temporalPort: 0, uiPort: taken })).rejects.toThrow(
      `Temporal UI: port ${taken} is in use; choose another one with --ui-port PORT, or 0 for a free one`,
    );
    await expect(choose({ temporalPort: port, uiPort: port })).rejects.toThrow(`port ${port} is named twice`);
  });

  it('that is not named is a free one when the usual one is taken, and this is said', async () => {
    const { preferred } = uiPort;
    atEnd(() => (uiPort.preferred = preferred));
    uiPort.preferred = await takenPort();
    const chosen = await choose({ temporalPort: 0 });
    expect(new Set([0, chosen.port, chosen.uiPort, uiPort.preferred]).size).toBe(4);
    expect(chosen.notes).toEqual([
      `port ${uiPort.preferred} is in use: the Temporal UI takes ${chosen.uiPort}; --ui-port names another one`,
    ]);
  });

  it('is checked as it will be chosen', async () => {
    const asked = await takenPort();
    const check = async (...o: Parameters<typeof portCheck>) => (await runChecks([portCheck(...o)]))[0];
    expect(await check(uiPort, asked)).toMatchObject({
      ok: false,
      detail: `port ${asked} is in use`,
      fix: 'choose another one with --ui-port PORT, or 0 for a free one',
    });
    expect(await check({ ...uiPort, preferred: asked })).toMatchObject({
      ok: true,
      detail: `port ${asked} is in use, a free one is taken instead`,
    });
    expect(await check(uiPort, await freePort())).toMatchObject({ ok: true });
  });
});

describe('the Temporal server', () => {
  /** The real program, behind one that takes the port of an option before it: at each start that of the next one. */
  function intrude(...options: string[]): void {
    const real = join(projectRoot, '.venv/bin/temporal');
    const text = `#!${process.execPath}
      const { appendFileSync, readFileSync } = require('fs');
      const { spawn, spawnSync } = require('child_process');
      const args = process.argv.slice(2);
      appendFileSync(__filename + '.starts', '.');
      const option = ${JSON.stringify(options)}[readFileSync(__filename + '.starts').length - 1];
      const run = () => spawnSync(${JSON.stringify(real)}, args, { stdio: 'inherit' }).status;
      if (option)
        require('net').createServer().listen(args[args.indexOf(option) + 1], '127.0.0.1', () => process.exit(run()));
      else {
        const child = spawn(${JSON.stringify(real)}, args, { stdio: 'inherit' });
        process.on('SIGTERM', () => child.kill());
        child.on('exit', (code) => process.exit(code));
      }`;
    setEnv('PATH', `${program('temporal', text).folder}${delimiter}${process.env['PATH']}`);
    setEnv('TEMPORAL_NAMESPACE', 'ports');
  }

  const start = async (options: PortOptions) => {
    const notes: string[] = [];
    const output = { note: (_stage: string, detail: string) => void notes.push(detail), show: () => undefined };
    const run = supervise();
    const ports = await startOnFreePorts({ ...run, output, options: { home: run.home.root, ...options } });
    return { ports, notes, running: new Set(servicesOf(run.home).map(({ name }) => name)) };
  };

  it('comes up although each of its ports is taken once before it listens', async () => {
    intrude('--port', '--ui-port', '--http-port', '--metrics-port');
    const { notes, running } = await start({ temporalPort: 0, uiPort: 0 });
    expect(notes).toEqual(Array(4).fill("one of Temporal's ports was taken before it could listen; starting it again"));
    expect(running).toEqual(new Set(['temporal']));
  });

  it('keeps the ports that are named', async () => {
    intrude('--http-port');
    const [temporalPort, ui] = (await freePorts({ count: 2, except: [] })) as [number, number];
    const { ports, notes } = await start({ temporalPort, uiPort: ui });
    expect(ports).toEqual({ port: temporalPort, uiPort: ui });
    expect(notes).toHaveLength(1);
  });

  it('is given up when a port is taken every time', async () => {
    intrude(...Array<string>(9).fill('--metrics-port'));
    await expect(start({ temporalPort: 0, uiPort: 0 })).rejects.toThrow(/^temporal did not start \(exit code 1\)/);
  });
});

it('the policy server says where it listens, and listens there again after a kill', async () => {
  const text = `#!${process.execPath}
    const port = Number(process.argv[process.argv.indexOf('--port') + 1]);
    const server = require('http').createServer((_, response) => response.end('{}'));
    server.listen(port, '127.0.0.1', () =>
      console.log(JSON.stringify({ type: 'listening', url: 'http://127.0.0.1:' + server.address().port })));`;
  setEnv('CAMPAIGN_PYTHON', program('python', text).file);
  const { supervisor, pid, isReplaced } = supervise();
  const { spec, url } = policyServerService({ model: 'none', maxBatch: 1, threads: 1 });
  await supervisor.start([spec]);
  const first = url();
  expect(first).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d+$/);
  const victim = pid() ?? 0;
  process.kill(victim, 'SIGKILL');
  expect(await isReplaced(victim)).toBe(true);
  expect(await waitUntil(() => answersOk(first), 20)).toBe(true);
  expect(url()).toBe(first);
});
