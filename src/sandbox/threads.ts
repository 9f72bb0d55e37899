/**
 * The threads of sandboxes: how one is started, watched from outside, and shared out among the sandboxes of a process.
 * Who asks first is served first, and nobody waits without end.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type * as swc from '@swc/core';
import { IDLE_MS, MOST_THREADS, TURN_MS } from './limits';
import type { SandboxWorkerData } from './sandbox-worker';

/** V8's own heap in the thread: it holds a module's text and one call's texts. The module's values are in the WebAssembly memory. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

export function startThread(data: Omit<SandboxWorkerData, 'interpreter'>): Worker {
  const workerData: SandboxWorkerData = { ...data, interpreter: (interpreter ??= compileInterpreter()) };
  const built = join(__dirname, 'sandbox-worker.js');
  if (existsSync(built)) return new Worker(built, { workerData, resourceLimits });
  return new Worker((program ??= compile()), { eval: true, workerData, resourceLimits });
}

/** Node's global; its type is in no library that is loaded here. */
declare const WebAssembly: { Module: new (bytes: Buffer) => object };

let interpreter: object | undefined;

/** QuickJS, once for all threads: compiling it is half of a thread's start. */
function compileInterpreter(): object {
  const { resolve } = createRequire(require.resolve('quickjs-emscripten'));
  return new WebAssembly.Module(readFileSync(resolve('@jitl/quickjs-wasmfile-release-sync/wasm')));
}

let program: string | undefined;

/** A thread has no loader for sources. */
function compile(): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- a development dependency: a build must not ask for it
  const { transformSync } = require('@swc/core') as typeof swc;
  return transformSync(readFileSync(join(__dirname, 'sandbox-worker.ts'), 'utf8'), {
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  }).code;
}

/** CPU time of another thread of this process: the wall clock's where the kernel does not tell, NaN once the thread has ended. */
function cpuMsOf(thread: string | undefined): number {
  if (thread === undefined) return performance.now();
  try {
    return parseInt(readFileSync(`${thread}/schedstat`, 'latin1'), 10) / 1e6;
  } catch {
    return NaN;
  }
}

const WATCH_MS = 100;

export function watchThread(o: {
  /** cpuMsOf() takes it. */
  thread: string | undefined;
  limits: { cpuMs: number; wallMs: number };
  /** How many calls were answered; undefined while none waits for its answer. */
  progress: () => number | undefined;
  /** CPU time that calls have used since it was told last. */
  used: (ms: number) => void;
  kill: (reason: string) => void;
}): () => void {
  let last = cpuMsOf(o.thread);
  let since: { answered: number; cpu: number; wall: number } | undefined;
  const look = setInterval(() => {
    const [cpu, wall, answered] = [cpuMsOf(o.thread), performance.now(), o.progress()];
    if (answered !== undefined) o.used(Math.max(0, cpu - last || 0));
    last = cpu;
    if (answered === undefined) since = undefined;
    else if (since?.answered !== answered) since = { answered, cpu, wall };
    if (!since) return;
    const overCpu = cpu - since.cpu >= o.limits.cpuMs;
    if (!overCpu && wall - since.wall < o.limits.wallMs) return;
    // The answers that wait are read first.
    setImmediate(() => {
      if (o.progress() !== answered) return;
      o.kill(`no answer within ${overCpu ? o.limits.cpuMs : o.limits.wallMs} ms`);
    });
  }, WATCH_MS);
  look.unref();
  return () => clearInterval(look);
}

export interface Claim {
  /** The slot is the claimant's until it releases it. */
  granted(): void;
  /** Asks for the slot back: the claimant has been idle. */
  giveBack(): void;
  /** Since when nothing has been asked of it; undefined while it works. */
  idleSince(): number | undefined;
}

export interface ThreadSlots {
  claim(claimant: Claim): void;
  release(claimant: Claim): void;
  /** Whether one that works has to release its slot now, between two calls. */
  turnIsOver(claimant: Claim): boolean;
}

const RECLAIM_MS = 50;

export function threadSlots(o: { most: number; idleMs: number; turnMs: number }): ThreadSlots {
  const holding = new Map<Claim, number>();
  const waiting = new Map<Claim, number>();
  let look: NodeJS.Timeout | undefined;

  function fill(): void {
    for (const claimant of waiting.keys()) {
      if (holding.size >= o.most) break;
      waiting.delete(claimant);
      holding.set(claimant, performance.now());
      claimant.granted();
    }
    if (waiting.size > 0) return void (look ??= setInterval(reclaim, RECLAIM_MS));
    clearInterval(look);
    look = undefined;
  }

  /** From the one that has been idle longest. */
  function reclaim(): void {
    const idle = [...holding.keys()].flatMap((claimant) => {
      const since = claimant.idleSince();
      return since !== undefined && performance.now() - since >= o.idleMs ? [{ claimant, since }] : [];
    });
    idle.sort((a, b) => a.since - b.since)[0]?.claimant.giveBack();
  }

  return {
    claim(claimant) {
      if (holding.has(claimant) || waiting.has(claimant)) return;
      waiting.set(claimant, performance.now());
      fill();
    },
    release(claimant) {
      holding.delete(claimant);
      waiting.delete(claimant);
      fill();
    },
    turnIsOver(claimant) {
      const [asked] = waiting.values();
      const since = holding.get(claimant);
      if (asked === undefined || since === undefined) return false;
      return performance.now() - Math.max(asked, since) >= o.turnMs;
    },
  };
}

export const processThreads = threadSlots({ most: MOST_THREADS, idleMs: IDLE_MS, turnMs: TURN_MS });
