/**
 * A child process that is kept alive.
 * Invariants: it leads a process group of its own, so that the terminal's Ctrl-C reaches the supervisor alone and nothing of it outlives a kill;
 * an unexpected death is followed by another start until it dies too often, where a kill from outside never counts as a crash of its own; only
 * its very first start is final, unless somebody kills it meanwhile.
 */
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf, UserError } from '../errors';
import { mark, type RecordedProcess, recordOf, signalGroup, waitUntil } from './processes';

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
  /** Whether it ends itself, with an exit code of its own, when it fails all that it takes. */
  stopsWhenFaulty?: boolean;
}

const ROTATE_BYTES = 20 * 1024 * 1024;
const TAIL_BYTES = 64 * 1024;

interface LogFile {
  path: string;
  /** For a child's stdio. */
  descriptor: number;
  /** Size when it was opened: what comes after was written by this child. */
  start: number;
}

export const logPath = (folder: string, name: string): string => join(folder, `${name}.log`);

/** Where what is written from now on begins. */
export const logSize = (folder: string, name: string): number =>
  statSync(logPath(folder, name), { throwIfNoEntry: false })?.size ?? 0;

/** Opens `<folder>/<name>.log` for appending; a large old one is kept once as `.log.1`. */
export function openLog(folder: string, name: string): LogFile {
  mkdirSync(folder, { recursive: true });
  const path = logPath(folder, name);
  if (existsSync(path) && statSync(path).size > ROTATE_BYTES) renameSync(path, `${path}.1`);
  const descriptor = openSync(path, 'a');
  return { path, descriptor, start: fstatSync(descriptor).size };
}

/** The last `lines` lines that are not empty, of what was written from `start` on. */
export function logTail({ path, start = 0, lines = 8 }: { path: string; start?: number; lines?: number }): string[] {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch {
    return [];
  }
  try {
    const { size } = fstatSync(descriptor);
    const from = Math.max(start, size - TAIL_BYTES, 0);
    const bytes = Buffer.alloc(Math.max(0, size - from));
    readSync(descriptor, bytes, 0, bytes.length, from);
    const text = bytes
      .toString('utf8')
      .split('\n')
      .filter((line) => line.trim() !== '');
    return text.slice(-lines);
  } finally {
    closeSync(descriptor);
  }
}

export interface RestartPolicy {
  /** Ending sooner than this after it was ready is one more in a row. */
  minUptimeSeconds: number;
  /** So many crashes in a row, and the service has failed. */
  maxCrashes: number;
  /** So many kills in a row: something ends it on purpose, or there is no memory for it. */
  maxKills: number;
  initialDelayMs: number;
  maxDelayMs: number;
  /** A kill says nothing about the next start: its delay does not grow. */
  killDelayMs: number;
}
export const restartPolicy: RestartPolicy = {
  minUptimeSeconds: 20,
  maxCrashes: 5,
  maxKills: 40,
  initialDelayMs: 500,
  maxDelayMs: 8000,
  killDelayMs: 1000,
};

interface Ending {
  /** In words. */
  cause: string;
  /** Somebody outside ended it. */
  killed: boolean;
  /** A worker ended itself, since it failed all that it took: what is wrong with its machine lasts. */
  faulty?: boolean;
}

/** Exit code of such a worker; of any other program it is a crash like others. */
const FAULTY = 3;
/** It is tried again, but not so often that it fails what waits for it. */
const FAULTY_DELAY_MS = 60_000;
const FAULTY_LONGEST_MS = 1_800_000;

/** Signals that a process brings upon itself. */
const crashSignals: NodeJS.Signals[] = ['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGSYS'];
/** In order, or as a shell says HUP, INT, KILL and TERM: a service ends so only when it is asked to. */
const killCodes = [0, 129, 130, 137, 143];

export const endingOf = (code: number | null, signal: NodeJS.Signals | null, stopsWhenFaulty = false): Ending =>
  signal
    ? { cause: `ended by ${signal}`, killed: !crashSignals.includes(signal) }
    : code === FAULTY && stopsWhenFaulty
      ? { cause: `exit code ${FAULTY}: it failed all that it took, as its log says`, killed: false, faulty: true }
      : { cause: `exit code ${code}`, killed: killCodes.includes(code ?? -1) };

/** Deaths in a row of one service. */
export class Deaths {
  private crashes = 0;
  private kills = 0;
  private faults = 0;
  constructor(private readonly policy: RestartPolicy) {}

  /**
   * Counts one more.
   * @returns when to start it again, or that it died too often to.
   */
  next({
    killed,
    uptimeMs,
    diskIsFull,
    faulty = false,
  }: {
    faulty?: boolean | undefined;
    killed: boolean;
    uptimeMs: number;
    diskIsFull: boolean;
  }): { delayMs: number } | { times: number } {
    const { minUptimeSeconds, maxCrashes, maxKills, initialDelayMs, maxDelayMs, killDelayMs } = this.policy;
    if (uptimeMs >= minUptimeSeconds * 1000) this.crashes = this.kills = 0;
    if (uptimeMs >= FAULTY_LONGEST_MS) this.faults = 0;
    if (faulty) return { delayMs: Math.min(FAULTY_LONGEST_MS, FAULTY_DELAY_MS * 2 ** this.faults++) };
    if (killed) return ++this.kills < maxKills ? { delayMs: killDelayMs } : { times: this.kills };
    // It comes up when there is room again, however long that takes.
    if (diskIsFull) return { delayMs: maxDelayMs };
    if (++this.crashes >= maxCrashes) return { times: this.crashes };
    return { delayMs: Math.min(maxDelayMs, initialDelayMs * 2 ** (this.crashes - 1)) };
  }
}

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
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      let wasReady = false;
      const onReady = () => {
        wasReady = true;
        resolve();
      };
      this.keepAlive(onReady).then(
        () => reject(new UserError(`${this.name} was stopped before it was ready`)),
        (error: unknown) => (wasReady ? this.hooks.onFailure(error as ServiceError) : reject(error)),
      );
    });
  }

  /**
   * starting ─ready─▶ running ─dies─▶ waiting ─▶ starting: until it is stopped. A start that fails is one more death, but for the very first one,
   * which is final unless somebody else killed the process. @throws ServiceError if it does not start, or dies too often.
   */
  private async keepAlive(onReady: () => void): Promise<void> {
    for (let wasReady = false; ;) {
      let readyAt: number | undefined;
      try {
        await this.launch();
        await this.becomeReady();
        readyAt = Date.now();
        wasReady = true;
        onReady();
      } catch (error) {
        if (!wasReady && (this.stopping || !this.exit?.killed)) throw error;
        this.exit ??= { cause: messageOf(error), killed: false };
        if (!this.stopping) this.signal('SIGKILL');
      }
      await this.exited;
      if (this.stopping || !this.exit) return;
      await this.waitToRestart({ ending: this.exit, uptimeMs: readyAt === undefined ? 0 : Date.now() - readyAt });
    }
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
    this.exit = undefined;
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

  private tail(lines: number): string[] {
    return this.log ? logTail({ path: this.log.path, start: this.log.start, lines }) : [];
  }

  private failure(what: string): ServiceError {
    const portTaken = this.tail(TAIL_LINES).some((line) => /address already in use/i.test(line));
    return new ServiceError(`${what}; the end of ${this.log?.path ?? 'its log'} says:`, this.tail(8), portTaken);
  }
}
