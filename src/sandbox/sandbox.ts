/**
 * A sandboxed module: its functions are called with JSON values in a worker thread. Whatever the module does, its caller gets a SandboxError and the
 * other calls get their answers: those that waited behind a killed one are asked again in a new thread. The sandboxes of a process take turns where
 * there are more of them than threads.
 */
import { Worker } from 'node:worker_threads';
import { OutsideFailure } from '../domain/failures';
import { measureJson } from '../domain/json-size';
import {
  CALL_CPU_MS,
  KILL_CPU_MS,
  KILL_WALL_MS,
  MEMORY_PAGES,
  MOST_DEPTH,
  quoted,
  QUOTED_CHARS,
  RESULT_CHARS,
  MOST_THREADS,
  TURN_MS,
  IDLE_MS,
} from './limits';
import type { SandboxReply, SandboxRequest, ThreadUp, SandboxWorkerData } from './sandbox-worker';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type * as swc from '@swc/core';

/** V8's own heap in the thread: it holds a module's text and one call's texts. The module's values are in the WebAssembly memory. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

function startThread(data: Omit<SandboxWorkerData, 'interpreter'>): Worker {
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

/** Returns the CPU time of another thread, ms: wall-clock time if the kernel does not report it, NaN once the thread has ended. */
function cpuMsOf(thread: string | undefined): number {
  if (thread === undefined) return performance.now();
  try {
    return parseInt(readFileSync(`${thread}/schedstat`, 'latin1'), 10) / 1e6;
  } catch {
    return NaN;
  }
}

const WATCH_MS = 100;

