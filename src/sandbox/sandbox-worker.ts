/**
 * Worker thread that runs one environment module in QuickJS (WebAssembly). Invariant: every call sees the module exactly as it was
 * right after loading. QuickJS keeps all of its state in the WebAssembly memory, so the memory is copied once the module is loaded and
 * copied back before each call: nothing can leak from one call, or episode, into another, at a fiftieth of a fresh context's price.
 * Answers are given in the order of the requests.
 *
 * Imports packages only: from sources (tests) this file is compiled on its own, see sandbox.ts.
 */
import { parentPort, workerData } from 'node:worker_threads';
import {
  DefaultIntrinsics,
  newQuickJSWASMModuleFromVariant,
  newVariant,
  RELEASE_SYNC,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSWASMModule,
} from 'quickjs-emscripten';

interface Memory {
  buffer: ArrayBuffer;
}
/** Node's global; its type is in no library that is loaded here. */
declare const WebAssembly: { Memory: new (pages: { initial: number; maximum: number }) => Memory };

export interface SandboxLimits {
  /** Milliseconds that one call may run before the interpreter interrupts it. */
  callMs: number;
  /** Pages of 64 KiB that the WebAssembly memory may have: at least 256, of which the interpreter takes 80. */
  memoryPages: number;
  /** Characters of a call's JSON result. */
  resultChars: number;
}
export interface SandboxRequest {
  id: number;
  name: string;
  /** JSON array of arguments. */
  args: string;
}
/**
 * `json` is absent if the function returned undefined; the request `exports` answers the exported names. After a `fatal` error
 * this thread is not to be used again.
 */
export type SandboxReply = { id: number } & ({ json?: string } | { error: string; fatal: boolean });

/** What is left of the outside world in the context: no clock, no unseeded randomness; QuickJS itself has no I/O. */
const PRELUDE = `
delete Math.random;
(namespace, limit) => {
  const { parse, stringify } = JSON;
  return (name, args) => {
    if (name === 'exports') return stringify(Object.keys(namespace));
    if (typeof namespace[name] !== 'function') throw new TypeError('the module has no function ' + name);
    const result = stringify(namespace[name](...parse(args)));
    if (result !== undefined && result.length > limit) throw new RangeError(name + ': result of ' + result.length + ' characters');
    return result;
  };
}`;

interface Segment {
  offset: number;
  bytes: Uint8Array;
}

interface LoadedModule {
  context: QuickJSContext;
  call: QuickJSHandle;
  image: Segment[];
}

let deadline = Infinity;

/** Evaluates the module in a fresh context and takes the memory image. Throws what the module throws. */
function load(wasm: QuickJSWASMModule, source: string, limits: SandboxLimits): LoadedModule {
  const runtime = wasm.newRuntime();
  runtime.setMaxStackSize(256 * 1024);
  runtime.setInterruptHandler(() => Date.now() > deadline);
  const context = runtime.newContext({ intrinsics: { ...DefaultIntrinsics, Date: false } });
  const prelude = context.unwrapResult(context.evalCode(PRELUDE, 'prelude.js'));
  deadline = Date.now() + limits.callMs;
  const namespace = context.unwrapResult(context.evalCode(source, 'environment.js', { type: 'module' }));
  const limit = context.newNumber(limits.resultChars);
  const call = context.unwrapResult(context.callFunction(prelude, context.undefined, namespace, limit));
  return { context, call, image: memoryImage(wasm.getWasmMemory()) };
}

const WORDS_IN_MIB = 2 ** 17;

/** The memory in use. Left out are only runs of zeros of a MiB or more: the C stack, which holds nothing between calls, and the end. */
function memoryImage(memory: Memory): Segment[] {
  const words = new BigUint64Array(memory.buffer);
  const segments: Segment[] = [];
  let start = 0;
  let end = 0;
  const close = (): void => {
    if (end > start)
      segments.push({ offset: start * 8, bytes: new Uint8Array(memory.buffer).slice(start * 8, end * 8) });
  };
  for (let i = 0; i < words.length; i += 1) {
    if (words[i] === 0n) continue;
    if (i - end >= WORDS_IN_MIB) {
      close();
      start = i;
    }
    end = i + 1;
  }
  close();
  return segments;
}

function run(
  { context, call }: LoadedModule,
  { name, args }: SandboxRequest,
  limits: SandboxLimits,
): string | undefined {
  deadline = Date.now() + limits.callMs;
  const result = context.unwrapResult(
    context.callFunction(call, context.undefined, context.newString(name), context.newString(args)),
  );
  return context.typeof(result) === 'undefined' ? undefined : context.getString(result);
}

/** The id of the message that says that the thread has started: from here on its time counts. */
const THREAD_UP = 0;
/** Characters of an error's text: what a module throws may hold a whole conversation. */
const ERROR_CHARS = 300;
const OVERTIME = 'the call ran longer than its limit and was interrupted';

async function serve(source: string, limits: SandboxLimits): Promise<void> {
  const port = parentPort;
  if (!port) throw new Error('sandbox-worker runs as a worker thread');
  // The limit is the memory's own: this build of QuickJS does not count what it allocates, so its setMemoryLimit holds nothing back.
  const wasmMemory = new WebAssembly.Memory({ initial: 256, maximum: limits.memoryPages });
  const wasm = await newQuickJSWASMModuleFromVariant(newVariant(RELEASE_SYNC, { wasmMemory }));
  port.postMessage({ id: THREAD_UP });
  let loaded: LoadedModule | Error;
  try {
    loaded = load(wasm, source, limits);
  } catch (error) {
    loaded = error as Error;
  }
  port.on('message', (request: SandboxRequest) => {
    let reply: SandboxReply;
    try {
      if (loaded instanceof Error) throw loaded;
      const memory = new Uint8Array(wasm.getWasmMemory().buffer);
      for (const { offset, bytes } of loaded.image) memory.set(bytes, offset);
      const json = run(loaded, request, limits);
      reply = { id: request.id, ...(json !== undefined && { json }) };
    } catch (error) {
      const { name, message } = error as Error;
      // After these the WebAssembly instance itself is no longer to be trusted.
      const fatal = name === 'RuntimeError' || message === 'out of memory';
      const text = message === 'interrupted' ? OVERTIME : `${name}: ${message}`;
      reply = { id: request.id, error: text.length > ERROR_CHARS ? `${text.slice(0, ERROR_CHARS)}…` : text, fatal };
    }
    port.postMessage(reply);
  });
}

const { source, limits } = workerData as { source: string; limits: SandboxLimits };
void serve(source, limits);
