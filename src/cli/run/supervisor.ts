/**
 * All services of one home. Invariants: whatever runs is written down before anything else is started, so that the next supervisor can
 * end it; services end in the reverse of the order in which they were started, so that workers can still talk to their servers.
 */
import { UserError } from '../errors';
import type { Home } from '../project';
import { databaseOption } from './database';
import type { HomeDisk } from './full-disk';
import { endOrphans, startedWith } from './processes';
import { restartPolicy, type RestartPolicy } from './restarts';
import { readRunState, writeRunState, type RunState } from './run-state';
import { Service, type ServiceHooks } from './service';
import type { ServiceSpec } from './service-spec';
import { TEMPORAL } from './services';

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
