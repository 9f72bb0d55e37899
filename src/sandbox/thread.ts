/** Starts a sandbox's thread: from a build it runs sandbox-worker.js; from sources (tests) there is none, and the files are compiled here. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type * as swc from '@swc/core';
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

/** The worker and the files that it imports, as one text: a thread has no loader for sources. */
function compile(): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- a development dependency: a build must not ask for it
  const { transformSync } = require('@swc/core') as typeof swc;
  const files = ['memory-image', 'prelude', 'thread-clock', 'thread-progress', 'sandbox-worker'].map((name) => {
    const { code } = transformSync(readFileSync(join(__dirname, `${name}.ts`), 'utf8'), {
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
    });
    return `loaded['./${name}'] = ((exports) => {\n${code}\nreturn exports; })({});`;
  });
  return `const loaded = {}; const outside = require;\n{ const require = (id) => loaded[id] ?? outside(id);\n${files.join('\n')} }`;
}
