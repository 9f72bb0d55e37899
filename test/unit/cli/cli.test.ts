/** The command line as a process: exit codes, and errors of one line. */
import type { Command } from 'commander';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createProgram, main } from '../../../src/cli/main';
import { writeStatus } from '../../../src/cli/watch/snapshot';
import { renderReport } from '../../../src/report/render';
import { reportFixture } from '../../support/report-fixture';

const repository = resolve(__dirname, '../../..');

/** Runs a command line in this process, as bin/campaign does. */
async function campaign(args: string[], env: NodeJS.ProcessEnv = {}) {
  const { argv, env: environment } = process;
  const output = { stdout: '', stderr: '' };
  const spies = [
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean((output.stdout += String(text)))),
    jest.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean((output.stderr += String(text)))),
    jest.spyOn(console, 'log').mockImplementation((text) => void (output.stdout += `${text}\n`)),
  ];
  process.argv = [...argv.slice(0, 2), ...args];
  process.env = { ...environment, ...env };
  delete process.env['CAMPAIGN_HOME'];
  try {
    return { status: await main(args), ...output };
  } finally {
    Object.assign(process, { argv, env: environment, exitCode: undefined });
    for (const spy of spies) spy.mockRestore();
  }
}
const newHome = () => join(mkdtempSync(join(tmpdir(), 'cli-')), 'home');

/** A home with the report of a campaign `demo`. */
function homeWithReport(change: (json: string) => string = (json) => json): string {
  const home = newHome();
  mkdirSync(join(home, 'demo'), { recursive: true });
  writeFileSync(join(home, 'demo', 'report.json'), change(renderReport({ report: reportFixture() }).json));
  return home;
}
const reports = homeWithReport();
const folder = mkdtempSync(join(tmpdir(), 'cli-named-'));
const file = (name: string, text: string | Buffer): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const asks = (...files: string[]) => ['analyse', ...files, '--model', 'm', '--url', 'http://127.0.0.1:8000/v1'];

it('says its version', async () => {
  expect(await campaign(['--version'])).toEqual({ status: 0, stdout: '0.2.0\n', stderr: '' });
});

it('shows the report of a home that can only be read, and says that the page is not written', async () => {
  const home = homeWithReport();
  mkdirSync(join(home, 'demo', 'report.html'));
  const { status, stdout, stderr } = await campaign(['--home', home, 'report']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^demo {2}completed/);
  expect(stdout).toMatch(
    /report\.html is not written: a folder is in the place of a file; --out DIR writes it elsewhere\n$/,
  );
});

