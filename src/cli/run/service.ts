/**
 * A child process that is kept alive: starting, ready, dead, starting again after a delay, until it is stopped or dies too often. It leads a
 * process group of its own, so that the terminal's Ctrl-C reaches the supervisor alone and nothing of it outlives a kill.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { projectRoot } from '../../store/project-root';
import { keyPipe } from '../../domain/secrets';
import { FAULTY } from '../../domain/work';
import { messageOf, UserError } from '../errors';
import { signalGroup, waitUntil } from './processes';

export interface ServiceSpec {
  name: string;
  command: string;
  /** Called before every start: ports that nobody else knows are chosen anew. */
  args: () => string[] | Promise<string[]>;
  env: NodeJS.ProcessEnv;
  /** Variables that it reads from a pipe. */
  keys?: NodeJS.ProcessEnv;
  /** Whether it can be used now, by the last lines that it wrote. */
  isReady: (output: string[]) => boolean | Promise<boolean>;
  readySeconds: number;
  /** How long it may take to end after SIGTERM. */
  graceSeconds: number;
}

const ROTATE_BYTES = 20 * 1024 * 1024;
const TAIL_BYTES = 64 * 1024;
/** A Go program's stack follows its cause. */
const LONG_TAIL = 500;

export const logPath = (folder: string, name: string): string => join(folder, `${name}.log`);

/** 0 if there is none. */
export const fileSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Opens a log for appending; a large old one is kept once as `.log.1`. */
function openLog(folder: string, path: string): number {
  mkdirSync(folder, { recursive: true });
  if (fileSize(path) > ROTATE_BYTES) renameSync(path, `${path}.1`);
  return openSync(path, 'a');
}

/** The last lines that are not empty, of what was written from byte `start` on. */
export function logTail({ path, start = 0, lines = 8 }: { path: string; start?: number; lines?: number }): string[] {
  const size = fileSize(path);
  const from = Math.max(start, size - TAIL_BYTES);
  if (from >= size) return [];
  const bytes = Buffer.alloc(size - from);
  const descriptor = openSync(path, 'r');
  readSync(descriptor, bytes, 0, bytes.length, from);
  closeSync(descriptor);
  const text = bytes.toString('utf8').split('\n');
  return text.filter((line) => line.trim() !== '').slice(-lines);
}

/**
 * A service has failed after `limit` deaths in a row without progress: none of them later than `progressMs` after it was ready, and no advance of the
 * campaign between them. The delay before a start doubles.
 */
export const restartPolicy = { limit: 5, firstMs: 500, longestMs: 8_000, progressMs: 10_000, faultyMs: 60_000 };
export type RestartPolicy = typeof restartPolicy;

interface Ending {
  cause: string;
  signal?: NodeJS.Signals;
  /** It failed all that it took: the next start fails as well as long as the machine is the same. */
  isFaulty?: boolean;
}

const endingOf = (code: number | null, signal: NodeJS.Signals | null): Ending => {
  if (signal) return { cause: `ended by ${signal}`, signal };
  if (code !== FAULTY) return { cause: `exit code ${code}` };
  return { cause: `exit code ${FAULTY}: it failed all that it took, as its log says`, isFaulty: true };
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
  /** Called with the process group of every start. */
  onLaunch?: (group: number) => void;
  onRestart: (event: { name: string; cause: string; log: string; delayMs: number }) => void;
  /** It died too often; it is not started again. */
  onFailure: (error: ServiceError) => void;
  /** Whether a death may be for want of room. */
  diskIsFull: () => boolean;
}
const none = () => undefined;
const noHooks: ServiceHooks = { onRestart: none, onFailure: none, diskIsFull: () => false };

export class Service {
  private child: ChildProcess | undefined;
  /** Its process group, until nothing of it lives any more: the system may give the number to somebody else then. */
  private group: number | undefined;
  private ending: Ending | undefined;
  private ended: Promise<void> = Promise.resolve();
  private stopping = false;
  /** Size of the log when the process was started. */
  private logStart = 0;
  private readonly log: string;
  private deaths = 0;

  constructor(
    readonly spec: ServiceSpec,
    private readonly logs: string,
    private readonly hooks: ServiceHooks = noHooks,
    private readonly policy: RestartPolicy = restartPolicy,
  ) {
    this.log = logPath(logs, spec.name);
  }

  /** Called when the campaign has advanced: the deaths before count no more. */
  forgetDeaths(): void {
    this.deaths = 0;
  }

