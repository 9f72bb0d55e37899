/**
 * Worker thread that runs one module in QuickJS (WebAssembly). Every call sees the module as it was right after
 * loading: QuickJS keeps all of its state in the WebAssembly memory, which is copied back before each call, at a
 * fiftieth of a fresh context's price. It may import packages only: from sources, sandbox.ts compiles this one file.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import {
  DefaultIntrinsics,
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSWASMModule,
  RELEASE_SYNC,
} from 'quickjs-emscripten';

/** Node's global; its type is in no library that is loaded here. */
declare const WebAssembly: { Memory: new (pages: { initial: number; maximum: number }) => Memory };

interface SandboxLimits {
  /** CPU milliseconds that one call may run before the interpreter interrupts it. */
  callMs: number;
  /** Pages of 64 KiB that the WebAssembly memory has: at least 256, of which the interpreter takes 80. */
  memoryPages: number;
  resultChars: number;
  quotedChars: number;
}
export interface SandboxWorkerData {
  source: string;
  limits: SandboxLimits;
  /** QuickJS, compiled: a WebAssembly.Module. */
  interpreter: object;
  /** Shared with the other side, a number each: the id of the call that began last, and how many calls are done (loading is one). */
  progress: { running: Int32Array; done: Int32Array };
}
export interface SandboxRequest {
  id: number;
  name: string;
  args: string;
}
/**
 * `json` is absent if the function returned undefined; the request `exports` answers the exported names.
 * After a `fatal` error this thread is not to be used again.
 */
export type SandboxReply = { id: number } & ({ json?: string } | { error: string; fatal: boolean });
/** The first message: from here on the thread's time is the module's. */
export interface ThreadUp {
  /** cpuMsOf() takes it. */
  thread: string | undefined;
}

/** The module cannot be loaded, or the call has failed; `fatal` if the thread may not be what it was before. */
class Failed extends Error {
  constructor(
    message: string,
    readonly fatal: boolean,
  ) {
    super(message);
  }
}
const OVERTIME = 'the call ran longer than its limit and was interrupted';
const NO_MEMORY = 'InternalError: out of memory';
/** Messages of the prelude for calls that have, or may have, run out of memory. */
const OUT_OF_MEMORY = new Set([NO_MEMORY, 'null was thrown, or the call is out of memory']);

const cpuMsOf = (thread: string): number => parseInt(readFileSync(`${thread}/schedstat`, 'latin1'), 10) / 1e6;

/** The kernel's folder of this thread, by which other threads read its CPU time, too; undefined if the kernel has no such figures. */
const ownThread = ((): string | undefined => {
  try {
    const thread = `/proc/${readlinkSync('/proc/thread-self')}`;
    return cpuMsOf(thread) > 0 ? thread : undefined;
  } catch {
    return undefined;
  }
})();

const ownCpuMs = (): number => (ownThread === undefined ? performance.now() : cpuMsOf(ownThread));

/**
 * Interrupts a call that has used its CPU time. The clock is asked at the interpreter's first look (some 10,000 operations into a call)
 * and then only when, at the earliest, the time can be over.
 */
class CallTimer {
  interrupted = false;
  private first: number | undefined;
  private next = 0;

  constructor(private readonly limit: number) {}

  start(): void {
    this.interrupted = false;
    this.first = undefined;
    this.next = 0;
  }

  over(): boolean {
    const now = performance.now();
    if (now < this.next) return false;
    const used = ownCpuMs();
    const left = this.limit - (used - (this.first ??= used));
    this.next = now + Math.max(left, 1);
    return (this.interrupted = left <= 0);
  }
}

interface LoadedModule {
  context: QuickJSContext;
  call: QuickJSHandle;
  restore: () => void;
}

