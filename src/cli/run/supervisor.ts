/**
 * The supervisor of a home: its lock, its services, Ctrl-C and a full disk. Whatever runs is recorded before anything else is started, so that
 * the next supervisor can end it. Services end in the reverse of the order in which they were started, and whatever was started is stopped and
 * the home is given back before a command returns, however it ends.
 */
import { once } from 'node:events';
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { isCode } from '../../artifacts/durable-file';
import { removeLeftovers } from '../../artifacts/folder-store';
import { UserError } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import type { PortOptions } from '../ports';
import { type Home, makeHome } from '../project';
import { createProgressOutput, type ProgressOutput } from '../watch/output';
import { acquireLock, endOrphans, readRunState, type RunState, startedWith, writeRunState } from './processes';
import { restartPolicy, Service, type ServiceHooks, type ServiceSpec } from './service';
import { databaseOption, TEMPORAL } from './temporal-server';

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

/** With less than this no service comes up. */
const NEEDED_BYTES = 4 * 1024 ** 2;
const REPORT_AGAIN_MS = 10 * 60_000;

/** The disk of a home; says that it is full, not too often. */
export class HomeDisk {
  private reportedAt = -Infinity;

  constructor(
    private readonly folder: string,
    private readonly note: (text: string) => void,
  ) {}

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

  report(): void {
    const now = performance.now();
    if (now - this.reportedAt < REPORT_AGAIN_MS) return;
    this.reportedAt = now;
    this.note(`the disk of ${this.folder} is full: free at least 1 GiB; what runs waits for it and then goes on`);
  }
}

export interface Interruption {
  /** Raised by the first signal, by the end of stdout, and by `abort`. */
  signal: AbortSignal;
  /** Resolves with it. */
  first: Promise<unknown>;
  abort(): void;
  /** Forgets the signals again. */
  dispose(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Ctrl-C, and being asked to end by the system. The first signal ends the run in order, and so does a stdout that nobody reads any more; a
 * second signal ends everything at once, and the process exits.
 */
export function onInterrupt({ onFirst, onSecond }: { onFirst: () => void; onSecond: () => void }): Interruption {
  const controller = new AbortController();
  const { signal } = controller;
  const end = () => {
    if (!signal.aborted) onFirst();
    controller.abort();
  };
  let signals = 0;
  const handle = () => {
    if (++signals === 1) return end();
    onSecond();
    process.exit(INTERRUPTED);
  };
  for (const name of SIGNALS) process.on(name, handle);
  process.stdout.on('error', end);
  return {
    signal,
    first: once(signal, 'abort'),
    abort: () => controller.abort(),
    dispose: () => {
      for (const name of SIGNALS) process.off(name, handle);
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
  private stopped: Promise<void> = Promise.resolve();
  private state: RunState = { processes: [] };
  private recordAgain: NodeJS.Timeout | undefined;
  private readonly hooks: ServiceHooks;
  /** Ends the run with this error: a service died too often, or going on is of no use. */
  fail: (error: UserError) => void = () => undefined;
  /** Rejects with it. */
  readonly failure: Promise<never> = new Promise((_, reject) => (this.fail = reject));

  constructor(
    private readonly home: Home,
    private readonly disk: HomeDisk,
    onRestart: ServiceHooks['onRestart'],
    private readonly policy = restartPolicy,
  ) {
    this.hooks = {
      onChange: () => this.record(),
      onRestart,
      onFailure: this.fail,
      diskIsFull: () => disk.isFull(),
    };
    this.failure.catch(() => undefined);
  }

  /** Ends what a killed supervisor of this home left running; returns the names. */
  async endOrphans(): Promise<string[]> {
    const { processes } = readRunState(this.home);
    // Two servers on one database disturb each other: this one is found without a record as well.
    const servers = startedWith(TEMPORAL, [databaseOption, this.home.temporalDatabase]);
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
    this.stopped = this.stopped.then(async () => {
      while (this.groups.length > keep) await this.stopGroup(this.groups.at(-1) ?? []);
      if (keep === 0) this.state = { processes: [] };
      this.record();
    });
    return this.stopped;
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

  /** What runs now. */
  get processes(): RunState['processes'] {
    return this.state.processes;
  }

  private record(): void {
    this.state = { ...this.state, processes: this.groups.flat().flatMap((service) => service.process ?? []) };
    clearTimeout(this.recordAgain);
    try {
      writeRunState(this.home, this.state);
    } catch (error) {
      if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
      this.disk.report();
      // What has ended meanwhile may stay recorded: a process is known by its start time.
      if (!this.stopping) this.recordAgain = setTimeout(() => this.record(), RECORD_AGAIN_MS).unref();
    }
  }
}

export type ServeOptions = CommonOptions &
  PortOptions & {
    /** Begin with a new Temporal database; the old one is moved away. */
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
  const note = (text: string) => output.note('services', text);
  await makeHome(home.root);
  const release = acquireLock(home);
  const disk = new HomeDisk(home.root, note);
  const supervisor = new Supervisor(home, disk, ({ name, cause, log, delayMs }) =>
    note(`${name} died (${cause}); starting it again in ${delayMs / 1000} s; its log is ${log}`),
  );
  const interruption = onInterrupt({
    onFirst: () => {
      note('stopping: workers finish or save what they do; once more Ctrl-C ends all at once');
      // Whatever the work waits for ends with its services, in order or with an error.
      void supervisor.stop();
    },
    onSecond: () => supervisor.kill(),
  });
  try {
    const ended = await supervisor.endOrphans();
    if (ended.length > 0) note(`ended what an earlier run had left: ${ended.join(', ')}`);
    const removed = await removeLeftovers(join(home.root, 'artifacts'));
    if (removed > 0) note(`removed ${removed} unfinished files of killed processes`);
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
