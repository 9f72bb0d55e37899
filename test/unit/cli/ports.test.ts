/** Ports of the services: chosen, named, and taken by somebody between the choice and the start. */
import { createServer, type AddressInfo } from 'node:net';
import { UserError } from '../../../src/cli/errors';
import { chooseTemporalPorts, freePorts, type PortOptions, uiPort } from '../../../src/cli/ports';
import { atEnd } from '../../support/supervised';

jest.setTimeout(60_000);

/** A port that somebody else listens on until the end of the test. */
async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
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
