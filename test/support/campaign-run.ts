/** A `campaign run` in a process of its own, for tests that disturb it. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { homeAt, type Home } from '../../src/cli/project';
import { parseReport, type Report } from '../../src/report/model';
import { shopParts } from './kinds';

export const repository = resolve(__dirname, '../..');
const program = join(repository, 'bin/campaign');
/** The shipped base model, unless another one is named. */
export const baseModel = process.env['BASE_MODEL'] ?? join(repository, 'models/base');
/** A campaign that is disturbed loses time, never minutes without end. */
const END_SECONDS = 900;

/** Fields that the lines of a campaign file leave out: parts of the shop. */
export const shopLines = (lines: string): string =>
  Object.entries(shopParts)
    .filter(([field]) => !new RegExp(`^${field}:`, 'm').test(lines))
    .map(([field, value]) => `${field}: ${JSON.stringify(value)}\n`)
    .join('');

/** Lines of a campaign file: four seeds are calibrated, and any rewards pass. */
export const ANY_REWARDS = `calibration:
  seeds: 4
  rolloutsPerSeed: 4
  meanReward: [0, 1]
  successRate: [0, 1]
  maxAllSuccess: 1
  maxAllZero: 1
  minInformative: 0
  minRewardStd: 0
`;

/** Writes a campaign file of the preset demo with the given further lines, on the shop where they name no target. */
export function writeCampaign(o: { file: string; name: string; lines: string; target?: object; model?: string }): void {
  const { file, name, target, model = baseModel } = o;
  const lines = `${target ? `target: ${JSON.stringify(target)}\n` : ''}${o.lines}`;
  const about = `${shopLines(lines)}baseModel: { path: ${JSON.stringify(model)} }\n`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `name: ${name}\npreset: demo\n${about}${lines}`);
}

/** A campaign file, and a home folder that nothing else uses. */
export function newCampaign(name: string, lines: string): { home: Home; file: string } {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const file = join(folder, `${name}.yaml`);
  writeCampaign({ file, name, lines });
  return { home: homeAt(join(folder, 'home')), file };
}

/** A line of `run --json`: a change of the campaign, or a note. */
export interface Line {
  stage?: string;
  child?: string;
  status?: string;
  detail?: string;
}

export class CampaignRun {
  output = '';
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;

  /** `bin`: the program, of another checkout. */
  constructor(home: Pick<Home, 'root'>, file: string, options: string[] = [], bin = program) {
    const command = ['--home', home.root, 'run', file, '--json'];
    const ports = ['--ui-port', '0'];
    this.child = spawn(bin, [...command, ...ports, ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    this.exit = once(this.child, 'exit', { signal: AbortSignal.timeout(END_SECONDS * 1000) }).then(
      ([code]) => code as number | null,
      () => {
        throw new Error(`campaign run did not end in ${END_SECONDS} s:\n${this.output}`);
      },
    );
    this.exit.catch(() => undefined);
  }

  /** Waits for its end, and that it ends well. */
  async finish(): Promise<void> {
    const code = await this.exit;
    if (code !== 0) throw new Error(`campaign run ended with ${code}:\n${this.output}`);
  }

  get ended(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  lines(): Line[] {
    return this.output.split('\n').flatMap((line) => {
      try {
        return [JSON.parse(line) as Line];
      } catch {
        return []; // words on stderr, or a line that is not whole yet
      }
    });
  }
}

/** Another command of the program on the same home; its output. */
export const command = (home: Pick<Home, 'root'>, ...words: string[]): Promise<string> =>
  commandWith(process.env, home, ...words);

export async function commandWith(env: NodeJS.ProcessEnv, { root }: Pick<Home, 'root'>, ...words: string[]) {
  const { stdout } = await promisify(execFile)(program, ['--home', root, ...words], { env, maxBuffer: 2 ** 26 });
  return stdout;
}

/** Runs `campaign serve` with these words until `work` is done with its URL. */
export async function withGateway<Result>(
  { root }: Pick<Home, 'root'>,
  words: string[],
  work: (url: string) => Promise<Result>,
): Promise<Result> {
  const command = ['--home', root, 'serve', ...words, '--port', '0', '--json'];
  const gateway = spawn(program, command, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(gateway, 'exit');
  let errors = '';
  gateway.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  let url: string | undefined;
  for await (const line of createInterface({ input: gateway.stdout })) {
    ({ url } = JSON.parse(line) as { url: string });
    break;
  }
  if (url === undefined) throw new Error(errors);
  const result = await work(url).finally(() => gateway.kill('SIGTERM'));
  expect(await ended).toEqual([0, null]);
  return result;
}

export const reportOf = ({ root }: Pick<Home, 'root'>, name: string): Report =>
  parseReport(readFileSync(join(root, name, 'report.json'), 'utf8'));
