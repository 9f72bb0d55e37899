/**
 * A sandboxed module: its functions are called with JSON values in a worker thread, one thread per sandbox. Invariant: whatever the
 * module does (throws, loops, fills the memory), its caller gets a SandboxError within `hardMs`, and the other calls get their answers:
 * calls are stateless, so those that waited behind a killed one are asked again in a new thread.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type * as swc from '@swc/core';
import { OutsideFailure } from '../domain/failures';
import type { SandboxLimits, SandboxReply, SandboxRequest } from './sandbox-worker';

/** The module did something that no environment may do. The episode is broken; there is no reward. */
export class SandboxError extends OutsideFailure {
  constructor(message: string) {
    super('BadEnvironment', message);
  }
}

export interface SandboxOptions {
  /** Milliseconds after which the interpreter interrupts a call. */
  callMs?: number;
  /** Milliseconds after which the thread is killed: for loops inside a built-in, which the interpreter cannot interrupt. */
  hardMs?: number;
  /** Pages of 64 KiB, the interpreter's included: 512 unless told. */
  memoryPages?: number;
  resultChars?: number;
}

export interface Sandbox {
  /** Calls an exported function with JSON arguments; resolves to its JSON result, undefined included. Rejects with SandboxError. */
  call(name: string, args: unknown[]): Promise<unknown>;
  /** Names that the module exports. */
  exports(): Promise<string[]>;
  close(): Promise<void>;
}

interface Pending {
  request: SandboxRequest;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Opens a sandbox over the text of an ES module. The module is loaded in the thread: a load error comes with the first call. */
export function openSandbox({ source, ...options }: { source: string } & SandboxOptions): Sandbox {
  const limits: SandboxLimits = {
    callMs: options.callMs ?? 1_000,
    memoryPages: options.memoryPages ?? 512,
    resultChars: options.resultChars ?? 1_000_000,
  };
  const hardMs = options.hardMs ?? 5_000;
  /** In the order of asking, which is the order of answering: the first one is the one that runs. */
  const pending = new Map<number, Pending>();
  let worker: Worker | undefined;
  /** Starting a thread is not the module's time. */
  let up = false;
  let watchdog: NodeJS.Timeout | undefined;
  let lastId = 0;
  let closed = false;

  function start(): Worker {
    const started = newWorker({ source, limits });
    up = false;
    started.on('message', (reply: SandboxReply) => {
      if (worker !== started) return;
      up = true;
      const call = pending.get(reply.id);
      pending.delete(reply.id);
      watch();
      if (!call) return;
      if ('error' in reply) {
        call.reject(new SandboxError(`${call.request.name}: ${reply.error}`));
        if (reply.fatal) replace(started);
      } else call.resolve(reply.json === undefined ? undefined : JSON.parse(reply.json));
    });
    started.on('error', (error) => blame(started, `the thread failed: ${error.message}`));
    started.on('exit', () => blame(started, 'the thread ended'));
    return started;
  }

  /** Fails the call that was running; the others are asked again. */
  function blame(dead: Worker, reason: string): void {
    if (worker !== dead) return;
    const [running] = pending.values();
    if (running) {
      pending.delete(running.request.id);
      running.reject(new SandboxError(`${running.request.name}: ${reason}`));
    }
    replace(dead);
  }

  function replace(dead: Worker): void {
    worker = undefined;
    void dead.terminate();
    for (const { request } of pending.values()) post(request);
    watch();
  }

  function post(request: SandboxRequest): void {
    worker ??= start();
    worker.postMessage(request);
  }

  /**
   * Kills the thread when the running call has had no answer for hardMs. The time is counted in ticks so that a pause of this thread,
   * with answers waiting to be read, is not taken for a pause of that one.
   */
  function watch(): void {
    clearInterval(watchdog);
    const running = worker;
    // A thread that waits for calls does not keep the process alive; one that has calls does.
    if (pending.size === 0) running?.unref();
    else running?.ref();
    if (pending.size === 0 || !running || !up) return;
    let ticks = 0;
    watchdog = setInterval(() => {
      ticks += 1;
      if (ticks < 5) return;
      clearInterval(watchdog);
      blame(running, `no answer within ${hardMs} ms`);
    }, hardMs / 5);
  }

  function ask(name: string, args: unknown[]): Promise<unknown> {
    if (closed) return Promise.reject(new SandboxError(`${name}: the sandbox is closed`));
    return new Promise((resolve, reject) => {
      lastId += 1;
      const request = { id: lastId, name, args: JSON.stringify(args) };
      pending.set(request.id, { request, resolve, reject });
      post(request);
      if (pending.size === 1) watch();
    });
  }

  return {
    call: ask,
    exports: async () => (await ask('exports', [])) as string[],
    async close() {
      closed = true;
      clearInterval(watchdog);
      const last = worker;
      worker = undefined;
      for (const { request, reject } of pending.values())
        reject(new SandboxError(`${request.name}: the sandbox was closed`));
      pending.clear();
      await last?.terminate();
    },
  };
}

/** From a build the thread runs sandbox-worker.js; from sources (tests) there is none yet, so the one file is compiled here. */
function newWorker(workerData: { source: string; limits: SandboxLimits }): Worker {
  const built = join(__dirname, 'sandbox-worker.js');
  if (existsSync(built)) return new Worker(built, { workerData });
  return new Worker((compiled ??= compile()), { eval: true, workerData });
}

let compiled: string | undefined;

function compile(): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- a development dependency: a build must not ask for it
  const { transformSync } = require('@swc/core') as typeof swc;
  return transformSync(readFileSync(join(__dirname, 'sandbox-worker.ts'), 'utf8'), {
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  }).code;
}
