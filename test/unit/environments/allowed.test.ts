/** What a worker runs, reads and hands on, by what its operator allows. */
import { TypedSearchAttributes } from '@temporalio/common';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { analysts } from '../../../src/analyst';
import { folderIn } from '../../../src/store/durable-file';
import { atHand, give, located } from '../../../src/store/given';
import { projectRoot } from '../../../src/store/project-root';
import { openStore } from '../../../src/store/open-store';
import { loadCampaign, withPlaces } from '../../../src/cli/campaign-file';
import { homeAt } from '../../../src/cli/project';
import { allowCampaign } from '../../../src/cli/services/allowed';
import type { Temporal } from '../../../src/cli/temporal';
import { restrictToAllowed } from '../../../src/domain/allowed';
import { kindOf, type KindSpec } from '../../../src/domain/kinds';
import { environments } from '../../../src/environments';
import { bareEnvironment, startChild } from '../../../src/environments/child-process';
import { keyOf } from '../../../src/llm/client';
import { programEnvironment } from '../../../src/policy/python';
import { tinkerUrl } from '../../../src/policy/tinker';
import { moduleFiles } from '../../../src/sandbox/source';
import { writeCampaign } from '../../support/campaign-run';
import { temporaryFolder } from '../../support/temporary-folder';

const before = { ...process.env };
const folder = temporaryFolder();
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});
const refused = expect.objectContaining({ type: 'NotAllowed' });
const bridge = { kind: 'process', command: ['python', 'a b;c.py'], cwd: '/opt/bridge' };
const player = {
  kind: 'agent',
  command: ['node', 'play.js'],
  folder: '/opt/play',
  tasks: '/opt/tasks.jsonl',
  grader: ['sh', 'grade.sh'],
};
const bought = { kind: 'verifiers', environment: 'wordle', venv: '/opt/venv', arguments: { harness: { id: 'own' } } };
const bench = { kind: 'tau2', domains: ['retail'] };
const opening = (spec: KindSpec) => () => void kindOf(environments, spec).open(spec, {} as never);

describe('in a process that a person started', () => {
  it('everything is allowed, but where a list says otherwise', () => {
    for (const spec of [bridge, player, bought, bench]) expect(opening(spec)).not.toThrow();
    process.env['CAMPAIGN_COMMANDS'] = JSON.stringify([bridge]);
    expect(opening(bridge)).not.toThrow();
    expect(opening(player)).toThrow(refused);
  });
});

