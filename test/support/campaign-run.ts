/** A `campaign run` in a process of its own, for tests that disturb it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { homeAt, type Home } from '../../src/cli/project';
import { waitUntil } from '../../src/cli/run/processes';
import { readRunState } from '../../src/cli/run/run-state';

export const repository = resolve(__dirname, '../..');
const model = process.env['BASE_MODEL'] ?? join(repository, 'models/base');

/** A campaign file on `shop` with the given further lines, and a home folder that nothing else uses. */
export function newCampaign(name: string, lines: string): { home: Home; file: string } {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const file = join(folder, `${name}.yaml`);
  const target = 'target: { kind: builtin, name: shop }';
  writeFileSync(
    file,
    `name: ${name}\npreset: demo\n${target}\nbaseModel: { path: ${JSON.stringify(model)} }\n${lines}`,
  );
  return { home: homeAt(join(folder, 'home')), file };
}

export class CampaignRun {
  output = '';
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;

  constructor(
    private readonly home: Home,
    file: string,
    options: string[],
  ) {
    const command = ['--home', home.root, 'run', file, '--exit', '--json', ...options];
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
    if (!(await waitUntil(() => ![undefined, victim].includes(pid()), 60)))
      throw new Error(`${name} did not come back`);
  }
}
