/**
 * A child process that is kept alive. Invariants: it leads a process group of its own, so that the terminal's Ctrl-C reaches the
 * supervisor alone and nothing of it outlives a kill; an unexpected death is followed by another start until it dies too often.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { UserError } from '../errors';
import { logTail, openLog, type LogFile } from './log-file';
import { signalGroup, startTime, waitUntil, type RecordedProcess } from './processes';

/** Lines of a log that are looked through: a Go program's stack follows its cause. */
const TAIL_LINES = 500;

export interface ServiceSpec {
  name: string;
  command: string;
  /** A function is asked before every start: ports that nobody else knows are chosen anew. */
  args: string[] | (() => Promise<string[]>);
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Whether it can be used now; asked every 100 ms with the last lines that it wrote. */
  isReady: (output: string[]) => boolean | Promise<boolean>;
  readySeconds: number;
  /** How long it may take to end by itself after SIGTERM. */
  graceSeconds: number;
}

export interface RestartPolicy {
  /** Ending sooner than this after its start counts as a crash in a row. */
  minUptimeSeconds: number;
  /** So many crashes in a row, and the service has failed. */
  maxCrashes: number;
  initialDelayMs: number;
  maxDelayMs: number;
}
export const restartPolicy: RestartPolicy = {
  minUptimeSeconds: 20,
  maxCrashes: 5,
  initialDelayMs: 500,
  maxDelayMs: 8000,
};

/** A service that did not start or does not stay up; the end of its log is the evidence. */
export class ServiceError extends UserError {
  override name = 'ServiceError';
  constructor(
    message: string,
    evidence: string[],
    /** It says that an address is in use: with other ports it may start. */
    readonly portTaken: boolean,
  ) {
    super(message, evidence);
  }
}

export interface ServiceHooks {
  /** A process was started or has ended: what must be remembered has changed. */
  onChange: () => void;
  onRestart: (event: { name: string; cause: string; log: string; delayMs: number }) => void;
  /** It died too often; it is not started again. */
  onFailure: (error: ServiceError) => void;
}

export class Service {
  readonly name: string;
  private child: ChildProcess | undefined;
  private log: LogFile | undefined;
  private started: string | undefined;
  private exit: { cause: string } | undefined;
  private exited: Promise<void> = Promise.resolve();
  private crashes = 0;
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

  /** Starts it and waits until it is ready. @throws ServiceError with the log's tail if it dies or takes too long. */
  async start(): Promise<void> {
    await this.launch();
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

  private async launch(): Promise<void> {
    const { command, cwd, env } = this.spec;
    const args = typeof this.spec.args === 'function' ? await this.spec.args() : this.spec.args;
    if (this.stopping) throw new UserError(`${this.name} was stopped before it was started`);
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
      const ready = !this.exit && (await this.spec.isReady(this.tail(TAIL_LINES)));
      // It may have ended meanwhile, and somebody else may be answering on its port.
      if (this.exit) throw this.failure(`${this.name} did not start (${this.exit.cause})`);
      if (ready) return;
      if (Date.now() > deadline) throw this.failure(`${this.name} was not ready after ${this.spec.readySeconds} s`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Starts it again whenever it dies, until it is stopped or dies too often. */
  private async watch(): Promise<void> {
    for (let born = Date.now(); ; born = Date.now()) {
      await this.exited;
      if (this.stopping) return;
      this.crashes = Date.now() - born < this.policy.minUptimeSeconds * 1000 ? this.crashes + 1 : 1;
      const cause = this.exit?.cause ?? 'ended';
      if (this.crashes >= this.policy.maxCrashes)
        return this.hooks.onFailure(this.failure(`${this.name} died ${this.crashes} times in a row (${cause})`));
      const delayMs = Math.min(this.policy.maxDelayMs, this.policy.initialDelayMs * 2 ** (this.crashes - 1));
      this.hooks.onRestart({ name: this.name, cause, log: this.log?.path ?? '', delayMs });
      await this.endProcessGroup();
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      if (this.stopping) return;
      // Not becoming ready is one more crash: the loop counts it.
      await this.launch()
        .then(() => this.becomeReady())
        .catch(() => this.killUnlessStopping());
    }
  }

  /** What a dead process had started (a trainer that saves its checkpoint) ends before its successor begins. */
  private async endProcessGroup(): Promise<void> {
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

  private failure(what: string): ServiceError {
    const portTaken = this.tail(TAIL_LINES).some((line) => /address already in use/i.test(line));
    return new ServiceError(`${what}; the end of ${this.log?.path ?? 'its log'} says:`, this.tail(8), portTaken);
  }
}
