/** The command line as a process: exit codes, and errors of one line. */
import type { Command } from 'commander';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createProgram } from '../../../src/cli/main';
import { writeStatus } from '../../../src/cli/watch/snapshot';
import { renderReport } from '../../../src/report/render';
import { campaign } from '../../support/campaign-command';
import { reportFixture } from '../../support/report-fixture';
import { shopParts } from '../../support/kinds';
import { newFolder } from '../../support/temporary-folder';

const repository = resolve(__dirname, '../../..');

const newHome = () => join(newFolder(), 'home');

/** A home with the report of a campaign `demo`. */
function homeWithReport(): string {
  const home = newHome();
  mkdirSync(join(home, 'demo'), { recursive: true });
  writeFileSync(join(home, 'demo', 'report.json'), renderReport({ report: reportFixture() }).json);
  return home;
}
const reports = homeWithReport();
const folder = newFolder();
const file = (name: string, text: string | Buffer): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const preload = join(repository, 'test/support/register.cjs');
const asks = (path: string) => `analyse ${path} --model m --url http://127.0.0.1:8000/v1`;

it('says its version', async () => {
  expect(await campaign(['--version'])).toEqual({ status: 0, stdout: '0.2.0\n', stderr: '' });
});

it('shows the report of a home that can only be read, and says that the page is not written', async () => {
  const home = homeWithReport();
  mkdirSync(join(home, 'demo', 'report.html'));
  const { status, stdout, stderr } = await campaign(['--home', home, 'report']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^Ship trace/);
  expect(stdout).toMatch(
    /report\.html is not written: a folder is in the place of a file; --out DIR writes it elsewhere\n$/,
  );
});

