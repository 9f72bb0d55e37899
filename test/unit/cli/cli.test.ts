/** The command line: its size, exit codes, and errors with code, field, value and fix. */
import type { Command } from 'commander';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
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

/** `_hidden`: commander tells only help which commands are hidden. */
const isShown = (command: Command): boolean => !(command as unknown as { _hidden: boolean })._hidden;

it('there are at most 22 commands and 50 options', () => {
  const program = createProgram();
  const commands = program.commands.filter(isShown);
  const options = [program, ...commands].flatMap((one) => one.options.filter(({ hidden }) => !hidden));
  expect(commands.length).toBeLessThanOrEqual(22);
  expect(options.filter(({ long }) => long !== '--version').length).toBeLessThanOrEqual(50);
});

it('shows the report of a home that can only be read', async () => {
  const home = homeWithReport();
  mkdirSync(join(home, 'demo', 'report.html'));
  const { status, stdout, stderr } = await campaign(['--home', home, 'report']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^Ship trace/m);
});

describe('a failure is one line with exit code and code:', () => {
  const report = `--home ${reports} report --out`;
  const old = file('old.yaml', 'name: old\nrouter: { kind: moe_gate }\n');
  const typo = file('typo.yaml', 'name: x\nbaseModel: { path: m }\ntarget: { kind: proces, command: [x] }\n');
  it.each<[line: string, status: number, code: string, ...words: string[]]>([
    ['rnu', 2, 'unknown_command', 'rnu', 'run'],
    ['run x.yaml --sed 3', 2, 'unknown_option', '--sed', '--seed'],
    ['run', 2, 'missing_argument', 'file'],
    ['reject demo all --reason', 2, 'option_missing_argument', '--reason'],
    ['run x.yaml --seed 1.5', 2, 'invalid_argument', '--seed', '1.5', 'whole number'],
    ['run x.yaml --until training', 2, 'invalid_argument', '--until', 'training', 'rollouts'],
    ['run x.yaml --ui-port 70000', 2, 'invalid_argument', '--ui-port', '70000', '65535'],
    ['doctor x --option', 2, 'removed_command', 'doctor', 'check'],
    ['run x.yaml', 2, 'unreadable_file', 'campaign file', 'x.yaml', 'campaigns/demo.yaml'],
    [`check ${folder}`, 2, 'unreadable_file', folder, 'campaigns/demo.yaml'],
    [`check ${old}`, 2, 'removed_field', 'router.kind', 'moe_gate', 'delete the line'],
    [`check ${typo}`, 2, 'invalid_value', 'target.kind', 'proces', "'process'"],
    ['check a.yaml b.yaml', 2, 'invalid_argument', 'target', 'a.yaml b.yaml', '--'],
    ['check nowhere.js', 2, 'unreadable_file', 'module', 'nowhere.js', '--'],
    [`analyse ${folder} --model m`, 2, 'missing_field', 'url', '--url'],
  ])('%s: %i %s', async (line, status, code, ...words) => {
    const ended = await campaign(line.split(' '), { columns: 60 });
    expect(ended).toMatchObject({ status, stdout: '' });
    const text = ended.stderr.replace(/\s+/g, ' ');
    expect(text).toContain(`[${code}]`);
    for (const word of words) expect(text).toContain(word);
    for (const row of ended.stderr.split('\n')) if (row.includes(' ')) expect(row.length).toBeLessThanOrEqual(80);
  });

  it.each([
    `--home ${newHome()} status demo`,
    asks(folder),
    asks(join(repository, 'models/base/model.safetensors')),
    // HTTP clients refuse that port.
    asks(file('one.jsonl', '{}')).replace('8000', '9'),
    `${report} /proc/x`,
    `${report} /dev/null`,
  ])('%s', async (line) => {
    const ended = await campaign(line.split(' '));
    expect(ended.stderr.trimEnd()).toMatch(/^campaign: .*$/);
    expect(ended.stdout).toBe('');
    expect(ended.status).toBeGreaterThan(0);
  });
});

it('a port that is in use is named with the fix', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = String((server.address() as AddressInfo).port);
  const { status, stderr } = await campaign(['--home', reports, 'view', '--port', port]);
  server.close();
  expect(status).toBe(1);
  expect(stderr).toMatch(new RegExp(`^campaign: --port is ${port}: .*; choose another port.* \\[port_in_use\\]$`, 'm'));
});

it('what a campaign lacks is told before anything is started', async () => {
  const home = newHome();
  const file = join(newFolder(), 'mine.yaml');
  writeFileSync(file, JSON.stringify({ name: 'mine', ...shopParts, baseModel: { path: 'no-model' } }));
  const ended = await campaign(['--home', home, 'run', file], { env: { CAMPAIGN_PYTHON: '/no/python' } });
  expect(ended.status).toBe(1);
  expect(ended.stderr).toContain('Python: ');
  expect(ended.stderr).toContain('base model: ');
  expect(existsSync(home)).toBe(false);
});

it('check finds a program that does not keep the contract', async () => {
  const file = join(newFolder(), 'dead.yaml');
  writeFileSync(file, 'target: { kind: process, command: ["false"] }\n');
  for (const words of [`${file} --target`, '-- false']) {
    const dead = await campaign(['check', '--json', ...words.split(' ')]);
    expect(dead.status).toBe(1);
    expect(JSON.parse(dead.stdout)).toMatchObject({ findings: [{ check: 'describe' }] });
  }
});

it('output is whole however late it is read', async () => {
  const home = newHome();
  mkdirSync(join(home, 'big'), { recursive: true });
  const [stages, children] = [[], []];
  const seen = { name: 'big', runId: 'run', status: 'RUNNING', startedAt: 0, activities: [], children };
  const child = {
    workflowId: 'big/arm/a',
    kind: 'arm',
    name: 'a',
    status: 'completed',
    detail: 'x'.repeat(300_000),
  } as const;
  const rollouts = { scored: 0, broken: 0 };
  const progress = { campaign: 'big', seed: 1, stages, rollouts, children: [child] };
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
});
