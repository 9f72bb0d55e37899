/**
 * A campaign under disturbance: the same command again and again on one home, its phases, and what can be done to its processes.
 * Invariant: a wait ends with what it waits for or with an error that holds the command's whole output.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Home } from '../../src/cli/project';
import { CampaignRun } from './campaign-run';
import { hasChunks, StoredKeys, stepsOf, trainingsOf } from './faults-home';
import { processesOf, serviceOf, services, signal, trainersOf, type ServiceName } from './faults-processes';
import type { Random } from './faults-random';

/** On a machine that is busy with other things everything takes longer; nothing here is a measure of speed. */
const WAIT_SECONDS = 600;
const LOOK_MS = 30;

export const phases = [
  'base rollouts',
  'selection',
  'synthesis',
  'calibration',
  'training',
  'validation',
  'router',
  'evaluation',
] as const;
export type Phase = (typeof phases)[number];

export type ProcessName = ServiceName | 'trainer' | 'supervisor';

export class Session {
  readonly notes: string[] = [];
  readonly keys: StoredKeys;
  /** Run after the checks, whatever happened. */
  readonly cleanups: (() => Promise<void> | void)[] = [];
  private readonly runs: CampaignRun[] = [];
  private readonly began = Date.now();
  private endedAt: number | undefined;

  constructor(
    readonly home: Home,
    readonly file: string,
    readonly random: Random,
  ) {
    this.keys = new StoredKeys(home);
  }

  /** The command, as a user would give it (again). */
  start(...options: string[]): CampaignRun {
    const run = new CampaignRun(this.home, this.file, options);
    this.runs.push(run);
    return run;
  }

  get run(): CampaignRun {
    const run = this.runs.at(-1);
    if (!run) throw new Error('nothing was started');
    return run;
  }

  get output(): string {
    return this.runs.map(({ output }) => output).join('--- the same command again ---\n');
  }

  /** From the first start to the end of the last command. */
  get seconds(): number {
    return ((this.endedAt ?? Date.now()) - this.began) / 1000;
  }

  /** Waits for the command's end, and that it ends well. */
  async finish(): Promise<void> {
    const code = await this.run.exit;
    this.endedAt = Date.now();
    if (code !== 0) throw new Error(`campaign run ended with ${code}:\n${this.output}`);
  }

  /** @returns false if the command ended before. */
  async seen(condition: () => boolean, what: string): Promise<boolean> {
    for (const deadline = Date.now() + WAIT_SECONDS * 1000; ; await sleep(LOOK_MS)) {
      if (condition()) return true;
      if (this.run.ended) return condition();
      if (Date.now() > deadline) throw new Error(`waited ${WAIT_SECONDS} s for ${what}:\n${this.output}`);
    }
  }

  async until(condition: () => boolean, what: string): Promise<void> {
    if (!(await this.seen(condition, what))) throw new Error(`the command ended before ${what}:\n${this.output}`);
  }

  /** Waits until the phase has begun. */
  async phase(phase: Phase): Promise<void> {
    await this.until(() => this.hasBegun(phase), `the phase ${phase}`);
    const next = phases[phases.indexOf(phase) + 1];
    if (next && this.hasBegun(next)) this.notes.push(`${phase} was over`);
  }

  /** Reads the phase from the files on disk where they show it; the router's first rollouts look like others. */
  private hasBegun(phase: Phase): boolean {
    switch (phase) {
      case 'base rollouts':
        return hasChunks(this.home) || this.hasBegun('selection');
      case 'selection':
        return this.keys.matching(/^rollouts\//).length > 0;
      case 'synthesis':
        return this.keys.matching(/^selection\//).length > 0;
      case 'calibration':
        return this.keys.matching(/^self-test\//).length > 0;
      case 'training':
        return this.steps() > 0;
      case 'validation':
        return this.keys.matching(/^training\/[0-9a-f]+$/).length > 0;
      case 'router':
        return this.saysOf('router') || this.hasBegun('evaluation');
      case 'evaluation':
        return this.keys.matching(/^router\//).length > 0;
    }
  }

  private saysOf(stage: string): boolean {
    return this.runs.some((run) => run.lines().some((line) => line.stage === stage && line.status !== undefined));
  }

  /** Optimizer steps of all trainings. */
  steps(): number {
    return trainingsOf(this.home).reduce((sum, training) => sum + stepsOf(training).length, 0);
  }

  async untilSteps(steps: number): Promise<void> {
    await this.until(() => this.steps() >= steps, `${steps} optimizer steps`);
  }

  /** The pid of a process that runs now, of a service as soon as it runs; undefined if the campaign ends before. */
  async pidOf(name: ProcessName): Promise<number | undefined> {
    if (name === 'supervisor') return this.run.child.pid;
    const pid = () => (name === 'trainer' ? trainersOf(this.home)[0] : serviceOf(this.home, name));
    return (await this.seen(() => pid() !== undefined, `${name} to run`)) ? pid() : undefined;
  }

  /** Kills one process. After a supervisor the same command is given again; of everything else the successor is waited for. */
  async kill(name: ProcessName): Promise<void> {
    const pid = await this.pidOf(name);
    if (pid === undefined || !signal(pid, 'SIGKILL')) {
      this.notes.push(`no ${name} to kill`);
      return;
    }
    if (name === 'supervisor') {
      await this.run.exit;
      this.start();
    }
    if (name === 'supervisor' || name === 'trainer') return;
    const back = () => ![undefined, pid].includes(serviceOf(this.home, name));
    if (!(await this.seen(back, `${name} to come back`))) this.notes.push(`it ended before ${name} came back`);
  }

  /** Kills all processes at once, the supervisor first, so that no process is left to recover. */
  async killEverything(): Promise<void> {
    const found = processesOf(this.home);
    for (const { pid } of [{ pid: this.run.child.pid ?? Number.NaN }, ...found]) signal(pid, 'SIGKILL');
    await this.run.exit;
  }

  /** Stops a process (SIGSTOP) for so long, and lets it go on. */
  async hold(name: ProcessName, seconds: number): Promise<void> {
    const pid = await this.pidOf(name);
    if (pid === undefined || !signal(pid, 'SIGSTOP')) {
      this.notes.push(`no ${name} to hold`);
      return;
    }
    await sleep(seconds * 1000);
    signal(pid, 'SIGCONT');
  }

  /** The names of what runs now. */
  running(): ProcessName[] {
    const found = services.filter((name) => serviceOf(this.home, name) !== undefined);
    return [...found, ...(trainersOf(this.home).length > 0 ? (['trainer'] as const) : [])];
  }
}
