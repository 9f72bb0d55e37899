/** What a worker runs and hands on, by what its operator says. */
import { setTimeout as sleep } from 'node:timers/promises';
import { bareEnvironment, startChild } from '../../../src/environments/child-process';
import { processKind } from '../../../src/environments/process';
import { keyOf } from '../../../src/language-model/endpoint';
import { programEnvironment } from '../../../src/policy/python';

const before = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});
const open =
  (...command: string[]) =>
  () =>
    processKind.open({ kind: 'process', command }, {} as never);

it('a command that is not listed word by word is refused, and everything runs without a list', async () => {
  expect(open('python', 'bridge.py')).not.toThrow();
  process.env['CAMPAIGN_COMMANDS'] = 'python /opt/other.py;  python   /opt/bridge.py ;';
  expect(open('python', '/opt/bridge.py')).not.toThrow();
  for (const command of [['python', '/opt/bridge.py', '-x'], ['python'], ['python /opt/bridge.py']])
    expect(open(...command)).toThrow(
      expect.objectContaining({
        type: 'NotAllowed',
        message: expect.stringMatching(/^the target's command is python.* add it to CAMPAIGN_COMMANDS$/),
      }),
    );
});

it('a variable that is not listed is handed on to nobody', () => {
  Object.assign(process.env, { MINE: 'a', AWS_SECRET_ACCESS_KEY: 'b', CAMPAIGN_KEY_VARIABLES: 'OTHER, MINE' });
  expect(keyOf('analyst.apiKeyEnv', 'MINE')).toBe('a');
  const refused = "analyst.apiKeyEnv is AWS_SECRET_ACCESS_KEY, which this worker's operator does not allow";
  expect(() => keyOf('analyst.apiKeyEnv', 'AWS_SECRET_ACCESS_KEY')).toThrow(refused);
  const spec = { kind: 'process', command: ['x'], passEnv: ['AWS_SECRET_ACCESS_KEY'] };
  expect(() => processKind.open(spec, {} as never)).toThrow('target.passEnv is AWS_SECRET_ACCESS_KEY');
});

it('a program is given a bare environment and what it is told to be given', async () => {
  Object.assign(process.env, { MINE: 'a', TEMPORAL_API_KEY: 'b', EXAMPLE_API_KEY: 'c' });
  const lines: string[] = [];
  const child = startChild({
    command: [process.execPath, '-e', 'console.log(Object.keys(process.env).join())'],
    passEnv: ['MINE'],
    readOutput: (stdout) => stdout.on('data', (text: Buffer) => void lines.push(text.toString().trim())),
    onEnd: () => undefined,
    onStartFailure: () => undefined,
  });
  while (lines.length === 0) await sleep(10);
  await child.close();
  const given = lines[0]?.split(',') ?? [];
  expect(given).toEqual(expect.arrayContaining(['PATH', 'MINE']));
  const known = Object.keys(bareEnvironment(['MINE']));
  expect(given.filter((name) => !known.includes(name))).toEqual([]);
  expect(Object.keys(programEnvironment())).not.toEqual(expect.arrayContaining(['EXAMPLE_API_KEY']));
  expect(programEnvironment()).toMatchObject({ MINE: 'a' });
});