/** Evaluates the module in a fresh context and takes the memory image. Throws Failed for errors of the module. */
function load(wasm: QuickJSWASMModule, timer: CallTimer): LoadedModule {
  const runtime = wasm.newRuntime();
  runtime.setMaxStackSize(256 * 1024);
  runtime.setInterruptHandler(() => timer.over());
  const context = runtime.newContext({ intrinsics: { ...DefaultIntrinsics, Date: false } });
  const call = (f: QuickJSHandle, ...args: QuickJSHandle[]): QuickJSHandle => {
    const result = context.callFunction(f, context.undefined, ...args);
    if (result.error) throw new Failed(timer.interrupted ? OVERTIME : NO_MEMORY, true);
    return result.value;
  };
  const taken = context.unwrapResult(context.evalCode(PRELUDE, 'prelude.js'));
  const { resultChars, quotedChars } = limits;
  const parts = call(taken, context.newNumber(resultChars), context.newNumber(quotedChars));
  const [tell, open] = [context.getProp(parts, 'tell'), context.getProp(parts, 'open')];
  timer.start();
  const evaluated = context.evalCode(source, 'environment.js', { type: 'module' });
  if (timer.interrupted) throw new Failed(OVERTIME, true);
  if (evaluated.error) throw new Failed(context.getString(call(tell, evaluated.error)), true);
  const opened = call(open, evaluated.value);
  if (context.typeof(opened) === 'string') throw new Failed(context.getString(opened), true);
  return { context, call: opened, restore: memoryImage(wasm.getWasmMemory()) };
}

/** Returns the result of a call as JSON, or undefined. Throws Failed; other errors come from the WebAssembly instance. */
function run(
  { context, call }: LoadedModule,
  { name, args }: Omit<SandboxRequest, 'id'>,
  timer: CallTimer,
): string | undefined {
  timer.start();
  const result = context.callFunction(call, context.undefined, context.newString(name), context.newString(args));
  // The prelude catches all exceptions except interrupts, and without memory it can't return a message.
  if (result.error) throw new Failed(timer.interrupted ? OVERTIME : NO_MEMORY, true);
  const answer = context.getString(result.value);
  if (answer === '') return undefined;
  const told = answer.slice(1);
  if (answer.startsWith('=')) return told;
  throw new Failed(told, OUT_OF_MEMORY.has(told));
}

/** An exception of the WebAssembly instance itself leaves its stack pointer where it was: later calls would have less of the stack. */
function failureOf(error: unknown): { error: string; fatal: boolean } {
  if (error instanceof Failed) return { error: error.message, fatal: error.fatal };
  const { name, message } = error as Error;
  return { error: name === 'RangeError' ? 'the stack overflowed' : `the interpreter failed: ${message}`, fatal: true };
}

async function serve(): Promise<void> {
  const port = parentPort;
  if (!port) throw new Error('sandbox-worker runs as a worker thread');
  // The limit is the memory's own: this build of QuickJS does not count what it allocates, so its setMemoryLimit holds nothing back.
  // It never grows: what a call can allocate must not depend on the calls before. Untouched pages cost nothing.
  const wasmMemory = new WebAssembly.Memory({ initial: limits.memoryPages, maximum: limits.memoryPages });
  const wasm = await newQuickJSWASMModuleFromVariant(newVariant(RELEASE_SYNC, { wasmMemory, wasmModule: interpreter }));
  port.postMessage({ thread: ownThread } satisfies ThreadUp);
  const timer = new CallTimer(limits.callMs);
  let loaded: LoadedModule | { error: string };
  try {
    loaded = load(wasm, timer);
  } catch (error) {
    loaded = failureOf(error);
  }
  Atomics.add(progress.done, 0, 1);
  let ended = false;
  port.on('message', ({ id, name, args }: SandboxRequest) => {
    if (ended) return;
    Atomics.store(progress.running, 0, id);
    let answer: { json?: string } | { error: string; fatal: boolean };
    try {
      if ('error' in loaded) throw new Failed(loaded.error, false);
      loaded.restore();
      const json = run(loaded, { name, args }, timer);
      answer = json === undefined ? {} : { json };
    } catch (error) {
      answer = failureOf(error);
      ended = 'error' in answer && answer.fatal;
    }
    Atomics.add(progress.done, 0, 1);
    port.postMessage({ id, ...answer } satisfies SandboxReply);
  });
}