describe('in a worker', () => {
  beforeAll(restrictToAllowed);

  it('nothing is allowed without a list, or with one that is no JSON list', () => {
    for (const text of ['', 'none', 'python a b;c.py', '{}']) {
      process.env['CAMPAIGN_COMMANDS'] = text;
      for (const spec of [bridge, player, bought, bench]) expect(opening(spec)).toThrow(refused);
    }
    process.env['MINE'] = 'a';
    expect(() => keyOf('analyst.apiKeyEnv', { url: 'https://api.example/v1', apiKeyEnv: 'MINE' })).toThrow(refused);
    expect(opening({ ...bridge, passEnv: ['MINE'] })).toThrow(refused);
  });

  it('what a refusal says to add to the list allows that target, and no other', () => {
    for (const spec of [bridge, player, bought, bench]) {
      delete process.env['CAMPAIGN_COMMANDS'];
      let entry = '';
      try {
        opening(spec)();
      } catch (error) {
        entry = /add (\{.*\}) to the JSON list in the worker's CAMPAIGN_COMMANDS/.exec((error as Error).message)![1]!;
      }
      process.env['CAMPAIGN_COMMANDS'] = `[${entry}]`;
      expect(opening(spec)).not.toThrow();
    }
    process.env['CAMPAIGN_COMMANDS'] = JSON.stringify([bridge, player, bought, { kind: 'tau2' }]);
    for (const changed of [
      { ...bridge, command: ['python', 'a', 'b;c.py'] },
      { ...bridge, command: [...bridge.command, '-x'] },
      { ...bridge, cwd: '/tmp' },
      { ...player, grader: ['sh', '-c', 'id'] },
      { ...player, grader: undefined },
      { ...player, folder: '/tmp' },
      { ...player, tasks: '/tmp/tasks.jsonl' },
      { ...bought, venv: '/tmp' },
      { ...bought, environment: 'other' },
      { ...bought, arguments: { harness: { id: 'shell' } } },
      { ...bought, testArguments: {} },
      { ...bench, checkout: '/tmp' },
    ])
      expect(opening(changed)).toThrow(refused);
  });

  it('a key goes to the address or the program that the list names, and nowhere else', () => {
    Object.assign(process.env, { MINE: 'a', TINKER_API_KEY: 'b', CAMPAIGN_COMMANDS: JSON.stringify([bridge]) });
    const sent = (url: string, apiKeyEnv = 'MINE') => keyOf('target.user.apiKeyEnv', { url, apiKeyEnv });
    const passing = opening({ ...bridge, passEnv: ['MINE'] });
    process.env['CAMPAIGN_KEY_VARIABLES'] = 'OTHER, MINE=https://api.example';
    expect(sent('https://api.example/v1')).toBe('a');
    for (const url of ['https://api.example:8443/v1', 'http://api.example/v1', 'https://api.example.evil/v1'])
      expect(() => sent(url)).toThrow(refused);
    expect(() => sent('https://api.example/v1', 'TINKER_API_KEY')).toThrow(refused);
    expect(passing).toThrow(refused);
    process.env['CAMPAIGN_KEY_VARIABLES'] = 'MINE';
    expect(passing).not.toThrow();
    expect(() => sent('https://api.example/v1')).toThrow(refused);
    const server = { kind: 'tinker' as const, url: 'http://evil.example' };
    expect(() => tinkerUrl(server)).toThrow(refused);
    process.env['TINKER_BASE_URL'] = 'http://tinker.example';
    expect(tinkerUrl(server)).toBe('http://tinker.example');
  });

  it('the files of open campaigns of a home allow what they name, also once a worker runs', async () => {
    process.env['MINE'] = 'a';
    const home = homeAt(folder);
    process.env['CAMPAIGN_ALLOWED'] = home.allowed;
    const user = { url: 'https://api.example/v1', model: 'm', apiKeyEnv: 'MINE' };
    const file = (name: string, target: object) => {
      writeCampaign({ file: join(folder, `${name}.yaml`), name, target, lines: '' });
      return loadCampaign({ file: join(folder, `${name}.yaml`) });
    };
    const open = new Set(['first']);
    const temporal = {
      client: {
        workflow: {
          getHandle: (name: string) => ({
            describe: async () => ({
              status: { name: open.has(name) ? 'RUNNING' : 'FAILED' },
              raw: {},
              typedSearchAttributes: new TypedSearchAttributes(),
            }),
          }),
        },
      },
    } as unknown as Temporal;
    const first = { ...bridge, command: ['python', `${projectRoot}/bridges/../x.py`], passEnv: ['MINE'], user };
    const campaign = file('first', first);
    await allowCampaign({ home, campaign, temporal });
    const { target } = located(withPlaces(campaign));
    expect(opening(target)).not.toThrow();
    expect(opening({ ...target, cwd: '/tmp' })).toThrow(refused);
    expect(() => keyOf('target.user.apiKeyEnv', { ...user, url: 'http://evil.example' })).toThrow(refused);

    expect(opening(bench)).toThrow(refused);
    await allowCampaign({ home, campaign: file('second', { ...bench, user }) });
    expect(opening(bench)).not.toThrow();
    expect(opening(target)).not.toThrow();
    open.delete('first');
    await allowCampaign({ home, campaign: file('third', bridge), temporal });
    expect(opening(bridge)).not.toThrow();
    for (const ended of [target, bench]) expect(opening(ended)).toThrow(refused);
  });

  it('a file is read only where the campaign put it into the store', async () => {
    const store = await openStore(folder);
    const secret = join(folder, 'secret.yaml');
    writeFileSync(secret, 'capabilities: [{ name: a_b, definition: x }]');
    const files = { 'given.yaml': 'capabilities: [{ name: a_b, definition: x }]' };
    const place = await give(store, { name: 'given.yaml', files });
    const open = async (capabilities: unknown) => {
      const spec = await atHand(store, { kind: 'given', capabilities });
      await kindOf(analysts, spec).open(spec, undefined);
    };
    await expect(open(place)).resolves.toBeUndefined();
    await expect(open(secret)).rejects.toThrow(refused);
    await expect(moduleFiles(folder)).rejects.toThrow(refused);
    expect(() => folderIn(folder, '../elsewhere')).toThrow(expect.objectContaining({ type: 'BadInput' }));
  });
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
  const known = [...Object.keys(bareEnvironment(['MINE'])), 'CAMPAIGN_PROGRAM', 'PWD'];
  expect(given.filter((name) => !known.includes(name))).toEqual([]);
  expect(Object.keys(programEnvironment())).not.toEqual(expect.arrayContaining(['EXAMPLE_API_KEY']));
  expect(programEnvironment()).toMatchObject({ MINE: 'a' });
  process.env['PYTHONPATH'] = '/elsewhere';
  expect(programEnvironment()).not.toHaveProperty('PYTHONPATH');
  process.env['CAMPAIGN_PYTHON'] = '/opt/python/bin/python';
  expect(programEnvironment()).toHaveProperty('PYTHONPATH');
});