describe('a failure is one line and an exit code:', () => {
  const usage: [string, RegExp][] = [
    ['rnu', /^campaign: unknown command 'rnu' \(Did you mean run\?\)$/],
    ['run x.yaml --sed 3', /^campaign: unknown option '--sed' \(Did you mean --seed\?\)$/],
    ['run', /^campaign: missing required argument 'file'$/],
    ['run x.yaml --seed 1.5', /^campaign: .*'1\.5' is invalid\. It must be a whole number from 0\.$/],
    ['run x.yaml --training-seeds 1,1', /'1,1' is invalid\. It must be two or more different seeds, such as 1,2,3\.$/],
    ['run x.yaml --until training', /must be one of rollouts, selection, capabilities, router, evaluation\.$/],
    ['analyse x.jsonl --votes 2.5', /'2\.5' is invalid\. It must be a whole number from 1/],
    ['serve --ui-port 70000', /It must be a whole number from 0 to 65535\.$/],
    // No timer can wait so long.
    ['env check --silence 2147484 shop', /'2147484' is invalid\. It must be a whole number from 1 to 86400\.$/],
  ];
  const report = `--home ${reports} report --out`;
  const other = file('package.json', '{"name": "other"}');
  const refused: [string, RegExp][] = [
    ['doctor campaigns/demo.yaml --probe', /--probe asks a vLLM that runs; name a campaign file whose policyServer/],
    ['compare demo', /^campaign: compare takes two reports or more, not 1: /],
    ['--temporal-address h:7233 serve', /starts the home's own Temporal; leave out --temporal-address h:7233, /],
    [`--home ${newHome()} status demo`, /^campaign: there is no campaign demo in .*; none is known yet$/],
    ['run x.yaml', /^campaign: there is no campaign file x\.yaml; the shipped ones are in campaigns\/$/],
    [`plan ${folder}`, /^campaign: \S+ is a folder; name a campaign file, such as campaigns\/demo/],
    [asks(folder), /^campaign: (\S+) is a folder; name the files in it, such as \1\/\*\.jsonl$/],
    [asks(join(repository, 'models/base/model.safetensors')), /model\.safetensors is no text; name JSON lines/],
    // HTTP clients refuse that port.
    [
      asks(file('one.jsonl', '{}')).replace('8000', '9'),
      /it must be a URL with another port: 9 is of another protocol/,
    ],
    [`${report} /proc/x`, /nothing can be written into \/proc\/x: .*no folder can be made.*; name another folder$/],
    [`${report} /dev/null`, /\/dev\/null: a file is in the place of a folder; name another folder$/],
    [`${report} ${join(reports, 'demo/report.json/x')}`, /: a file is in the place of a folder; name another folder$/],
    [`--home ${reports} compare demo ${other}`, /package\.json is no report of this version \(.*\); name one that /],
    ['env check shpo', /^campaign: there is no built-in environment shpo; did you mean shop\?/],
  ];
  it.each([
    ...usage.map(([line, message]) => [line, 2, message] as const),
    ...refused.map(([line, message]) => [line, 1, message] as const),
  ])('%s: %i', async (line, status, message) => {
    const ended = await campaign(line.split(' '));
    expect(ended.stderr.trimEnd()).toMatch(message);
    expect(ended.stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(ended).toMatchObject({ status, stdout: '' });
  });
});

it('what a campaign lacks is told before anything is started', async () => {
  const home = newHome();
  const file = join(newFolder(), 'mine.yaml');
  writeFileSync(file, JSON.stringify({ name: 'mine', ...shopParts, baseModel: { path: 'no-model' } }));
  const ended = await campaign(['--home', home, 'run', file], { env: { CAMPAIGN_PYTHON: '/no/python' } });
  expect(ended.status).toBe(1);
  expect(ended.stderr).toContain('Python: there is no /no/python; run `make install`');
  expect(ended.stderr).toMatch(/base model: there is no folder .*no-model; make one with `make base-model`/);
  expect(existsSync(home)).toBe(false);
});

it('environments are checked, of a plug-in or as a program', async () => {
  const demo = 'campaigns/demo.yaml';
  expect(await campaign(['env', 'check', demo])).toMatchObject({ status: 0, stdout: `${demo} keeps the contract\n` });
  const dead = await campaign(['env', 'check', '--json', '--', 'false']);
  expect(dead.status).toBe(1);
  expect(JSON.parse(dead.stdout)).toMatchObject([
    { check: 'describe', problem: expect.stringContaining('exit code 1') },
  ]);
});

it.each([
  ['env check --silence 999999 campaigns/demo.yaml', 2],
  ['env check shpo', 1],
  ['env check -- echo no', 1],
  [`--home ${reports} lineage arms.trace.success_rate`, 0],
  [`--home ${reports} status demo`, 0],
  [`--home ${reports} status`, 0],
  [`--home ${reports} gateway demos`, 1],
])('%s: between its words no line is wider than the terminal', async (line, status) => {
  const [narrow, wide] = [await campaign(line.split(' '), { columns: 60 }), await campaign(line.split(' '))];
  const linesOf = ({ stdout, stderr }: typeof narrow) => `${stdout}${stderr}`.trimEnd().split('\n');
  expect(narrow.status).toBe(status);
  // Rows have columns of their own.
  expect(linesOf(narrow).filter((one) => one.length > 60 && /\S \S/.test(one) && !/\S {2}/.test(one))).toEqual([]);
  const words = (lines: string[]) => lines.join(' ').replace(/[│├└─\s]+|\d\.\d+/g, ' ');
  expect(words(linesOf(narrow))).toBe(words(linesOf(wide)));
});

it('output is whole however late it is read', async () => {
  const home = newHome();
  mkdirSync(join(home, 'big'), { recursive: true });
  const [stages, children] = [[], []];
  const seen = { name: 'big', runId: 'run', status: 'RUNNING', paused: false, startedAt: 0, activities: [], children };
  const child = {
    workflowId: 'big/arm/a',
    kind: 'arm',
    name: 'a',
    status: 'done',
    detail: 'x'.repeat(300_000),
  } as const;
  const rollouts = { scored: 0, broken: 0 };
  const progress = { campaign: 'big', seed: 1, paused: false, stages, rollouts, children: [child] };
  await writeStatus({ home, snapshot: { ...seen, progress } });
  const main = join(repository, 'src/cli/main.ts');
  const command = [process.execPath, '-r', preload, main, '--home', home, 'status', 'big'];
  // Slower than the command itself.
  const slow = `exec 3>&1; { "$@" --json; echo "code $?" >&3; } | { sleep 4; wc -c; }`;
  const { stdout } = spawnSync('sh', ['-c', slow, 'sh', ...command], { encoding: 'utf8' });
  expect(stdout).toMatch(/^code 0$/m);
  expect(Number(/^ *(\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(300_000);
  const gone = spawnSync('sh', ['-c', '"$@" --json | head -c 1', 'sh', ...command], { encoding: 'utf8' });
  expect(gone).toMatchObject({ stdout: '{', stderr: '' });
}, 30_000);

describe('help', () => {
  const shownIn = (command: Command): Command[] =>
    command
      .createHelp()
      .visibleCommands(command)
      .filter((one) => one.name() !== 'help');
  const commandsOf = (command: Command): Command[] => shownIn(command).flatMap((one) => [one, ...commandsOf(one)]);
  const commands = commandsOf(createProgram());

  it('names every command', async () => {
    const { status, stdout } = await campaign(['--help']);
    expect(status).toBe(0);
    expect(stdout).toContain('\n  campaign run campaigns/mine.yaml\n');
    const names = shownIn(createProgram()).map((one) => one.name());
    expect(names).toContain('run');
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
    const { stderr } = spawnSync(process.execPath, ['-r', preload, '-e', script], { encoding: 'utf8' });
    expect(stderr).toContain('/commander/');
    expect(stderr).not.toMatch(/node_modules\/(zod|yaml|@temporalio)\//);
  });
});
