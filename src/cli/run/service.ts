/**
 * A child process that is kept alive. Invariants: it leads a process group of its own, so that the terminal's Ctrl-C reaches the
 * supervisor alone and nothing of it outlives a kill; an unexpected death is followed by another start until it dies too often.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { UserError } from '../errors';
import { logTail, openLog, type LogFile } from './log-file';
import { signalGroup, startTime, waitUntil, type RecordedProcess } from './processes';

export interface ServiceSpec {
  name: string;
  command: string;
  args: string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Whether it can be used now; asked every 100 ms with the last lines that it wrote. */
  isReady: (output: string[]) => boolean | Promise<boolean>;
  readySeconds: number;
  /** How long it may take to end by itself after SIGTERM. */
  graceSeconds: number;
}

export interface RestartPolicy {
  /** A life shorter than this counts as a quick death. */
  quickSeconds: number;
  /** So many quick deaths one after the other, and the service has failed. */
  maxQuickDeaths: number;
  firstDelayMs: number;
  maxDelayMs: number;
}
export const restartPolicy: RestartPolicy = {
  quickSeconds: 20,
  maxQuickDeaths: 5,
  firstDelayMs: 500,
  maxDelayMs: 8000,
};

export interface ServiceHooks {
  /** A process was started or has ended: what must be remembered has changed. */
  onChange: () => void;
  onRestart: (event: { name: string; cause: string; log: string; delayMs: number }) => void;
  /** It died too often; it is not started again. */
  onFailure: (error: UserError) => void;
}

export class Service {
  readonly name: string;
  private child: ChildProcess | undefined;
  private log: LogFile | undefined;
  private started: string | undefined;
  private exit: { cause: string } | undefined;
  private exited: Promise<void> = Promise.resolve();
  private quickDeaths = 0;
  private stopping = false;

  constructor(
    private readonly spec: ServiceSpec,
    private readonly logs: string,
    private readonly hooks: ServiceHooks,
    private readonly policy: RestartPolicy = restartPolicy,
  ) {
    this.name = spec.name;
  }

  /** The process, as long as it or anything that it started lives. */
  get process(): RecordedProcess | undefined {
    const pid = this.child?.pid;
    if (pid === undefined || this.started === undefined || (this.exit && !signalGroup(pid, 0))) return undefined;
    return { name: this.name, pid, started: this.started };
  }

  /** Starts it and waits until it is ready. @throws UserError with the log's tail if it dies or takes too long. */
  async start(): Promise<void> {
    this.launch();
    await this.becomeReady();
    void this.watch();
  }

  /** Ends it: SIGTERM, then SIGKILL to its whole group after the grace time. */
  async stop(): Promise<void> {
    this.stopping = true;
    const pid = this.child?.pid;
    if (pid === undefined) return;
    if (!this.exit) this.child?.kill('SIGTERM');
    const ended = await waitUntil(() => this.exit !== undefined && !signalGroup(pid, 0), this.spec.graceSeconds);
    if (!ended) this.kill();
    await this.exited;
  }

  /** Ends it and everything that it started, at once. */
  kill(): void {
    this.stopping = true;
    if (this.child?.pid !== undefined) signalGroup(this.child.pid, 'SIGKILL');
  }

  private launch(): void {
    const { command, args, cwd, env } = this.spec;
    const log = openLog(this.logs, this.name);
    // stdin is never written to: its end tells the child that the supervisor is gone, even by kill -9.
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', log.descriptor, log.descriptor] });
    closeSync(log.descriptor);
    this.child = child;
    this.log = log;
    this.exit = undefined;
    this.started = child.pid === undefined ? undefined : startTime(child.pid);
    child.stdin?.on('error', () => undefined);
    this.exited = new Promise((resolve) => {
      const end = (cause: string) => {
        this.exit ??= { cause };
        this.hooks.onChange();
        resolve();
      };
      child.once('error', (error) => end(error.message));
      child.once('exit', (code, signal) => end(signal ? `ended by ${signal}` : `exit code ${code}`));
    });
    this.hooks.onChange();
  }

  private async becomeReady(): Promise<void> {
    const deadline = Date.now() + this.spec.readySeconds * 1000;
    for (;;) {
      if (this.exit) throw this.failure(`${this.name} did not start (${this.exit.cause})`);
      if (await this.spec.isReady(this.tail(500))) return;
      if (Date.now() > deadline) throw this.failure(`${this.name} was not ready after ${this.spec.readySeconds} s`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Starts it again whenever it dies, until it is stopped or dies too often. */
  private async watch(): Promise<void> {
    for (let born = Date.now(); ; born = Date.now()) {
      await this.exited;
      if (this.stopping) return;
      this.quickDeaths = Date.now() - born < this.policy.quickSeconds * 1000 ? this.quickDeaths + 1 : 1;
      const cause = this.exit?.cause ?? 'ended';
      if (this.quickDeaths >= this.policy.maxQuickDeaths)
        return this.hooks.onFailure(this.failure(`${this.name} died ${this.quickDeaths} times in a row (${cause})`));
      const delayMs = Math.min(this.policy.maxDelayMs, this.policy.firstDelayMs * 2 ** (this.quickDeaths - 1));
      this.hooks.onRestart({ name: this.name, cause, log: this.log?.path ?? '', delayMs });
      await this.endRemains();
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      if (this.stopping) return;
      this.launch();
      // Not becoming ready is one more death: the loop counts it.
      await this.becomeReady().catch(() => this.killUnlessStopping());
    }
  }

  /** What a dead process had started (a trainer that saves its checkpoint) ends before its successor begins. */
  private async endRemains(): Promise<void> {
    const pid = this.child?.pid;
    if (pid === undefined) return;
    const ended = await waitUntil(() => this.stopping || !signalGroup(pid, 0), this.spec.graceSeconds);
    if (!ended) signalGroup(pid, 'SIGKILL');
  }

  private killUnlessStopping(): void {
    if (!this.stopping && this.child?.pid !== undefined) signalGroup(this.child.pid, 'SIGKILL');
  }

  private tail(lines: number): string[] {
    return this.log ? logTail({ path: this.log.path, start: this.log.start, lines }) : [];
  }

  private failure(what: string): UserError {
    return new UserError(`${what}; the end of ${this.log?.path ?? 'its log'} says:`, this.tail(8));
  }
}
