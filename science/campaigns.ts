/**
 * Campaigns of the studies, one after another, in one home. Invariants: a campaign's name follows from its fields, so that a finished one is
 * found and another configuration never takes its place; one that fails is named in the results, and the others go on.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { digest, sha256 } from '../src/artifacts/hash';
import { loadCampaign } from '../src/cli/campaign-file';
import { readReportFile } from '../src/cli/reports';
import { homeOf } from '../src/cli/options';
import { liveHolder } from '../src/cli/run/processes';
import type { Campaign, Stage } from '../src/domain/campaign';
import type { Report, SolverMatrix } from '../src/report/model';
import type { Base } from './bases';
import { commit } from './commit';
import { Interrupted, reasonIn, runProgram } from './processes';
import { say } from './say';
import { laidOver } from './scale';
import { repository } from './settings';

export interface CampaignSpec {
  name: string;
  seed: number;
  base: Base;
  /** Of the campaign file, beside name, seed and base model. */
  fields: Record<string, unknown>;
  until?: Stage;
}

/** A campaign that ran to its end. */
export interface Finished {
  name: string;
  seed: number;
  base: Base;
  campaign: Campaign;
  report: Report;
  reportSha256: string;
  /** Of the code that it ran with. */
  commit: string;
}

/** What a table rests on, and what is missing in it. */
export interface Source {
  campaign: string;
  seed: number;
  reportSha256?: string;
  commit?: string;
  failed?: string;
}

interface Options {
  home: string;
  /** Laid under the fields of every campaign. */
  fields: Record<string, unknown>;
  signal: AbortSignal;
}

/** How often it is looked whether an earlier run's campaign has ended. */
const LOOK_MS = 2_000;

export class Campaigns {
  readonly home: string;
  /** Names of those that did not come to their end, each once. */
  readonly failed = new Set<string>();

  constructor(private readonly options: Options) {
    this.home = join(options.home, 'campaigns');
  }

  /** Those that came to their end, and where each of them stands. */
  async all(specs: readonly CampaignSpec[]): Promise<{ finished: Finished[]; sources: Source[] }> {
    const ended: { finished?: Finished; source: Source }[] = [];
    for (const [n, spec] of specs.entries()) ended.push(await this.one(spec, `${n + 1} of ${specs.length}`));
    return {
      finished: ended.flatMap(({ finished }) => finished ?? []),
      sources: ended.map(({ source }) => source),
    };
  }

  private async one(spec: CampaignSpec, count: string): Promise<{ finished?: Finished; source: Source }> {
    const { name, file } = this.write(spec);
    const title = `${name} (${count})`;
    const known = this.find(spec, name, file);
    if (known) say(`${title}: found`);
    const finished = known ?? (await this.run({ spec, name, file, title }));
    const source = { campaign: name, seed: spec.seed };
    if (typeof finished === 'string') {
      this.failed.add(name);
      return { source: { ...source, failed: finished } };
    }
    const { reportSha256, commit: of } = finished;
    return { finished, source: { ...source, reportSha256, commit: of } };
  }

  /** The campaign file, under a name that its content gives. */
  private write({ name: wanted, seed, base, fields: own }: CampaignSpec): { name: string; file: string } {
    const fields = laidOver(this.options.fields, own);
    const name = `${wanted}-${digest({ fields, base: base.name }).slice(0, 6)}-${seed}`;
    const file = join(this.options.home, 'files', `${name}.yaml`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, stringify({ name, seed, preset: 'demo', baseModel: { path: base.path }, ...fields }));
    return { name, file };
  }

  private find({ seed, base, until }: CampaignSpec, name: string, file: string): Finished | undefined {
    const path = join(this.home, name, 'report.json');
    const ranWith = join(this.home, name, 'commit');
    if (!existsSync(path) || !existsSync(ranWith)) return undefined;
    const report = readReportFile(path);
    const isDone = report.campaign.status === 'completed' || report.campaign.stage === until;
    if (!isDone) return undefined;
    return {
      ...{ name, seed, base, report },
      campaign: loadCampaign({ file }),
      reportSha256: sha256(readFileSync(path)),
      commit: readFileSync(ranWith, 'utf8').trim(),
    };
  }

  /** @returns why it did not come to its end, where it did not. */
  private async run(o: { spec: CampaignSpec; name: string; file: string; title: string }): Promise<Finished | string> {
    const { spec, name, file, title } = o;
    const { signal, home } = this.options;
    await this.free();
    say(`${title}: begins or goes on`);
    const ports = ['--temporal-port', '0', '--ui-port', '0'];
    const until = spec.until ? ['--until', spec.until] : [];
    const log = join(home, 'logs', `${name}.log`);
    const args = ['--home', this.home, 'run', file, '--exit', ...ports, ...until];
    const command = join(repository, 'bin', 'campaign');
    const code = await runProgram({ title, command, args, cwd: repository, log, signal, progress: stageIn });
    if (code === 0) writeFileSync(join(this.home, name, 'commit'), `${commit()}\n`);
    const finished = code === 0 ? this.find(spec, name, file) : undefined;
    const reason = `exit code ${code}: ${reasonIn(log)}`;
    say(finished ? `${title}: done` : `${title}: FAILED, ${reason}; its log is ${log}`);
    return finished ?? reason;
  }

  /** Waits for a campaign whose harness was killed: it goes on without it. */
  private async free(): Promise<void> {
    const home = homeOf({ home: this.home });
    for (let told = false; ; told = true) {
      const holder = liveHolder(home);
      if (!holder) return;
      if (!told) say(`a campaign of an earlier run is still at work (pid ${holder.pid}): waiting for its end`);
      await pause(LOOK_MS, undefined, { signal: this.options.signal }).catch(() => {
        throw new Interrupted();
      });
    }
  }
}

/** Outcomes of all policies on the test tasks. The studies' targets are small: all of them stand in the report. */
export function matrixOf({ name, report }: Pick<Finished, 'name' | 'report'>): SolverMatrix {
  const matrix = report.solverMatrix?.inline;
  if (!matrix)
    throw new Error(`${name}: its report holds no outcomes by test task; evaluate on at most 400 test tasks`);
  return matrix;
}

/** Of the campaign's JSON lines: where it is. */
function stageIn(log: string): string {
  const line = log.trimEnd().split('\n').at(-1) ?? '';
  try {
    const { stage = '', child = '', detail = '' } = JSON.parse(line) as Record<string, string>;
    return [stage, child, detail].filter(Boolean).join(', ').slice(0, 160);
  } catch {
    return line.slice(0, 160);
  }
}
