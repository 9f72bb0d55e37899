/**
 * A child process that is restarted until it is stopped or dies too often. It leads its own process group: the terminal's Ctrl-C reaches only the
 * supervisor, and a kill ends all processes that it has started.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { projectRoot } from '../../store/project-root';
import { keyPipe } from '../../domain/secrets';
import { FAULTY } from '../../domain/work';
import { UserError } from '../errors';
import { signalGroup, waitUntil } from './processes';

export interface ServiceSpec {
  name: string;
  command: string;
  /** Called before every start: ports that no other process uses yet are chosen again. */
  args: () => string[] | Promise<string[]>;
  env: NodeJS.ProcessEnv;
  /** Variables that it reads from a pipe. */
  keys?: NodeJS.ProcessEnv;
  /** Returns true once the service can be used; `output` holds the last lines that it wrote. */
  isReady: (output: string[]) => boolean | Promise<boolean>;
  readySeconds: number;
  /** Seconds from SIGTERM to SIGKILL. */
  graceSeconds: number;
}

const ROTATE_BYTES = 20 * 1024 * 1024;
const TAIL_BYTES = 64 * 1024;
/** Lines that are searched: a Go program's stack follows its cause. */
const SEARCHED = 500;
const SHOWN = 8;
const DISK_CHECK_MS = 1_000;

export const logPath = (folder: string, name: string): string => join(folder, `${name}.log`);

/** 0 if there is none. */
export const fileSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** The last lines that are not empty, of what was written from byte `start` on. */
export function logTail({ path, start, lines }: { path: string; start: number; lines: number }): string[] {
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

/** A service has failed after `limit` deaths in a row, none of them later than `progressMs` after it was ready. The delay before a start doubles. */
export const restartPolicy = { limit: 5, firstMs: 500, longestMs: 8_000, progressMs: 10_000, faultyMs: 60_000 };
export type RestartPolicy = typeof restartPolicy;

export interface ServiceHooks {
  /** Called with the process group of every start. */
  onLaunch?: (group: number) => void;
  note: (text: string) => void;
  /** Called when it has died too often; it is not started again. */
  onFailure: (error: UserError) => void;
  /** Returns whether the disk is so full that a service may have died of it. */
  diskIsFull?: () => boolean;
}
const none = () => undefined;

interface Ending {
  cause: string;
  /** Ended by a signal. */
  isKilled?: boolean;
  /** It failed all its work: the next start fails as well as long as the machine is the same. */
  isFaulty?: boolean;
}

function endingOf(code: number | null, signal: NodeJS.Signals | null): Ending {
  if (signal) return { cause: `ended by ${signal}`, isKilled: true };
  if (code !== FAULTY) return { cause: `exit code ${code}` };
  return { cause: `exit code ${FAULTY}: it failed all that it took, as its log says`, isFaulty: true };
}

export class Service {
  private child: ChildProcess | undefined;
  /** Its process group, until all of it has ended: the system may use the number again then. */
  private group: number | undefined;
  private ending: Ending | undefined;
  private ended: Promise<void> = Promise.resolve();
  private stopping = false;
  /** Size of the log when the process was started. */
  private logStart = 0;
  private deaths = 0;
  private readonly log: string;

  constructor(
    readonly spec: ServiceSpec,
    private readonly logs: string,
    private readonly hooks: ServiceHooks = { note: none, onFailure: none },
    private readonly policy: RestartPolicy = restartPolicy,
  ) {
    this.log = logPath(logs, spec.name);
  }

  /** Process id while it runs. */
  get pid(): number | undefined {
    return this.ending ? undefined : this.child?.pid;
  }

  /** Starts it and waits until it is ready. @throws UserError with the log's tail if it ends by itself or takes too long. */
  async start(): Promise<void> {
    await this.launchUntilReady();
    this.keepAlive().catch((error: UserError) => {
      if (!this.stopping) this.hooks.onFailure(error);
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

  private async keepAlive(): Promise<void> {
    for (;;) {
      const readyAt = Date.now();
      await this.ended;
      if (this.stopping) return;
      await this.waitToRestart(Date.now() - readyAt);
      await this.launchUntilReady();
    }
  }

  /** Counts a failed start as a death. A failure of the very first start is final, unless a signal killed the process. */
  private async launchUntilReady(): Promise<void> {
    const isFirst = this.child === undefined;
    for (;;) {
      await this.launch();
      const { name, isReady, readySeconds } = this.spec;
      // It may end while it is asked, and another process may answer on its port.
      const isSettled = async () => this.ending !== undefined || (await isReady(this.tail(SEARCHED)));
      const inTime = await waitUntil(isSettled, readySeconds);
      if (inTime && !this.ending) return;
      const isKilled = this.ending?.isKilled ?? false;
      this.ending ??= { cause: `not ready after ${readySeconds} s` };
      if (!this.stopping) this.signal('SIGKILL');
      await this.ended;
      if (this.stopping || (isFirst && !isKilled)) throw this.failure(`${name} did not start (${this.ending.cause})`);
      await this.waitToRestart(0);
    }
  }

  private async launch(): Promise<void> {
    const { name, command, args, env, keys } = this.spec;
    const words = await args();
    if (this.stopping) throw new UserError('aborted', name, `${name} was stopped before it was started`);
    mkdirSync(this.logs, { recursive: true });
    if (fileSize(this.log) > ROTATE_BYTES) renameSync(this.log, `${this.log}.1`);
    const log = openSync(this.log, 'a');
    this.logStart = fileSize(this.log);
    this.ending = undefined;
    // stdin is never written to: its end of file shows the child that the supervisor has died, even by kill -9.
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
        this.signal(0); // forgets the group as soon as all of it has ended
        resolve();
      };
      child.once('error', (error) => end({ cause: error.message }));
      child.once('exit', (code, signal) => end(endingOf(code, signal)));
    });
  }

  /** After a death. @throws UserError if it was one too many. */
  private async waitToRestart(uptimeMs: number): Promise<void> {
    const { name } = this.spec;
    const { limit, firstMs, longestMs, progressMs, faultyMs } = this.policy;
    const { cause, isFaulty } = this.ending!;
    const isDiskFull = () => this.hooks.diskIsFull?.() ?? false;
    if (uptimeMs >= progressMs || isDiskFull()) this.deaths = 0;
    this.deaths += 1;
    if (this.deaths >= limit) throw this.failure(`${name} died ${this.deaths} times in a row (${cause})`);
    const delayMs = isFaulty ? faultyMs : Math.min(longestMs, firstMs * 2 ** (this.deaths - 1));
    this.hooks.note(`${name} died (${cause}); starting it again in ${delayMs / 1000} s; its log is ${this.log}`);
    // Its own child processes (a trainer that saves its checkpoint) end before its successor starts.
    if (!(await this.isGone(() => this.stopping))) this.signal('SIGKILL');
    await sleep(delayMs);
    // It starts when there is room again, however long that takes.
    while (!this.stopping && isDiskFull()) await sleep(DISK_CHECK_MS);
  }

  /** Signals the whole process group. @returns whether any of it lives. */
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

  private failure(what: string): UserError {
    return new UserError('failed', this.spec.name, `${what}; the end of ${this.log} says:`, this.tail(SHOWN));
  }
}