describe('a failure is one line and an exit code:', () => {
  const cases: [string, string[], number, RegExp][] = [
    ['a mistyped command', ['rnu'], 2, /^campaign: unknown command 'rnu' \(Did you mean run\?\)$/],
    [
      'a mistyped option',
      ['run', 'x.yaml', '--sed', '3'],
      2,
      /^campaign: unknown option '--sed' \(Did you mean --seed\?\)$/,
    ],
    ['a missing argument', ['run'], 2, /^campaign: missing required argument 'file'$/],
    [
      'a seed',
      ['run', 'x.yaml', '--seed', '1.5'],
      2,
      /^campaign: .*'1\.5' is invalid\. It must be a whole number from 0\.$/,
    ],
    [
      'one training seed twice',
      ['run', 'x.yaml', '--training-seeds', '1,1'],
      2,
      /^campaign: .*'1,1' is invalid\. It must be two or more different seeds, such as 1,2,3\.$/,
    ],
    ['one report', ['compare', 'demo'], 1, /^campaign: compare takes two reports or more, not 1: /],
    [
      'a stage',
      ['run', 'x.yaml', '--until', 'training'],
      2,
      /It must be one of rollouts, selection, capabilities, router, evaluation\.$/,
    ],
    ['a port', ['serve', '--ui-port', '70000'], 2, /It must be a whole number from 0 to 65535\.$/],
    [
      'a silence that no timer can wait for',
      ['env', 'check', '--silence', '2147484', 'shop'],
      2,
      /^campaign: .*'2147484' is invalid\. It must be a whole number from 1 to 86400\.$/,
    ],
    [
      'a cluster that is to be served',
      ['--temporal-address', 'h:7233', 'serve'],
      1,
      /^campaign: `campaign serve` starts the home's own Temporal; leave out --temporal-address h:7233, /,
    ],
    [
      'a file',
      ['run', 'x.yaml'],
      1,
      /^campaign: there is no campaign file x\.yaml; the shipped ones are in campaigns\/$/,
    ],
    [
      'a folder as a file',
      ['plan', folder],
      1,
      /^campaign: \S+ is a folder; name a campaign file, such as campaigns\/demo/,
    ],
    [
      'a folder of conversations',
      asks(folder),
      1,
      /^campaign: (\S+) is a folder; name the files in it, such as \1\/\*\.jsonl$/,
    ],
    [
      'conversations that are no text',
      asks(join(repository, 'models/base/model.safetensors')),
      1,
      /model\.safetensors is no text; name JSON lines \(docs\/conversations\.md\), or logs of Inspect \(\.eval, \.json\)$/,
    ],
    [
      'a port that HTTP clients refuse',
      ['analyse', file('one.jsonl', '{}'), '--model', 'm', '--url', 'http://127.0.0.1:9/v1'],
      1,
      /^campaign: url is "http:\/\/127\.0\.0\.1:9\/v1"; it must be a URL with another port: 9 is of another protocol/,
    ],
    [
      'an output where no folder can be',
      ['--home', reports, 'report', '--out', '/proc/x'],
      1,
      /^campaign: nothing can be written into \/proc\/x: .*no folder can be made.*; name another folder$/,
    ],
    [
      'a device as output',
      ['--home', reports, 'report', '--out', '/dev/null'],
      1,
      /^campaign: nothing can be written into \/dev\/null: a file is in the place of a folder; name another folder$/,
    ],
    [
      'a file in the way of the output',
      ['--home', reports, 'report', '--out', join(reports, 'demo', 'report.json', 'x')],
      1,
      /: a file is in the place of a folder; name another folder$/,
    ],
    [
      'a report that is cut off',
      ['--home', homeWithReport((json) => json.slice(0, 5000)), 'report'],
      1,
      /demo\/report\.json is no JSON, or cut off \(.*\); the same `campaign run FILE` writes it anew$/,
    ],
    [
      'a file that is no report',
      ['--home', reports, 'compare', 'demo', file('package.json', '{"name": "other"}')],
      1,
      /package\.json is no report of this version \(.*\); name one that `campaign run` or `campaign report --out` of this version wrote$/,
    ],
    [
      'an environment',
      ['env', 'check', 'shpo'],
      1,
      /^campaign: there is no built-in environment shpo; did you mean shop\?/,
    ],
  ];
  it.each(cases)('%s', async (_what, args, status, line) => {
    const ended = await campaign(args);
    expect(ended.stderr.trimEnd()).toMatch(line);
    expect(ended.stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(ended).toMatchObject({ status, stdout: '' });
  });

  it('no server to ask', async () => {
    const ended = await campaign(['--home', newHome(), 'pause', 'demo']);
    expect(ended.status).toBe(1);
    expect(ended.stderr).toMatch(/^campaign: no Temporal server of .* is running; start it with `campaign serve`/);
  });

  it('a campaign that neither a server nor the home knows', async () => {
    const ended = await campaign(['--home', newHome(), 'status', 'demo']);
    expect(ended).toMatchObject({ status: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^campaign: there is no campaign demo in .*; none is known yet\n$/);
  });

  it('a server that does not answer', async () => {
    const ended = await campaign(['--temporal-address', '127.0.0.1:1', 'status']);
    expect(ended.status).toBe(1);
    expect(ended.stderr).toMatch(/^campaign: no Temporal server answers at 127\.0\.0\.1:1 /);
  });
});

it('what a campaign lacks is told before anything is started', async () => {
  const home = newHome();
  const file = join(mkdtempSync(join(tmpdir(), 'cli-')), 'mine.yaml');
  writeFileSync(file, 'name: mine\ntarget: {kind: builtin, name: shop}\nbaseModel: {path: no-model}\n');
  const ended = await campaign(['--home', home, 'run', file], { CAMPAIGN_PYTHON: '/no/python' });
  expect(ended.status).toBe(1);
  expect(ended.stderr).toContain('Python: there is no /no/python; run `make install`');
  expect(ended.stderr).toMatch(/base model: there is no folder .*no-model; make one with `make base-model`/);
  expect(existsSync(home)).toBe(false);
});

it('environments are checked, built in or as a program', async () => {
  expect(await campaign(['env', 'check', 'shop'])).toMatchObject({ status: 0, stdout: 'shop keeps the contract\n' });
  const dead = await campaign(['env', 'check', '--json', '--', 'false']);
  expect(dead.status).toBe(1);
  expect(JSON.parse(dead.stdout)).toMatchObject([
    { check: 'describe', problem: expect.stringContaining('exit code 1') },
  ]);
});

it('output is whole however late it is read', async () => {
  const home = newHome();
  mkdirSync(join(home, 'big'), { recursive: true });
  const told = { campaign: 'big', seed: 1, paused: false, stages: [], rollouts: { scored: 0, broken: 0 } };
  const child = {
    workflowId: 'big/capability/a',
    kind: 'capability' as const,
    name: 'a',
    status: 'done' as const,
    detail: 'x'.repeat(300_000),
  };
  const progress = { ...told, children: [child] };
  const seen = {
    name: 'big',
    runId: 'run',
    status: 'RUNNING',
    paused: false,
    startedAt: 0,
    activities: [],
    children: [],
  };
  await writeStatus({ home, snapshot: { ...seen, progress } });
  const preload = join(repository, 'test/support/register.cjs');
  const command = [
    process.execPath,
    '-r',
    preload,
    join(repository, 'src/cli/main.ts'),
    '--home',
    home,
    'status',
    'big',
  ];
  // Slower than the command itself.
  const slow = `exec 3>&1; { "$@" --json; echo "code $?" >&3; } | { sleep 4; wc -c; }`;
  const { stdout } = spawnSync('sh', ['-c', slow, 'sh', ...command], { encoding: 'utf8' });
  expect(stdout).toMatch(/^code 0$/m);
  expect(Number(/^ *(\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(300_000);
  const gone = spawnSync('sh', ['-c', '"$@" --json | head -c 1', 'sh', ...command], { encoding: 'utf8' });
  expect(gone).toMatchObject({ stdout: '{', stderr: '' });
}, 30_000);

describe('help', () => {
  const commandsOf = (command: Command): Command[] => command.commands.flatMap((one) => [one, ...commandsOf(one)]);
  const commands = commandsOf(createProgram());

  it('names every command', async () => {
    const { status, stdout } = await campaign(['--help']);
    expect(status).toBe(0);
    expect(stdout).toContain('\n  campaign run campaigns/mine.yaml\n');
    const names = createProgram().commands.map((one) => one.name());
    expect(names).toHaveLength(26);
    for (const name of names) expect(stdout).toMatch(new RegExp(`^ {2}${name}\\b`, 'm'));
  });

  it.each(commands.filter((one) => one.commands.length === 0).map((one) => [one.name(), one] as const))(
    'of %s has a description and an example',
    (_name, command) => {
      const write = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
      command.outputHelp();
      const text = write.mock.calls.map(([chunk]) => String(chunk)).join('');
      write.mockRestore();
      expect(command.description()).not.toBe('');
      expect(text).toMatch(/\nExamples?:\n(?:.*\n)* {2}campaign .*\n/);
    },
  );

  it('comes without the modules that are slow to load', () => {
    const script = `require(${JSON.stringify(join(repository, 'src/cli/main.ts'))}).main(['--help']).then(() => {
      for (const file of Object.keys(require.cache)) console.error(file);
    });`;
    const { stderr } = spawnSync(
      process.execPath,
      ['-r', join(repository, 'test/support/register.cjs'), '-e', script],
      {
        encoding: 'utf8',
      },
    );
    expect(stderr).toContain('/commander/');
    expect(stderr).not.toMatch(/node_modules\/(zod|yaml|@temporalio)\//);
  });
});
