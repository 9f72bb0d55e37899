/**
 * The supervisor of a home: its lock, its services, Ctrl-C and a full disk. Services stop in the reverse order of their start. Before a command returns,
 * also with an error, all services are stopped and the lock is released.
 */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { removeLeftovers } from '../../store/open-store';
import { UserError } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { type Home, makeHome } from '../project';
import { createProgressOutput, type ProgressOutput } from '../watch/output';
import { acquireLock, announce, clearState, waitForLeftovers } from './processes';
import { type RestartPolicy, restartPolicy, Service, type ServiceHooks, type ServiceSpec } from './service';

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

/** Free disk space below which no service starts. */
const NEEDED_BYTES = 4 * 1024 ** 2;
const NOTE_AGAIN_MS = 10 * 60_000;

/** Returns a check whether the disk of a folder is full, which says so once every 10 minutes. */
export function fullDiskCheck(folder: string, note: (text: string) => void): () => boolean {
  let notedAt = -Infinity;
  return () => {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail * bsize >= NEEDED_BYTES) return false;
    if (performance.now() - notedAt < NOTE_AGAIN_MS) return true;
    notedAt = performance.now();
    note(`the disk of ${folder} is full: free at least 1 GiB; what runs waits for it and then continues`);
    return true;
  };
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Handles Ctrl-C, SIGTERM and SIGHUP. The first signal ends the run in order, and so does a closed stdout; a second one ends everything at once, and
 * the process exits. `dispose` raises the abort signal too; it removes the handlers unless a signal has come.
 */
export function onInterrupt({ onFirst, onSecond }: { onFirst: () => void; onSecond: () => void }): {
  signal: AbortSignal;
  dispose: () => void;
} {
  const controller = new AbortController();
  const end = () => {
    if (!controller.signal.aborted) onFirst();
    controller.abort();
  };
  let signals = 0;
  const handle = () => {
    if (++signals === 1) return end();
    onSecond();
    process.exit(INTERRUPTED);
  };
  for (const name of SIGNALS) process.on(name, handle);
  // The file that it writes to may be on a disk that is full for a while.
  const lost = ({ code }: NodeJS.ErrnoException) => {
    if (code !== 'ENOSPC' && code !== 'EDQUOT') end();
  };
  process.stdout.on('error', lost);
  return {
    signal: controller.signal,
    dispose: () => {
      controller.abort();
      // A second Ctrl-C may come while the process exits.
      if (signals === 0) for (const name of SIGNALS) process.off(name, handle);
      process.stdout.off('error', lost);
    },
  };
}

export class Supervisor {
  /** In the order of starting; each entry is started and stopped together. */
  private readonly groups: Service[][] = [];
  private stopping = false;
  private stopped: Promise<void> | undefined;
  private readonly hooks: ServiceHooks;
  /** Ends the run with this error. */
  fail: (error: UserError) => void = () => undefined;
  /** Rejects when a service died too often, or `fail` was called. */
  readonly failure: Promise<never> = new Promise((_, reject) => (this.fail = reject));

  constructor(
    private readonly home: Home,
    hooks: Pick<ServiceHooks, 'note' | 'diskIsFull'>,
    private readonly policy: RestartPolicy = restartPolicy,
  ) {
    const started: number[] = [];
    const onLaunch = (group: number) => {
      started.push(group);
      announce(this.home, { groups: started });
    };
    this.hooks = { ...hooks, onLaunch, onFailure: this.fail };
    this.failure.catch(() => undefined);
  }

  /** Starts services side by side and waits until all are ready. */
  async start(specs: ServiceSpec[]): Promise<void> {
    if (this.stopping) throw new UserError('aborted', 'services', 'stopped before everything was started');
    const services = specs.map((spec) => new Service(spec, this.home.logs, this.hooks, this.policy));
    this.groups.push(services);
    await Promise.all(services.map((service) => service.start()));
  }

  /** Process id of the first service, if it runs. */
  get firstPid(): number | undefined {
    return this.groups[0]?.[0]?.pid;
  }

  /** Stops all services, those that were started last first. */
  stop(): Promise<void> {
    this.stopping = true;
    return (this.stopped ??= this.stopAll());
  }

  private async stopAll(): Promise<void> {
    for (const services of [...this.groups].reverse()) await Promise.all(services.map((service) => service.stop()));
  }

  /** Ends everything at once. */
  kill(): void {
    this.stopping = true;
    for (const service of this.groups.flat()) service.kill();
  }
}

export interface SupervisedOptions extends CommonOptions {
  /** Port of Temporal's UI; by default the usual one if it is free. 0: any free one. */
  uiPort?: number;
}

export interface SupervisedRun {
  home: Home;
  options: SupervisedOptions;
  output: ProgressOutput;
  supervisor: Supervisor;
  diskIsFull: () => boolean;
  /** Raised by the first Ctrl-C, and by the end of the run. */
  signal: AbortSignal;
}

const LEFTOVER_GRACE_SECONDS = 30;

/** Lock, supervisor and signals around `work`; all services are stopped when it ends. `campaign` is undefined for `campaign ui`. */
export async function supervised(o: {
  options: SupervisedOptions;
  campaign?: string;
  work: (run: SupervisedRun) => Promise<number>;
}): Promise<number> {
  const { options, campaign, work } = o;
  const home = homeOf(options);
  const output = createProgressOutput({ json: options.json, campaign });
  const note = (text: string) => output.note('services', text);
  await makeHome(home.root);
  // Inherited by the services: what they write into the home is for this user alone.
  process.umask(0o077);
  const release = await acquireLock(home, (error) => supervisor.fail(error));
  const diskIsFull = fullDiskCheck(home.root, note);
  const supervisor = new Supervisor(home, { note, diskIsFull });
  const { signal, dispose } = onInterrupt({
    onFirst: () => {
      note('stopping: workers finish or save what they do; a second Ctrl-C ends everything at once');
      // The work ends with its services, in order or with an error.
      void supervisor.stop();
    },
    onSecond: () => supervisor.kill(),
  });
  try {
    if (!(await waitForLeftovers(home, LEFTOVER_GRACE_SECONDS))) note('processes of an earlier run have not ended yet');
    clearState(home);
    const removed = await removeLeftovers(join(home.root, 'artifacts'));
    if (removed > 0) note(`removed ${removed} unfinished files of killed processes`);
    const working = work({ home, options, output, supervisor, diskIsFull, signal });
    working.catch(() => undefined);
    const code = await Promise.race([working, supervisor.failure]).catch((error: unknown) => {
      if (signal.aborted) return INTERRUPTED;
      throw error;
    });
    await supervisor.stop();
    if (code === INTERRUPTED && campaign)
      output.note('campaign', `campaign ${campaign} is not finished; run the same command again to continue`);
    return code;
  } finally {
    await supervisor.stop();
    clearState(home);
    // After a failure the work still waits for services that are gone.
    dispose();
    await release();
  }
}