function watchThread(o: {
  /** cpuMsOf() takes it. */
  thread: string | undefined;
  limits: { cpuMs: number; wallMs: number };
  /** Returns the number of answered calls; undefined while no call is pending. */
  progress: () => number | undefined;
  /** Called with the CPU time that calls have used since its last call. */
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

interface Claimant {
  state(): 'busy' | 'idle' | 'ending';
  /** Starts a thread. */
  start(): void;
  /** Ends the thread, and gives its place back once it has ended. */
  drop(): void;
}
/** The sandboxes that have a thread, with the time at which they got it. */
const threaded = new Map<Claimant, number>();
/** Sandboxes that wait for a thread, in order. */
const waiting = new Set<Claimant>();

let lookAgain: NodeJS.Timeout | undefined;

/** Gives threads to the sandboxes that wait. Where all are taken, an idle one ends. */
function shareThreads(): void {
  for (const claimant of waiting) {
    if (threaded.size >= MOST_THREADS) {
      const others = [...threaded.keys()];
      if (!others.some((one) => one.state() === 'ending')) others.find((one) => one.state() === 'idle')?.drop();
      lookAgain ??= setTimeout(() => {
        lookAgain = undefined;
        shareThreads();
      }, IDLE_MS);
      return;
    }
    waiting.delete(claimant);
    threaded.set(claimant, performance.now());
    claimant.start();
  }
}

const isTurnOver = (one: Claimant): boolean =>
  waiting.size > 0 && performance.now() - (threaded.get(one) ?? Infinity) >= TURN_MS;

/** The module did something that no environment may do. The episode is broken; there is no reward. */
export class SandboxError extends OutsideFailure {
  constructor(message: string) {
    super('BadEnvironment', message);
  }
}

/** Resolves to undefined if the module fails (SandboxError). */
export const unlessItFails = <Result>(result: Promise<Result>): Promise<Result | undefined> =>
  result.catch((error: unknown) => {
    if (error instanceof SandboxError) return undefined;
    throw error;
  });

/** Replaces limits of limits.ts. */
export interface SandboxOptions {
  callMs?: number;
  killMs?: number;
}

export interface Sandbox {
  /**
   * Calls an exported function with JSON arguments; resolves to its JSON result, undefined included. Rejects with SandboxError. `exports` is the
   * list of the names that there are.
   */
  call(name: string, args: unknown[]): Promise<unknown>;
  /** CPU time of the calls so far. */
  cpuMs(): number;
  close(): Promise<void>;
}

interface Pending {
  request: SandboxRequest;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const MOST_IDS = 2 ** 30;

/** Opens a sandbox over the text of an ES module. The module is loaded in the thread: a load error comes with the first call. */
export function openSandbox({ source, ...options }: { source: string } & SandboxOptions): Sandbox {
  const { callMs = CALL_CPU_MS, killMs = KILL_CPU_MS } = options;
  const limits = { callMs, memoryPages: MEMORY_PAGES, resultChars: RESULT_CHARS, quotedChars: QUOTED_CHARS };
  const pending = new Map<number, Pending>();
  let worker: Worker | undefined;
  let endWatch = (): void => {};
  let [lastId, cpuMs] = [0, 0];
  let running: () => Pending | undefined;
  let closed = false;
  let idleSince = -Infinity;
  const isIdle = () => pending.size === 0 && performance.now() - idleSince >= IDLE_MS;
  const self: Claimant = { start, drop, state: () => (!worker ? 'ending' : isIdle() ? 'idle' : 'busy') };

  function start(): void {
    const shared = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
    const progress = { running: shared(), done: shared() };
    const started = startThread({ source, limits, progress });
    worker = started;
    running = () => pending.get(Atomics.load(progress.running, 0)) ?? [...pending.values()][0];
    started.on('message', (message: ThreadUp | SandboxReply) => {
      if (worker !== started) return;
      if ('thread' in message)
        endWatch = watchThread({
          thread: message.thread,
          limits: { cpuMs: killMs, wallMs: KILL_WALL_MS },
          progress: () => (pending.size > 0 ? Atomics.load(progress.done, 0) : undefined),
          used: (ms) => void (cpuMs += ms),
          kill: (reason) => blame(started, reason),
        });
      else answer(message);
    });
    started.on('error', (error) => blame(started, `the thread failed: ${quoted(error.message)}`));
    started.on('exit', () => blame(started, 'the thread ended'));
    for (const { request } of pending.values()) started.postMessage(request);
  }

  function answer(reply: SandboxReply): void {
    const call = pending.get(reply.id);
    if (!call) return;
    const { request } = call;
    settle(request.id);
    if ('error' in reply) {
      call.reject(new SandboxError(`${request.name}: ${quoted(reply.error)}`));
      if (reply.fatal) return drop();
    } else read(call, reply.json);
    if (isTurnOver(self)) drop();
  }

  /** Parses a thread's answer. Invalid answers do not end the process, and the nesting is limited to what JSON.stringify() can handle. */
  function read({ request, resolve, reject }: Pending, json: string | undefined): void {
    try {
      if (json === undefined) resolve(undefined);
      else if (!measureJson(json, { values: Infinity, levels: MOST_DEPTH }).exceeded) resolve(JSON.parse(json));
      else reject(new SandboxError(`${request.name}: the result is nested more than ${MOST_DEPTH} deep`));
    } catch (error) {
      reject(new SandboxError(`${request.name}: the result is not JSON: ${quoted((error as Error).message)}`));
    }
  }

  function settle(id: number): void {
    pending.delete(id);
    // A thread that waits for calls does not keep the process alive; one that has calls does.
    if (pending.size === 0) worker?.unref();
    if (pending.size > 0) return;
    idleSince = performance.now();
    shareThreads();
  }

  /** Fails the call that was running; the others are asked again. */
  function blame(dead: Worker, reason: string): void {
    if (worker !== dead) return;
    const blamed = running();
    if (blamed) {
      settle(blamed.request.id);
      blamed.reject(new SandboxError(`${blamed.request.name}: ${reason}`));
    }
    drop();
  }

  /** Ends the thread. Pending calls are repeated in the next one. */
  function drop(): void {
    const last = worker;
    worker = undefined;
    endWatch();
    const release = (): void => {
      threaded.delete(self);
      if (pending.size > 0) waiting.add(self);
      shareThreads();
    };
    void last?.terminate().then(release, release);
  }

  function ask(name: string, args: unknown[]): Promise<unknown> {
    if (closed) return Promise.reject(new SandboxError(`${name}: the sandbox is closed`));
    return new Promise((resolve, reject) => {
      const request = { id: (lastId = (lastId % MOST_IDS) + 1), name, args: JSON.stringify(args) };
      pending.set(request.id, { request, resolve, reject });
      if (pending.size === 1) worker?.ref();
      if (worker) return worker.postMessage(request);
      if (threaded.has(self)) return; // its last thread is ending
      waiting.add(self);
      shareThreads();
    });
  }

  return {
    call: ask,
    cpuMs: () => cpuMs,
    async close() {
      closed = true;
      for (const { request, reject } of pending.values())
        reject(new SandboxError(`${request.name}: the sandbox was closed`));
      pending.clear();
      waiting.delete(self);
      const last = worker;
      drop();
      await last?.terminate();
    },
  };
}
