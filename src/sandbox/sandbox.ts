/**
 * A sandboxed module: its functions are called with JSON values in a worker thread. Whatever the module does, its
 * caller gets a SandboxError and the other calls get their answers: those that waited behind a killed one are asked
 * again in a new thread.
 */
import type { Worker } from 'node:worker_threads';
import { OutsideFailure } from '../domain/failures';
import { limited } from '../domain/concurrency';
import {
  CALL_CPU_MS,
  isDeep,
  KILL_CPU_MS,
  KILL_WALL_MS,
  MEMORY_PAGES,
  MOST_DEPTH,
  quoted,
  QUOTED_CHARS,
  RESULT_CHARS,
} from './limits';
import type { SandboxReply, SandboxRequest, ThreadUp } from './sandbox-worker';
import { processThreads, startThread, type ThreadSlots, watchThread } from './threads';

/** The module did something that no environment may do. The episode is broken; there is no reward. */
export class SandboxError extends OutsideFailure {
  constructor(message: string) {
    super('BadEnvironment', message);
  }
}

/** What a module's function comes to; undefined where the module fails. */
export const unlessItFails = <Result>(result: Promise<Result>): Promise<Result | undefined> =>
  result.catch((error: unknown) => {
    if (error instanceof SandboxError) return undefined;
    throw error;
  });

/** Where they are to be others than those of limits.ts, and of this process. */
export interface SandboxOptions {
  callMs?: number;
  killMs?: number;
  threads?: ThreadSlots;
}

export interface Sandbox {
  /**
   * Calls an exported function with JSON arguments; resolves to its JSON result, undefined included. Rejects with SandboxError. `exports` is the
   * list of the names that there are.
   */
  call(name: string, args: unknown[]): Promise<unknown>;
  spent(): { cpuMs: number; functions: { name: string; calls: number; ms: number }[] };
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
  const { callMs = CALL_CPU_MS, killMs = KILL_CPU_MS, threads = processThreads } = options;
  const limits = { callMs, memoryPages: MEMORY_PAGES, resultChars: RESULT_CHARS, quotedChars: QUOTED_CHARS };
  const pending = new Map<number, Pending>();
  const functions = new Map<string, { calls: number; ms: number }>();
  let worker: Worker | undefined;
  let endWatch = (): void => {};
  let [lastId, cpuMs] = [0, 0];
  let running: () => Pending | undefined;
  let idleSince: number | undefined = performance.now();
  let closed = false;
  const claim = { granted: start, giveBack: drop, idleSince: () => idleSince };

  function start(): void {
    const shared = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
    const progress = { running: shared(), done: shared() };
    const started = startThread({ source, limits, progress });
    worker = started;
    running = () => pending.get(Atomics.load(progress.running, 0)) ?? [...pending.values()][0];
    started.on('message', (message: ThreadUp | SandboxReply[]) => {
      if (worker !== started) return;
      if ('thread' in message)
        endWatch = watchThread({
          thread: message.thread,
          limits: { cpuMs: killMs, wallMs: KILL_WALL_MS },
          progress: () => (pending.size > 0 ? Atomics.load(progress.done, 0) : undefined),
          used: (ms) => void (cpuMs += ms),
          kill: (reason) => blame(started, reason),
        });
      else message.forEach(answer);
    });
    started.on('error', (error) => blame(started, `the thread failed: ${quoted(error.message)}`));
    started.on('exit', () => blame(started, 'the thread ended'));
    for (const { request } of pending.values()) started.postMessage(request);
    if (pending.size === 0) rest();
  }

  function answer(reply: SandboxReply): void {
    const call = pending.get(reply.id);
    if (!call) return;
    const { request } = call;
    settle(request.id);
    const { calls, ms } = functions.get(request.name) ?? { calls: 0, ms: 0 };
    functions.set(request.name, { calls: calls + 1, ms: ms + reply.ms });
    if ('error' in reply) {
      call.reject(new SandboxError(`${request.name}: ${quoted(reply.error)}`));
      if (reply.fatal) return drop();
    } else read(call, reply.json);
    if (threads.turnIsOver(claim)) drop();
  }

  /** Nothing that a thread says may end the process, and what is read here can be written again: not too deep for JSON.stringify(). */
  function read({ request, resolve, reject }: Pending, json: string | undefined): void {
    try {
      if (json === undefined) resolve(undefined);
      else if (!isDeep(json, MOST_DEPTH)) resolve(JSON.parse(json));
      else reject(new SandboxError(`${request.name}: the result is nested more than ${MOST_DEPTH} deep`));
    } catch (error) {
      reject(new SandboxError(`${request.name}: the result is not JSON: ${quoted((error as Error).message)}`));
    }
  }

  function settle(id: number): void {
    pending.delete(id);
    if (pending.size === 0) rest();
  }

  /** A thread that waits for calls does not keep the process alive; one that has calls does. */
  function rest(): void {
    idleSince = performance.now();
    worker?.unref();
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

  /** Ends the thread. What is still to be answered is asked of the next one. */
  function drop(): void {
    const last = worker;
    worker = undefined;
    endWatch();
    const release = (): void => {
      threads.release(claim);
      if (pending.size > 0) threads.claim(claim);
    };
    if (last) void last.terminate().then(release, release);
  }

  function ask(name: string, args: unknown[]): Promise<unknown> {
    if (closed) return Promise.reject(new SandboxError(`${name}: the sandbox is closed`));
    const answered = new Promise((resolve, reject) => {
      const request = { id: (lastId = (lastId % MOST_IDS) + 1), name, args: JSON.stringify(args) };
      pending.set(request.id, { request, resolve, reject });
      if (idleSince !== undefined) worker?.ref();
      idleSince = undefined;
      if (worker) worker.postMessage(request);
      else threads.claim(claim);
    });
    return limited(answered);
  }

  return {
    call: ask,
    spent: () => ({ cpuMs, functions: [...functions].map(([name, spent]) => ({ name, ...spent })) }),
    async close() {
      closed = true;
      const last = worker;
      worker = undefined;
      endWatch();
      for (const { request, reject } of pending.values())
        reject(new SandboxError(`${request.name}: the sandbox was closed`));
      pending.clear();
      await last?.terminate();
      threads.release(claim);
    },
  };
}
