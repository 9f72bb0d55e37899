/**
 * A child process that is kept alive. Invariants: it leads a process group of its own, so that the terminal's Ctrl-C reaches the
 * supervisor alone and nothing of it outlives a kill; an unexpected death is followed by another start until it dies too often. Only its
 * very first start is final, unless somebody kills it meanwhile.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { messageOf, UserError } from '../errors';
import { logTail, openLog, type LogFile } from './log-file';
import { mark, recordOf, signalGroup, waitUntil, type RecordedProcess } from './processes';
import { Deaths, endingOf, restartPolicy, type Ending, type RestartPolicy } from './restarts';
import type { ServiceSpec } from './service-spec';

/** Lines of a log that are looked through: a Go program's stack follows its cause. */
const TAIL_LINES = 500;

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
  /** Whether a death may be for want of room where logs and databases are. */
  diskIsFull: () => boolean;
}

export class Service {
  readonly name: string;
  private child: ChildProcess | undefined;
  private log: LogFile | undefined;
  /** Its process group, until nothing of it lives any more: the system may give the number to somebody else then. */
  private group: number | undefined;
  private recorded: RecordedProcess | undefined;
  private exit: Ending | undefined;
  private exited: Promise<void> = Promise.resolve();
  private readonly deaths: Deaths;
  private stopping = false;

  constructor(
    private readonly spec: ServiceSpec,
    private readonly logs: string,
    private readonly hooks: ServiceHooks,
    policy: RestartPolicy = restartPolicy,
  ) {
    this.name = spec.name;
    this.deaths = new Deaths(policy);
  }

  /** The process, as long as it or anything that it started lives. */
  get process(): RecordedProcess | undefined {
    return this.signal(0) ? this.recorded : undefined;
  }

  /** Starts it and waits until it is ready. @throws ServiceError with the log's tail if it ends by itself or takes too long. */
  async start(): Promise<void> {
    for (let ready = false; !ready;) {
      await this.launch();
      try {
        await this.becomeReady();
        ready = true;
      } catch (error) {
        if (this.stopping || !this.exit?.killed) throw error;
        await this.waitToRestart({ ending: this.exit, uptimeMs: 0 });
      }
    }
    void this.watch();
  }

  /** Ends it: SIGTERM, then SIGKILL to its whole group after the grace time. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.child?.kill('SIGTERM');
    const ended = await waitUntil(() => !this.signal(0), this.spec.graceSeconds);
    if (!ended) this.kill();
    await this.exited;
  }

  /** Ends it and everything that it started, at once. */
  kill(): void {
    this.stopping = true;
    this.signal('SIGKILL');
  }

  /** Signals the whole process group. @returns whether anything of it lives. */
  private signal(signal: NodeJS.Signals | 0): boolean {
    if (this.group !== undefined && !signalGroup(this.group, signal)) this.group = undefined;
    return this.group !== undefined;
  }

  private async launch(): Promise<void> {
    const { command, cwd } = this.spec;
    const env = { ...this.spec.env, ...mark };
    const args = typeof this.spec.args === 'function' ? await this.spec.args() : this.spec.args;
    if (this.stopping) throw new UserError(`${this.name} was stopped before it was started`);
    const log = openLog(this.logs, this.name);
    // stdin is never written to: its end tells the child that the supervisor is gone, even by kill -9.
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', log.descriptor, log.descriptor] });
    closeSync(log.descriptor);
    this.child = child;
    this.log = log;
    this.exit = undefined;
    this.group = child.pid;
    this.recorded = child.pid === undefined ? undefined : recordOf({ name: this.name, pid: child.pid });
    child.stdin?.on('error', () => undefined);
    this.exited = new Promise((resolve) => {
      const end = (ending: Ending) => {
        this.exit ??= ending;
        // At once, so that a number that is free again is known as such.
        this.signal(0);
        this.hooks.onChange();
        resolve();
      };
      child.once('error', (error) => end({ cause: error.message, killed: false }));
      child.once('exit', (code, signal) => end(endingOf(code, signal, this.spec.stopsWhenFaulty)));
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
      if (Date.now() > deadline) {
        const cause = `was not ready after ${this.spec.readySeconds} s`;
        this.exit = { cause, killed: false };
        throw this.failure(`${this.name} ${cause}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Starts it again whenever it dies, until it is stopped or dies too often. */
  private async watch(): Promise<void> {
    for (let born = Date.now(); ; born = Date.now()) {
      await this.exited;
      if (this.stopping || !this.exit) return;
      try {
        await this.waitToRestart({ ending: this.exit, uptimeMs: Date.now() - born });
      } catch (error) {
        return this.hooks.onFailure(error as ServiceError);
      }
      // Not coming up is one more death: the loop counts it.
      try {
        await this.launch();
      } catch (error) {
        this.exit = { cause: messageOf(error), killed: false };
        continue;
      }
      await this.becomeReady().catch(() => this.killUnlessStopping());
    }
  }

  /** After a death. @throws ServiceError if it was one too many. */
  private async waitToRestart({ ending, uptimeMs }: { ending: Ending; uptimeMs: number }): Promise<void> {
    const { cause, killed, faulty } = ending;
    const next = this.deaths.next({ killed, faulty, uptimeMs, diskIsFull: !killed && this.hooks.diskIsFull() });
    if ('times' in next) throw this.failure(`${this.name} died ${next.times} times in a row (${cause})`);
    this.hooks.onRestart({ name: this.name, cause, log: this.log?.path ?? '', delayMs: next.delayMs });
    await this.endProcessGroup();
    await new Promise((resolve) => setTimeout(resolve, next.delayMs));
  }

  /** What a dead process had started (a trainer that saves its checkpoint) ends before its successor begins. */
  private async endProcessGroup(): Promise<void> {
    const ended = await waitUntil(() => this.stopping || !this.signal(0), this.spec.graceSeconds);
    if (!ended) this.signal('SIGKILL');
  }

  private killUnlessStopping(): void {
    if (!this.stopping) this.signal('SIGKILL');
  }

  private tail(lines: number): string[] {
    return this.log ? logTail({ path: this.log.path, start: this.log.start, lines }) : [];
  }

  private failure(what: string): ServiceError {
    const portTaken = this.tail(TAIL_LINES).some((line) => /address already in use/i.test(line));
    return new ServiceError(`${what}; the end of ${this.log?.path ?? 'its log'} says:`, this.tail(8), portTaken);
  }
}