  /** Process id while it runs. */
  get pid(): number | undefined {
    return this.ending ? undefined : this.child?.pid;
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
        () => reject(new UserError(`${this.spec.name} was stopped before it was ready`)),
        (error: ServiceError) => (wasReady ? this.hooks.onFailure(error) : reject(error)),
      );
    });
  }

  /** Ends it: SIGTERM, then SIGKILL to its whole group after the grace time. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.child?.kill('SIGTERM');
    if (!(await this.isGone())) this.kill();
    await this.ended;
  }

  /** Ends it and everything that it started, at once. */
  kill(): void {
    this.stopping = true;
    this.signal('SIGKILL');
  }

  /** Until it is stopped. A start that fails is one more death; the very first one is final unless somebody killed the process. */
  private async keepAlive(onReady: () => void): Promise<void> {
    for (let wasReady = false; ;) {
      let readyAt = Infinity;
      try {
        await this.launch();
        await this.becomeReady();
        readyAt = Date.now();
        wasReady = true;
        onReady();
      } catch (error) {
        if (!wasReady && (this.stopping || !this.ending?.signal)) throw error;
        this.ending ??= { cause: messageOf(error) };
        if (!this.stopping) this.signal('SIGKILL');
      }
      await this.ended;
      if (this.stopping || !this.ending) return;
      await this.waitToRestart(this.ending, Math.max(0, Date.now() - readyAt));
    }
  }

  private async launch(): Promise<void> {
    this.ending = undefined;
    const { name, command, args, env, keys } = this.spec;
    const words = await args();
    if (this.stopping) throw new UserError(`${name} was stopped before it was started`);
    const log = openLog(this.logs, this.log);
    this.logStart = fileSize(this.log);
    // stdin is never written to: its end tells the child that the supervisor is gone, even by kill -9.
    const pipe = keyPipe(keys);
    const child = spawn(command, words, {
      cwd: projectRoot,
      env: { ...env, ...pipe.env },
      detached: true,
      stdio: ['pipe', log, log, ...pipe.stdio],
    });
    pipe.send(child);
    closeSync(log);
    child.stdin?.on('error', none);
    this.child = child;
    this.group = child.pid;
    if (child.pid !== undefined) this.hooks.onLaunch?.(child.pid);
    this.ended = new Promise((resolve) => {
      const end = (ending: Ending) => {
        this.ending ??= ending;
        // At once, so that a number that is free again is known as such.
        this.signal(0);
        resolve();
      };
      child.once('error', (error) => end({ cause: error.message }));
      child.once('exit', (code, signal) => end(endingOf(code, signal)));
    });
  }

  private async becomeReady(): Promise<void> {
    const { name, isReady, readySeconds } = this.spec;
    // It may end while it is asked, and somebody else may be answering on its port.
    const settled = async () => this.ending !== undefined || (await isReady(this.tail(LONG_TAIL)));
    const inTime = await waitUntil(settled, readySeconds);
    if (this.ending) throw this.failure(`${name} did not start (${this.ending.cause})`);
    if (inTime) return;
    this.ending = { cause: `was not ready after ${readySeconds} s` };
    throw this.failure(`${name} ${this.ending.cause}`);
  }

  /** After a death. @throws ServiceError if it was one too many. */
  private async waitToRestart({ cause, isFaulty }: Ending, uptimeMs: number): Promise<void> {
    const { name } = this.spec;
    const { limit, firstMs, longestMs, progressMs, faultyMs } = this.policy;
    // A service comes up when there is room again, however long that takes.
    if (uptimeMs >= progressMs || this.hooks.diskIsFull()) this.deaths = 0;
    this.deaths += 1;
    if (this.deaths >= limit) throw this.failure(`${name} died ${this.deaths} times in a row (${cause})`);
    const delayMs = isFaulty ? faultyMs : Math.min(longestMs, firstMs * 2 ** (this.deaths - 1));
    this.hooks.onRestart({ name, cause, log: this.log, delayMs });
    // What it had started (a trainer that saves its checkpoint) ends before its successor begins.
    if (!(await this.isGone(() => this.stopping))) this.signal('SIGKILL');
    await sleep(delayMs);
  }

  /** Signals the whole process group. @returns whether anything of it lives. */
  private signal(signal: NodeJS.Signals | 0): boolean {
    if (this.group !== undefined && !signalGroup(this.group, signal)) this.group = undefined;
    return this.group !== undefined;
  }

  /** Waits for the end of its whole group. @returns false if it takes longer than its grace time. */
  private isGone(orElse: () => boolean = () => false): Promise<boolean> {
    return waitUntil(() => orElse() || !this.signal(0), this.spec.graceSeconds);
  }

  private tail(lines: number): string[] {
    return logTail({ path: this.log, start: this.logStart, lines });
  }

  private failure(what: string): ServiceError {
    const portTaken = this.tail(LONG_TAIL).some((line) => /address already in use/i.test(line));
    return new ServiceError(`${what}; the end of ${this.log} says:`, this.tail(8), portTaken);
  }
}
