/**
 * The supervisor of a home: its lock, its services, Ctrl-C and a full disk.
 * Invariants: whatever runs is written down before anything else is started, so that the next supervisor can end it; services end in the reverse
 * of the order in which they were started; whatever was started is stopped and the home is given back before a command returns, however it ends.
 */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { isCode } from '../../artifacts/durable-file';
import { UserError } from '../errors';
import { type Home, makeHome } from '../project';
import { acquireLock, endOrphans, readRunState, type RunState, startedWith, writeRunState } from './processes';
import { restartPolicy, type RestartPolicy, Service, type ServiceHooks, type ServiceSpec } from './service';
import type { PortOptions } from '../ports';
import { databaseOption, TEMPORAL } from './temporal-server';
import { removeLeftovers } from '../../artifacts/folder-store';
import { type CommonOptions, homeOf } from '../options';
import { createProgressOutput, type ProgressOutput } from '../watch/output';

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

/** With less than this no service comes up. */
const NEEDED_BYTES = 4 * 1024 ** 2;
const REPORT_AGAIN_MS = 10 * 60_000;

/** The disk of a home. */
export class HomeDisk {
  private reportedAt = -Infinity;

  constructor(
    private readonly folder: string,
    private readonly note: (text: string) => void,
  ) {}

  /** Whether there is no room now; notes it. */
  isFull(): boolean {
    try {
      const { bavail, bsize } = statfsSync(this.folder);
      if (bavail * bsize >= NEEDED_BYTES) return false;
    } catch {
      return false;
    }
    this.report();
    return true;
  }

  /** Does something that writes. @returns false if there was no room for it. */
  attempt(write: () => void): boolean {
    try {
      write();
      return true;
    } catch (error) {
      if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
      this.report();
      return false;
    }
  }

  private report(): void {
    const now = performance.now();
    if (now - this.reportedAt < REPORT_AGAIN_MS) return;
    this.reportedAt = now;
    this.note(`the disk of ${this.folder} is full: free at least 1 GiB; what runs waits for it and then goes on`);
  }
}

/**
 * Ctrl-C, and being asked to end by the system. Once nobody can read stdout any more the run ends in order as well; a signal that comes after
 * this, as when a terminal is closed, is still the first.
 */
