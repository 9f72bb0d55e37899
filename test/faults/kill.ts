/**
 * A real campaign in which every service is killed once during its rollouts (`make test-faults`). It must end with as many
 * rollouts as one that was left alone: nothing is lost and nothing is counted twice.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort } from '../../src/cli/checks/machine';
import { homeAt, type Home } from '../../src/cli/project';
import { liveHolder } from '../../src/cli/run/lock';
import { signalGroup, startTime, waitUntil } from '../../src/cli/run/processes';
import { readRunState } from '../../src/cli/run/run-state';
import { reportSchema } from '../../src/domain/report';

const repository = resolve(__dirname, '../..');
const model = process.env['BASE_MODEL'] ?? join(repository, 'models/base');
const MINUTE = 60_000;

function newCampaign(): { home: Home; file: string } {
  const folder = mkdtempSync(join(tmpdir(), 'faults-'));
  const file = join(folder, 'faults.yaml');
  // Base rollouts that last longer than all the kills. A short limit on silence: what a killed worker did is taken up soon.
  const text = `name: faults
preset: demo
target: { kind: builtin, name: shop }
baseModel: { path: ${JSON.stringify(model)} }
rollouts: { tasks: 120, perTask: 30 }
workers: { heartbeatSeconds: 20 }
`;
  writeFileSync(file, text);
  return { home: homeAt(join(folder, 'home')), file };
}

class Run {
  output = '';
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;

  constructor(
    private readonly home: Home,
    file: string,
    ports: string[],
  ) {
    const command = ['--home', home.root, 'run', file, '--until', 'selection', '--json', ...ports];
    this.child = spawn(join(repository, 'bin/campaign'), command, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) stream?.on('data', (text) => (this.output += text));
    this.exit = new Promise((done) => this.child.once('exit', done));
  }

  /** Waits until the output holds the text, so many times. */
  async says(text: string, times = 1): Promise<void> {
    const said = () => this.output.split(text).length > times || this.child.exitCode !== null;
    await waitUntil(said, 120);
    if (this.output.split(text).length <= times) throw new Error(`never said ${text}:\n${this.output}`);
  }

  /** Kills a service and waits until its successor runs. */
  async kill(name: string): Promise<void> {
    const pid = () => readRunState(this.home).processes.find((one) => one.name === name)?.pid;
    const victim = pid();
    if (victim === undefined) throw new Error(`${name} does not run:\n${this.output}`);
    process.kill(victim, 'SIGKILL');
    await this.says(`${name} died (ended by SIGKILL)`);
    expect(await waitUntil(() => ![undefined, victim].includes(pid()), 60)).toBe(true);
  }
}

const rollouts = (home: Home) => {
  const report = reportSchema.parse(JSON.parse(readFileSync(join(home.root, 'faults/report.json'), 'utf8')));
  expect(report.campaign.status).toBe('stopped_at_stage');
  // The artifacts differ: a rollout's record holds its seconds, and batching moves log-probs by round-off.
  return { scored: report.rollouts?.scored.value, broken: report.rollouts?.broken.value };
};

it(
  'a campaign goes on whatever is killed',
  async () => {
    const ports = ['--temporal-port', String(await freePort()), '--ui-port', String(await freePort())];
    const { home, file } = newCampaign();

    const first = new Run(home, file, ports);
    await first.says('base rollouts');
    for (const name of ['rollouts-worker', 'policy-server', 'control-worker', 'gpu-worker', 'temporal'])
      await first.kill(name);

    // The supervisor itself: what it ran ends by itself or is ended by the next one.
    const left = readRunState(home).processes;
    process.kill(liveHolder(home)?.pid ?? Number.NaN, 'SIGKILL');
    await first.exit;
    const second = new Run(home, file, ports);
    await second.says('goes on');
    expect(left.filter(({ pid, started }) => startTime(pid) === started)).toEqual([]);

    // Ctrl-C: in order.
    second.child.kill('SIGINT');
    expect(await second.exit).toBe(130);
    expect(second.output).toContain('the same command goes on with it');
    expect(readRunState(home).processes).toEqual([]);

    const third = new Run(home, file, ports);
    expect({ code: await third.exit, output: third.output }).toMatchObject({ code: 0 });
    const disturbed = rollouts(home);

    const alone = newCampaign();
    expect(await new Run(alone.home, alone.file, ports).exit).toBe(0);
    const undisturbed = rollouts(alone.home);
    expect(disturbed).toEqual(undisturbed);
    expect(disturbed).toMatchObject({ scored: 120 * 30, broken: 0 });
    for (const { pid } of left) expect(signalGroup(pid, 0)).toBe(false);
  },
  15 * MINUTE,
);
