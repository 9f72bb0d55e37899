/** Code in a sandbox: what it cannot reach, what its failures cost the other calls, and what it cannot do to its host. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { isUnfit, MOST_DEPTH, MOST_THREADS, quoted } from '../../../src/sandbox/limits';
import { openModule } from '../../../src/sandbox/module';
import { openSandbox, type Sandbox, SandboxError, type SandboxOptions } from '../../../src/sandbox/sandbox';
import { closedAfterwards } from '../../support/opened';

jest.mock('../../../src/sandbox/limits', () => ({
  ...jest.requireActual<object>('../../../src/sandbox/limits'),
  TURN_MS: 100,
}));

const sandboxOf = (source: string, options: SandboxOptions = {}): Sandbox =>
  closedAfterwards(openSandbox({ source, ...options }));
const messageOf = (call: Promise<unknown>): Promise<string> => call.then(String, (error: Error) => error.message);

describe('a call that fails', () => {
  const hostile = `
    export const loop = () => { for (;;) {} };
    export const bomb = () => { const a = []; for (;;) a.push(new Uint8Array(1e6)); };
    export const strings = () => { const a = []; for (;;) a.push('x'.repeat(1e6) + a.length); };
    export const builtin = () => new Array(2 ** 27).fill(1).map(String).sort().join();
    export const stack = () => stack();
    export const boom = () => { throw new Error('no such item'); };
    export const big = () => 'x'.repeat(2000000);
    export const later = async () => ({});
    export const fine = (n) => n + 1;`;
  const limits = { callMs: 200, killMs: 1_500 };

  it.each<[string, RegExp, SandboxOptions?]>([
    ['loop', /longer than its limit/],
    // It cannot be interrupted in time: its thread is killed.
    ['loop', /no answer within 1000 ms/, { callMs: 60_000, killMs: 1_000 }],
    ['bomb', /out of memory/],
    ['strings', /no answer|out of memory|longer than its limit/],
    ['builtin', /no answer|memory|longer/],
    ['stack', /stack/],
    ['boom', /Error: no such item/],
    ['big', /2000002 characters/],
    ['later', /^later: a promise was returned/],
    ['missing', /no function missing/],
  ])('leaves the others alone: %s', async (name, message, options = limits) => {
    const sandbox = sandboxOf(hostile, options);
    const calls = [sandbox.call('fine', [1]), sandbox.call(name, []), sandbox.call('fine', [2])];
    const [before, failed, after] = await Promise.allSettled(calls);
    expect([before, after]).toEqual([
      { status: 'fulfilled', value: 2 },
      { status: 'fulfilled', value: 3 },
    ]);
    const { reason } = failed as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(SandboxError);
    expect(reason).toMatchObject({ type: 'BadEnvironment', retryable: false, message: expect.stringMatching(message) });
  });

  it('says what was thrown in one printable line, and its thread goes on, whatever that looked like', async () => {
    const sandbox = sandboxOf(`
      const long = new Error('\\u001b]0;owned\\u0007\\u202e\\r\\nhidden' + 'x'.repeat(5e6));
      const thrown = [{ name: 'RuntimeError', message: 'x' }, Promise.resolve(1), { get message() { throw 1; } }, new Error('interrupted'), long];
      export const spoof = (n) => { throw thrown[n]; };
      export const fine = () => 1;`);
    await sandbox.call('fine', []);
    const messages = await Promise.all([0, 1, 2, 3, 4].map((n) => messageOf(sandbox.call('spoof', [n]))));
    expect(messages).toEqual([
      'spoof: RuntimeError: x',
      'spoof: an object without a message was thrown',
      'spoof: something was thrown that cannot be read',
      'spoof: Error: interrupted',
      expect.stringMatching(/^spoof: Error: ]0;owned hiddenx+…$/),
    ]);
    expect(messages[4]!.length).toBeLessThan(320);
  });

  it('has a module that does not load, loops while loading, or is closed', async () => {
    expect(await messageOf(sandboxOf('export const = 1').call('f', []))).toMatch(/SyntaxError/);
    expect(await messageOf(sandboxOf('for (;;) {}', limits).call('f', []))).toMatch(/longer than its limit/);
    const sandbox = sandboxOf('export const a = 1;');
    expect(await sandbox.call('exports', [])).toEqual(['a']);
    const waiting = expect(sandbox.call('b', [])).rejects.toThrow(/closed/);
    await sandbox.close();
    await waiting;
    await expect(sandbox.call('b', [])).rejects.toThrow(/closed/);
  });
});

describe('the world outside', () => {
  it('is not there, and reached by no constructor, import or Math.random', async () => {
    const names = ['process', 'require', 'fetch', 'Date', 'setTimeout', 'XMLHttpRequest', 'std', 'os', 'console'];
    const sandbox = sandboxOf(`
      export const types = (names) => names.map((name) => typeof globalThis[name]);
      export const outside = () => Function('return typeof process + typeof require + typeof globalThis.Date')();
      export const random = () => Math.random();
      export const imported = () => { import('node:fs').then(() => { throw 1; }); return 'asked'; };`);
    expect(await sandbox.call('types', [names])).toEqual(names.map(() => 'undefined'));
    expect(await sandbox.call('outside', [])).toBe('undefinedundefinedundefined');
    await expect(sandbox.call('random', [])).rejects.toThrow(/not a function/);
    expect(await sandbox.call('imported', [])).toBe('asked');
    await expect(sandboxOf(`import 'node:fs';`).call('f', [])).rejects.toThrow(SandboxError);
  });
});

describe('built-ins', () => {
  it.each([
    ['JSON.stringify', `JSON.stringify = () => '{';`],
    ['JSON.parse', 'JSON.parse = () => 5;'],
    ['JSON', 'globalThis.JSON = { parse() {}, stringify() {} };'],
    ['JSON by a getter', `Object.defineProperty(globalThis, 'JSON', { get() { for (;;) {} } });`],
    ['Object.keys', 'Object.keys = () => 5;'],
    ['iteration', 'Array.prototype[Symbol.iterator] = function* () { for (;;) yield 1; };'],
  ])('%s: a module that replaces it while it loads is refused', async (_, text) => {
    await expect(sandboxOf(`${text} export const f = () => 1;`).call('f', [])).rejects.toThrow(
      /^f: the module replaces .* while it loads/,
    );
  });

  it('that are replaced in a call, or frozen, or that JSON asks, change nothing for the host', async () => {
    const sandbox = sandboxOf(`
      Object.freeze(Object.prototype);
      export const replace = () => { JSON.stringify = () => '{'; JSON.parse = null; Reflect.apply = null; return [1]; };
      export const odd = () => ({ toJSON: () => 'said' });`);
    expect(await sandbox.call('replace', [])).toEqual([1]);
    expect(await sandbox.call('odd', [])).toBe('said');
    expect(await sandbox.call('replace', [])).toEqual([1]);
    const source = 'Array.prototype.toJSON = () => 5; export const f = () => 1;';
    await expect(closedAfterwards(openModule({ source })).exports()).rejects.toThrow(/^exports: result: a list/);
  });
});

describe('the next call', () => {
  it('finds nothing of the one before: module variables, globals, prototypes, used memory', async () => {
    const sandbox = sandboxOf(`
      let calls = 0; const seen = new Map();
      export const visit = () => {
        calls += 1; seen.set(calls, calls); globalThis.mark = (globalThis.mark ?? 0) + 1; Array.prototype.extra = calls;
        JSON.stringify = () => 'broken';
        const filler = []; for (let i = 0; i < 20000; i += 1) filler.push({ i, text: 'x' + i });
        return [calls, seen.size, globalThis.mark, filler.length];
      };
      export const look = () => [calls, seen.size, typeof globalThis.mark, [].extra ?? null];`);
    for (let n = 0; n < 20; n += 1) {
      expect(await sandbox.call('visit', [])).toEqual([1, 1, 1, 20000]);
      expect(await sandbox.call('look', [])).toEqual([0, 0, 'undefined', null]);
    }
  });

  it('finds large buffers as empty as the module left them', async () => {
    const sandbox = sandboxOf(`
      const [first, second] = [new Uint8Array(4 << 20), new Uint8Array(2 << 20)];
      export const f = () => [++first[2e6], ++second[1e6]];
      export const g = () => { const fresh = new Uint8Array(4 << 20); return ++fresh[2e6]; };`);
    for (let n = 0; n < 3; n += 1) {
      expect(await sandbox.call('f', [])).toEqual([1, 1]);
      expect(await sandbox.call('g', [])).toBe(1);
    }
  });

  it('has the same stack after the interpreter itself overflowed', async () => {
    const sandbox = sandboxOf(`
      export const depth = () => { let n = 0; const f = () => { n += 1; f(); }; try { f(); } catch {} return n; };
      export const deep = () => eval('"\`\${'.repeat(2e4));
      export const nested = () => { eval('('.repeat(1e5)); };`);
    const before = await sandbox.call('depth', []);
    for (const name of ['deep', 'nested', 'nested']) await expect(sandbox.call(name, [])).rejects.toThrow(SandboxError);
    expect(await sandbox.call('depth', [])).toBe(before);
  });

  it('has as much memory after one that used it up', async () => {
    const sandbox = sandboxOf(`
      export const fill = () => { const a = []; try { for (;;) a.push(new Uint8Array(1e5)); } catch {} const n = a.length; a.length = 0; return n; };
      export const bomb = () => { const a = []; for (;;) a.push([a.length]); };`);
    const first = await sandbox.call('fill', []);
    await expect(sandbox.call('bomb', [])).rejects.toThrow(/memory/);
    expect(await sandbox.call('fill', [])).toBe(first);
  });
});

describe('results and texts', () => {
  it('are not too deep, by their brackets outside of texts', async () => {
    const sandbox = sandboxOf(
      'export const nested = (n) => { let a = 1; for (let i = 0; i < n; i += 1) a = i % 2 ? [a] : { a }; return a; };',
    );
    expect(JSON.stringify(await sandbox.call('nested', [MOST_DEPTH]))).toHaveLength(MOST_DEPTH * 4 + 1);
    await expect(sandbox.call('nested', [MOST_DEPTH + 1])).rejects.toThrow(
      /^nested: the result is nested more than 200/,
    );
  });

  it('are one printable line where they are quoted', () => {
    expect(quoted('a\u009b31m\n b')).toBe('a 31m b');
    expect(['plain \t\r\n é 😀', 'a\0b', '\u007f', '\udc00'].map(isUnfit)).toEqual([false, true, true, true]);
  });
});

describe('sandboxes', () => {
  it('take turns with few threads: each answers all of its calls', async () => {
    const source = 'export const f = (n) => { for (let i = 0; i < 1e5; i += 1); return n; };';
    const open = Array.from({ length: MOST_THREADS + 3 }, () => sandboxOf(source));
    const inputs = open.map((_, n) => Array.from({ length: n < MOST_THREADS ? 40 : 2 }, (_, i) => n + i));
    const threads = (): number => (process.platform === 'linux' ? readdirSync('/proc/self/task').length : 0);
    const before = threads();
    let most = 0;
    let ended = 0;
    const endedAt: number[] = [];
    const outputs = open.map(async (sandbox, n) => {
      const answers = await Promise.all(inputs[n]!.map((i) => sandbox.call('f', [i])));
      endedAt[n] = ended++;
      return answers;
    });
    const look = setInterval(() => (most = Math.max(most, threads() - before)), 20);
    expect(await Promise.all(outputs)).toEqual(inputs);
    clearInterval(look);
    expect(most).toBeLessThanOrEqual(MOST_THREADS);
    expect(Math.max(...endedAt.slice(MOST_THREADS))).toBeLessThan(MOST_THREADS); // they did not wait for the busy ones
    expect(await open.at(-1)!.call('f', [7])).toBe(7);
  });

  const onLinux = process.platform === 'linux' ? it : it.skip;
  onLinux('count CPU time, so that a call among many others has the time that it would have alone', async () => {
    const source = 'export const work = (n) => { let s = 0; for (let i = 0; i < n; i += 1) s += i % 7; return s; };';
    const among = sandboxOf(source, { callMs: 400, killMs: 2_000 });
    await among.call('work', [1e5]);
    const took = async (n: number): Promise<number> => {
      const before = performance.now();
      await among.call('work', [n]);
      return performance.now() - before;
    };
    const each = Math.min(await took(1e6), await took(1e6), await took(1e6));
    const n = Math.round((1e6 * 200) / each);
    // Three times as many threads as cores on a machine with two: the call takes longer than its limit on the wall.
    const looping = () => sandboxOf('export const loop = () => { for (;;) {} };', { callMs: 800, killMs: 2_000 });
    const loops = Promise.allSettled(Array.from({ length: 6 }, () => looping().call('loop', [])));
    expect(await among.call('work', [n])).toBeGreaterThan(0);
    for (const loop of await loops)
      expect(loop).toMatchObject({ reason: { message: expect.stringMatching(/longer than its limit/) as string } });
  });
});

test('a process waits for calls under way, and ends with an idle sandbox open', () => {
  const program = `
    const { transformFileSync } = require('@swc/core');
    require.extensions['.ts'] = (module, file) => module._compile(transformFileSync(file, {
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' } }).code, file);
    require('./src/sandbox/sandbox.ts').openSandbox({ source: 'export const f = () => 7;' }).call('f', []).then(console.log);`;
  expect(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8', timeout: 60_000 })).toBe('7\n');
});
