/** Ports of the services: chosen, named, and taken by somebody between the choice and the start. */
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import { chooseTemporalPorts, freePorts, type PortOptions, uiPort } from '../../../src/cli/ports';
import { waitUntil } from '../../../src/cli/run/processes';
import { answersOk, policyServerService } from '../../../src/cli/run/services';
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
    await expect(choose({ temporalPort: 0, uiPort: taken })).rejects.toThrow('--ui-port');
    await expect(choose({ temporalPort: port, uiPort: port })).rejects.toThrow(UserError);
  });

  it('that is not named is a free one when the usual one is taken, and this is said', async () => {
    const { preferred } = uiPort;
    atEnd(() => (uiPort.preferred = preferred));
    uiPort.preferred = await takenPort();
    const chosen = await choose({ temporalPort: 0 });
    expect(new Set([0, chosen.port, chosen.uiPort, uiPort.preferred]).size).toBe(4);
    expect(chosen.notes).toHaveLength(1);
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
