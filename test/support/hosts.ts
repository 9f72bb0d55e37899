/**
 * Hosts with nothing in common but an S3 server, Temporal and HTTP: each has a home, a policy server and workers of its own, and reaches the two others
 * by wires that can be cut. Killed, a host is gone whole, at once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { homeAt, type Home } from '../../src/cli/project';
import { repository } from './campaign-run';
import { python } from './embedded-server';
import { stepsOf, trainingsOf } from './faults-home';
import { shopPlugin } from './kinds';

interface Wire {
  port: number;
  /** Nothing goes through, as in a network that drops everything; connections are not ended. */
  cut(): void;
  mend(): void;
  /** Every piece comes so much later. */
  delay(ms: number): void;
  close(): void;
}

export async function startWire(target: number): Promise<Wire> {
  const pairs = new Set<[Socket, Socket]>();
  let isCut = false;
  let delayMs = 0;
  const pass = (from: Socket, to: Socket) =>
    from.on('data', (bytes) => {
      if (isCut) return;
      if (delayMs === 0) to.write(bytes);
      else setTimeout(() => to.writable && to.write(bytes), delayMs);
    });
  const server = createServer((near) => {
    const far = connect(target, 'localhost');
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    pass(near, far);
    pass(far, near);
    for (const [one, other] of [pair, [far, near] as const]) {
      one.on('error', () => other.destroy());
      one.on('close', () => {
        pairs.delete(pair);
        other.destroy();
      });
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => (isCut = true),
    mend() {
      isCut = false;
      // Lost bytes are not sent again: both sides open new connections.
      for (const [near, far] of pairs) for (const one of [near, far]) one.destroy();
    },
    delay: (ms) => (delayMs = ms),
    close() {
      server.close();
      for (const [near, far] of pairs) for (const one of [near, far]) one.destroy();
    },
  };
}

export class Host {
  readonly home: Home;
  private readonly processes: ChildProcess[] = [];
  private readonly workers: ChildProcess[] = [];

  private constructor(
    readonly name: string,
    folder: string,
    readonly temporal: Wire,
    readonly s3: Wire,
    private readonly settings: Record<string, string>,
  ) {
    this.home = homeAt(join(folder, name));
    mkdirSync(this.home.root, { recursive: true });
  }

  static async make(o: {
    name: string;
    folder: string;
    temporalPort: number;
    s3Port: number;
    settings: Record<string, string>;
  }): Promise<Host> {
    const wires = await Promise.all([startWire(o.temporalPort), startWire(o.s3Port)]);
    return new Host(o.name, o.folder, ...wires, o.settings);
  }

  /** The environment variables of a process of this host. */
  get env(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      ...this.settings,
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${this.s3.port}`,
      TEMPORAL_ADDRESS: `localhost:${this.temporal.port}`,
      CAMPAIGN_HOME: this.home.root,
      CAMPAIGN_PYTHON: python,
    };
  }

  /** A process of its own group, with all that it starts; the first line that `isReady`. */
  private async start(program: string, args: string[], isReady: RegExp, env = this.env): Promise<string> {
    const child = spawn(program, args, { cwd: repository, env, stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    this.processes.push(child);
    if (program === process.execPath) this.workers.push(child);
    for await (const line of createInterface({ input: child.stdout })) {
      if (!isReady.test(line)) continue;
      child.stdout.resume();
      return line;
    }
    throw new Error(`${this.name}: ${args.join(' ')} ended before it was ready`);
  }

  private worker(kind: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
    const program = [join(repository, 'bin/campaign'), 'worker', '--queues', kind, '--plugin', shopPlugin];
    return this.start(process.execPath, program, /^\{"type":"ready"/, { ...this.env, ...more });
  }

  control = (): Promise<string> => this.worker('control');

  /** A policy server of its own, and the workers that need one. */
  async gpu(pool: string, model: string): Promise<void> {
    const serve = ['-m', 'trainer', 'serve', '--model', model, '--port', '0', '--threads', '1', '--exit-with-parent'];
    const { url } = JSON.parse(await this.start(python, serve, /"url"/)) as { url: string };
    const settings = { POLICY_SERVER_URL: url, CAMPAIGN_POOL: pool, CAMPAIGN_MODEL: model };
    await Promise.all(['rollouts', 'gpu'].map((kind) => this.worker(kind, settings)));
  }

  /** The host vanishes: no process has time for anything. */
  kill(): void {
    for (const { pid } of this.processes.splice(0)) {
      try {
        if (pid !== undefined) process.kill(-pid, 'SIGKILL');
      } catch {
        // It is gone.
      }
    }
  }

  /** Sends SIGTERM to all of its workers and waits until they have ended; then everything else is killed. */
  async leave(): Promise<void> {
    const running = this.workers.splice(0).filter(({ exitCode }) => exitCode === null);
    const ended = running.map((child) => new Promise((done) => child.once('exit', done)));
    for (const child of running) child.kill('SIGTERM');
    await Promise.all(ended);
    this.kill();
  }

  close(): void {
    this.kill();
    this.temporal.close();
    this.s3.close();
  }

  /** Trainings that were begun here, and the steps that each has finished here. */
  trainings(): { name: string; steps: number; pid: number }[] {
    return trainingsOf(this.home).map((folder) => {
      const lock = join(folder, '.lock');
      const pid = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : 0;
      return { name: basename(folder), steps: stepsOf(folder).length, pid };
    });
  }

  /** Returns true if a training's learner has rollouts that it has not learned from yet. */
  isUpdating(name: string): boolean {
    const folder = trainingsOf(this.home).find((one) => basename(one) === name) ?? '';
    const changedMs = (file: string) => statSync(join(folder, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    return changedMs('batch.jsonl') > changedMs('metrics.jsonl');
  }
}

export async function until<Result>(
  what: string,
  seconds: number,
  look: () => Promise<Result> | Result,
  everyMs = 100,
): Promise<NonNullable<Result>> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await sleep(everyMs);
  }
}