interface Interruption {
  /** Raised by the first signal, by the end of stdout, and by `abort`. */
  signal: AbortSignal;
  /** Resolves with the first signal, or the end of stdout. */
  first: Promise<void>;
  /** Ends what waits for `signal`: the run is over. */
  abort(): void;
  /** Forgets the signals again. */
  dispose(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The first signal ends the run in order, the second one at once: `onSecond` ends everything, and the process exits. */
export function onInterrupt({ onFirst, onSecond }: { onFirst: () => void; onSecond: () => void }): Interruption {
  const controller = new AbortController();
  let resolveFirst: () => void = () => undefined;
  const first = new Promise<void>((resolve) => (resolveFirst = resolve));
  const end = () => {
    if (controller.signal.aborted) return;
    onFirst();
    controller.abort();
    resolveFirst();
  };
  let signals = 0;
  const handle = () => {
    signals += 1;
    if (signals === 1) return end();
    onSecond();
    process.exit(INTERRUPTED);
  };
  for (const name of SIGNALS) process.on(name, handle);
  process.stdout.on('error', end);
  return {
    signal: controller.signal,
    first,
    abort: () => controller.abort(),
    dispose: () => {
      SIGNALS.forEach((name) => process.off(name, handle));
      process.stdout.off('error', end);
    },
  };
}

const ORPHAN_GRACE_SECONDS = 30;
const RECORD_AGAIN_MS = 2000;

export class Supervisor {
  /** In the order of starting; each entry is started and stopped together. */
  private groups: Service[][] = [];
  private stopping = false;
  private recordAgain: NodeJS.Timeout | undefined;
  private stopped: Promise<void> = Promise.resolve();
  private state: RunState = { processes: [] };
  private failWith: (error: UserError) => void = () => undefined;
  /** Rejects when a service dies too often to go on, or when going on is of no use. */
  readonly failure: Promise<never> = new Promise((_, reject) => (this.failWith = reject));

  private readonly home: Home;
  private readonly disk: HomeDisk;
  private readonly policy: RestartPolicy;
  private readonly hooks: ServiceHooks;

  constructor(o: { home: Home; disk: HomeDisk; onRestart: ServiceHooks['onRestart']; policy?: RestartPolicy }) {
    this.home = o.home;
    this.disk = o.disk;
    this.policy = o.policy ?? restartPolicy;
    this.hooks = {
      onChange: () => this.record(),
      onRestart: o.onRestart,
      onFailure: (error) => this.fail(error),
      diskIsFull: () => this.disk.isFull(),
    };
    this.failure.catch(() => undefined);
  }

  /** Ends the run with this error. */
  fail(error: UserError): void {
    this.failWith(error);
  }

  /** Ends what a killed supervisor of this home left running; returns the names. */
  async endOrphans(): Promise<string[]> {
    const { processes } = readRunState(this.home);
    // Two servers on one database disturb each other: this one is found without a record as well.
    const servers = startedWith({ name: TEMPORAL, option: [databaseOption, this.home.temporalDatabase] });
    const unrecorded = servers.filter(({ pid }) => !processes.some((known) => known.pid === pid));
    const ended = await endOrphans([...processes, ...unrecorded], ORPHAN_GRACE_SECONDS);
    this.record();
    return ended;
  }

  /** Starts services side by side and waits until all are ready. If one does not start, all of them are stopped again. */
  async start(specs: ServiceSpec[]): Promise<void> {
    if (this.stopping) throw new UserError('stopped before everything was started');
    const services = specs.map((spec) => new Service(spec, this.home.logs, this.hooks, this.policy));
    this.groups.push(services);
    try {
      await Promise.all(services.map((service) => service.start()));
    } catch (error) {
      await this.stopGroup(services);
      throw error;
    }
  }

  /** Tells other commands where this home's Temporal server is. */
  announce(addresses: Pick<RunState, 'temporalAddress' | 'uiUrl'>): void {
    this.state = { ...this.state, ...addresses };
    this.record();
  }

  /** Stops the services that were started last, until `keep` groups are left. */
  stop({ keep = 0 }: { keep?: number } = {}): Promise<void> {
    if (keep === 0) this.stopping = true;
    // One stop after the other, whoever asks: a Ctrl-C can come while the end of a campaign stops its workers.
    this.stopped = this.stopped.then(() => this.stopDownTo(keep));
    return this.stopped;
  }

  private async stopDownTo(keep: number): Promise<void> {
    while (this.groups.length > keep) await this.stopGroup(this.groups.at(-1) ?? []);
    if (keep === 0) this.state = { processes: [] };
    this.record();
  }

  private async stopGroup(services: Service[]): Promise<void> {
    await Promise.all(services.map((service) => service.stop()));
    this.groups = this.groups.filter((group) => group !== services);
    this.record();
  }

  /** Ends everything at once. */
  kill(): void {
    this.stopping = true;
    for (const service of this.groups.flat()) service.kill();
  }

  /** Names and pids of what runs now. */
  processes(): { name: string; pid: number }[] {
    return this.state.processes.map(({ name, pid }) => ({ name, pid }));
  }

  private record(): void {
    const processes = this.groups.flat().flatMap((service) => service.process ?? []);
    this.state = { ...this.state, processes };
    clearTimeout(this.recordAgain);
    const written = this.disk.attempt(() => writeRunState(this.home, this.state));
    // What has ended meanwhile may stay written down: a process is known by its start time.
    if (!written && !this.stopping) this.recordAgain = setTimeout(() => this.record(), RECORD_AGAIN_MS).unref();
  }
}

export type ServeOptions = CommonOptions &
  PortOptions & {
    /** Begin with a new Temporal database; the old one is moved aside. */
    recover?: boolean;
  };

export interface SupervisedRun {
  home: Home;
  options: ServeOptions;
  output: ProgressOutput;
  supervisor: Supervisor;
  disk: HomeDisk;
  interruption: Interruption;
}

/** Lock, supervisor and signals around `work`; all services are stopped when it ends. `campaign` is undefined for `campaign serve`. */
export async function supervised({
  options,
  campaign,
  work,
}: {
  options: ServeOptions;
  campaign?: string;
  work: (run: SupervisedRun) => Promise<number>;
}): Promise<number> {
  const home = homeOf(options);
  const output = createProgressOutput({ json: options.json, campaign });
  await makeHome(home.root);
  const release = acquireLock(home);
  const disk = new HomeDisk(home.root, (text) => output.note('services', text));
  const onRestart: ServiceHooks['onRestart'] = ({ name, cause, log, delayMs }) =>
    output.note('services', `${name} died (${cause}); starting it again in ${delayMs / 1000} s; its log is ${log}`);
  const supervisor = new Supervisor({ home, disk, onRestart });
  const interruption = onInterrupt({
    onFirst: () =>
      output.note('services', 'stopping: workers finish or save what they do; once more Ctrl-C ends all at once'),
    onSecond: () => supervisor.kill(),
  });
  try {
    const ended = await supervisor.endOrphans();
    if (ended.length > 0) output.note('services', `ended what an earlier run had left: ${ended.join(', ')}`);
    const removed = await removeLeftovers(join(home.root, 'artifacts'));
    if (removed > 0) output.note('services', `removed ${removed} unfinished files of killed processes`);
    // An interruption stops the services: whatever the work waits for ends then, in order or with an error.
    void interruption.first.then(() => supervisor.stop());
    const working = work({ home, options, output, supervisor, disk, interruption });
    working.catch(() => undefined);
    const code = await Promise.race([working, supervisor.failure]).catch((error: unknown) => {
      if (interruption.signal.aborted) return INTERRUPTED;
      throw error;
    });
    await supervisor.stop();
    if (code === INTERRUPTED && campaign)
      output.note('campaign', `campaign ${campaign} is not finished; the same command goes on with it`);
    return code;
  } finally {
    await supervisor.stop();
    // After a failure the work still waits for services that are gone.
    interruption.abort();
    interruption.dispose();
    release();
  }
}