interface Memory {
  buffer: ArrayBuffer;
}

interface Segment {
  offset: number;
  bytes: Uint8Array;
}

/**
 * Left out are the first run of zeros that is longer, which is the C stack (it lies below the heap, and holds nothing between calls), and the
 * end, which the allocator has not given out. Other zeros are a module's: a buffer that it has not filled.
 */
const GAP = 1_048_576;
const BLOCK = 4_096;

/** Takes the memory in use, from its first byte; the returned function copies it back. */
function memoryImage({ buffer }: Memory): () => void {
  const all = Buffer.from(buffer);
  const zeros = Buffer.alloc(BLOCK);
  const segments: Segment[] = [];
  let [start, end] = [0, BLOCK];
  const close = (): void => void segments.push({ offset: start, bytes: new Uint8Array(buffer).slice(start, end) });
  for (let at = BLOCK; at < all.length; at += BLOCK) {
    if (all.compare(zeros, 0, BLOCK, at, at + BLOCK) === 0) continue;
    if (segments.length === 0 && at - end >= GAP) {
      close();
      start = at;
    }
    end = at + BLOCK;
  }
  close();
  const memory = new Uint8Array(buffer);
  return () => {
    for (const { offset, bytes } of segments) memory.set(bytes, offset);
  };
}

const PRELUDE = `
delete Math.random;
(resultChars, quotedChars) => {
  const { parse, stringify } = JSON;
  const { keys, getOwnPropertyDescriptor: descriptorOf } = Object;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const textOf = String;
  const Promised = Promise;
  const used = [[globalThis, 'JSON', JSON], [JSON, 'parse', parse], [JSON, 'stringify', stringify], [Object, 'keys', keys],
    [Reflect, 'apply', apply], [Array.prototype, Symbol.iterator, Array.prototype[Symbol.iterator]]];
  const cut = (text) => (text.length > quotedChars ? apply(slice, text, [0, quotedChars]) + '…' : text);
  const tell = (thrown) => {
    try {
      if (thrown === null) return 'null was thrown, or the call is out of memory';
      if (typeof thrown !== 'object' && typeof thrown !== 'function') return cut(textOf(thrown));
      const { name, message, lineNumber } = thrown;
      if (typeof message !== 'string') return 'an object without a message was thrown';
      const place = name === 'SyntaxError' && typeof lineNumber === 'number' ? ' in line ' + lineNumber : '';
      return cut(typeof name === 'string' ? cut(name) + place + ': ' + message : message);
    } catch {
      return 'something was thrown that cannot be read';
    }
  };
  const open = (namespace) => {
    for (let i = 0; i < used.length; i += 1) {
      const found = descriptorOf(used[i][0], used[i][1]);
      if (!found || found.value !== used[i][2]) return 'the module replaces ' + textOf(used[i][1]) + ' while it loads: leave built-ins as they are';
    }
    if (namespace instanceof Promised) return 'the module awaits at its top level: a module loads without waiting';
    return (name, args) => {
      try {
        if (name === 'exports') return '=' + stringify(keys(namespace));
        const called = namespace[name];
        if (typeof called !== 'function') return '!the module has no function ' + cut(name);
        const result = apply(called, undefined, parse(args));
        if (result instanceof Promised) return '!a promise was returned: return the value itself';
        const json = stringify(result);
        if (json === undefined) return '';
        return json.length > resultChars ? '!the result has ' + json.length + ' characters, more than ' + resultChars : '=' + json;
      } catch (thrown) {
        return '!' + tell(thrown);
      }
    };
  };
  return { tell, open };
}`;

const { source, limits, interpreter, progress } = workerData as SandboxWorkerData;
void serve();
