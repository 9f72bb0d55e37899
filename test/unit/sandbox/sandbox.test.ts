import { execFileSync } from 'node:child_process';
import { openModule, type EnvironmentModule } from '../../../src/sandbox/module';
import { openSandbox, SandboxError, type Sandbox } from '../../../src/sandbox/sandbox';
import { sandboxEnvironment } from '../../../src/sandbox/episodes';
import { seedOf, seedTasks } from '../../../src/domain/seeds';

const open: { close(): Promise<void> }[] = [];
const sandboxOf = (source: string, options: object = {}): Sandbox => {
  const sandbox = openSandbox({ source, callMs: 200, killMs: 1_500, ...options });
  open.push(sandbox);
  return sandbox;
};
afterEach(async () => {
  await Promise.all(open.splice(0).map((s) => s.close()));
});

describe('sandbox', () => {
  const hostile = `
    export const loop = () => { for (;;) {} };
    export const bomb = () => { const a = []; for (;;) a.push(new Uint8Array(1e6)); };
    export const strings = () => { const a = []; for (;;) a.push('x'.repeat(1e6) + a.length); };
    export const builtin = () => new Array(2 ** 27).fill(1).map(String).sort().join();
    export const stack = () => stack();
    export const boom = () => { throw new Error('no such item'); };
    export const big = () => 'x'.repeat(2000000);
    export const fine = (n) => n + 1;`;

  it.each([
    ['loop', /longer than its limit/],
    ['bomb', /out of memory/],
    ['strings', /no answer|out of memory|longer than its limit/],
    ['builtin', /no answer|memory|longer/],
    ['stack', /stack/],
    ['boom', /Error: no such item/],
    ['big', /2000002 characters/],
    ['missing', /no function missing/],
  ])('%s fails that call only', async (name, message) => {
    const sandbox = sandboxOf(hostile);
    const answers = await Promise.allSettled([
      sandbox.call('fine', [1]),
      sandbox.call(name, []),
      sandbox.call('fine', [2]),
    ]);
    expect(answers[0]).toEqual({ status: 'fulfilled', value: 2 });
    expect(answers[2]).toEqual({ status: 'fulfilled', value: 3 });
    const { reason } = answers[1] as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(SandboxError);
    expect(reason).toMatchObject({ type: 'BadEnvironment', retryable: false });
    expect(reason.message).toMatch(message);
  });

  it('kills the thread of a call that cannot be interrupted, and answers the others', async () => {
    const sandbox = sandboxOf(hostile, { callMs: 60_000, killMs: 1_000 });
    const waiting = [sandbox.call('fine', [1]), sandbox.call('loop', []), sandbox.call('fine', [2])];
    const answers = await Promise.allSettled(waiting);
    expect(answers.map((a) => a.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((answers[1] as PromiseRejectedResult).reason.message).toMatch(/no answer within 1000 ms/);
  });

  it.each(['process', 'require', 'fetch', 'Date', 'setTimeout', 'XMLHttpRequest', 'std', 'os', 'console'])(
    'has no %s',
    async (name) => {
      const sandbox = sandboxOf(`export const type = () => typeof globalThis[${JSON.stringify(name)}];`);
      expect(await sandbox.call('type', [])).toBe('undefined');
    },
  );

  it('has no way out through constructors, imports or Math.random', async () => {
    const sandbox = sandboxOf(`
      export const outside = () => Function('return typeof process + typeof require + typeof globalThis.Date')();
      export const random = () => Math.random();
      export const imported = () => { import('node:fs').then(() => { throw 1; }); return 'asked'; };`);
    expect(await sandbox.call('outside', [])).toBe('undefinedundefinedundefined');
    await expect(sandbox.call('random', [])).rejects.toThrow(/not a function/);
    expect(await sandbox.call('imported', [])).toBe('asked');
    await expect(sandboxOf(`import 'node:fs';`).exports()).rejects.toThrow(SandboxError);
  });

  it('reports a module that does not load, loops while loading, or is closed', async () => {
    await expect(sandboxOf('export const = 1').exports()).rejects.toThrow(/SyntaxError/);
    await expect(sandboxOf('for (;;) {}').exports()).rejects.toThrow(/longer than its limit/);
    const sandbox = sandboxOf('export const a = 1;');
    expect(await sandbox.exports()).toEqual(['a']);
    const waiting = expect(sandbox.call('b', [])).rejects.toThrow(/closed/);
    await sandbox.close();
    await waiting;
    await expect(sandbox.call('b', [])).rejects.toThrow(/closed/);
  });

  it('forgets what a call writes into large buffers that the module left empty', async () => {
    const sandbox = sandboxOf(`
      const [first, second] = [new Uint8Array(4 << 20), new Uint8Array(2 << 20)];
      export const f = () => [++first[2e6], ++second[1e6]];
      export const g = () => { const fresh = new Uint8Array(4 << 20); return ++fresh[2e6]; };`);
    for (let n = 0; n < 3; n += 1) {
      expect(await sandbox.call('f', [])).toEqual([1, 1]);
      expect(await sandbox.call('g', [])).toBe(1);
    }
  });

  it('forgets everything between calls: module variables, globals, prototypes, used memory', async () => {
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

  it('cuts an error that quotes a long text', async () => {
    const sandbox = sandboxOf(`export const quote = () => { throw new Error('x'.repeat(1e6)); };`);
    await expect(sandbox.call('quote', [])).rejects.toThrow(/^quote: Error: x{293}…$/);
  });
});

const counter = `
  export const describe = () => ({ policy: 'count .', tools: [{ name: 'add', description: '', parameters: {} }], maxSteps: 3 });
  export const make = (seed) => ({ seed, count: 0 });
  export const start = (state) => [{ role: 'system', content: 'count .' }, { role: 'user', content: 'to ' + state.seed }];
  export const step = (state, message) => ({
    state: { ...state, count: state.count + 1 }, messages: [{ role: 'user', content: message.content }], done: message.content === 'end',
  });
  export const reward = (state) => ({ reward: state.count / 4, breakdown: {} });
  export const reference = () => ({ actions: [], tell: [] });
  export const solve = () => [{ role: 'assistant', content: 'end' }];`;
const openCounter = (text = counter): Promise<Awaited<ReturnType<typeof sandboxEnvironment>>> => {
  const module: EnvironmentModule = openModule({ source: text });
  open.push(module);
  return sandboxEnvironment({ module, version: 'f'.repeat(64) });
};
const say = (content: string) => ({ role: 'assistant' as const, content });

describe('a process', () => {
  it('waits for calls under way, and ends with an idle sandbox open', () => {
    const program = `
      const { transformFileSync } = require('@swc/core');
      require.extensions['.ts'] = (module, file) => module._compile(transformFileSync(file, {
        jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' } }).code, file);
      require('./src/sandbox/sandbox.ts').openSandbox({ source: 'export const f = () => 7;' }).call('f', []).then(console.log);`;
    expect(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8', timeout: 60_000 })).toBe('7\n');
  });
});

describe('sandbox environment', () => {
  it('runs interleaved episodes independently and ends them by the step limit', async () => {
    const environment = await openCounter();
    const [a, b] = await Promise.all([
      environment.reset({ id: 'seed-1', seed: 0 }),
      environment.reset({ id: 'seed-2', seed: 0 }),
    ]);
    expect(a.start.messages[1]).toEqual({ role: 'user', content: 'to 1' });
    await a.step(say('x'));
    await a.step(say('y'));
    expect(await b.step(say('end'))).toMatchObject({ done: true, stopReason: 'user_stop' });
    expect(await a.step(say('z'))).toMatchObject({ done: true, stopReason: 'max_steps' });
    expect((await a.evaluate('max_steps')).reward).toBe(0.75);
    expect(await b.evaluate('user_stop')).toEqual({
      reward: 0.25,
      breakdown: {},
      reference: { actions: [], tell: [] },
    });
  });

  it('knows its tasks', async () => {
    const environment = await openCounter();
    const train = await environment.tasks('train');
    const test = await environment.tasks('test');
    expect(train[0]).toEqual({ id: 'seed-10000', split: 'train' });
    expect(test[0]).toEqual({ id: 'seed-1000000', split: 'test' });
    expect(new Set([...train, ...test].map((t) => t.id)).size).toBe(train.length + test.length);
    await expect(environment.reset({ id: 'seed--1', seed: 0 })).rejects.toThrow(/task "seed--1"/);
    expect(seedTasks({ from: 3, count: 2 }).map(seedOf)).toEqual([3, 4]);
    for (const task of ['seed-9999999999', 'seed-7-easier', '7']) expect(() => seedOf(task)).toThrow(RangeError);
  });

  it('leaves pairs of seeds out', () => {
    expect(seedTasks({ from: 0, count: 6, without: [3, 4] }).map(seedOf)).toEqual([0, 1, 6, 7, 8, 9]);
  });

  it('gives the hint of an instance, where the module has hints', async () => {
    const startOf = async (text?: string) => {
      const environment = await openCounter(text);
      return (await environment.reset({ id: 'seed-1', seed: 0 })).start;
    };
    const hint = `export const hint = (state) => 'as far as ' + state.seed + ' .';`;
    expect((await startOf(`${counter}\n${hint}`)).hint).toBe('as far as 1 .');
    expect('hint' in (await startOf())).toBe(false);
  });

  it.each([
    ['NaN', 'NaN'],
    ['1.5', '1.5'],
    ['a string', '"1"'],
  ])('a reward that is %s is a failure of the environment', async (_, value) => {
    const environment = await openCounter(counter.replace('state.count / 4', value));
    const episode = await environment.reset({ id: 'seed-1', seed: 0 });
    await expect(episode.evaluate('user_stop')).rejects.toThrow(/^reward: result\.reward:/);
  });

  it('names the function and the field of a malformed result', async () => {
    const environment = await openCounter(counter.replace('content: message.content', `content: ''`));
    const episode = await environment.reset({ id: 'seed-1', seed: 0 });
    await expect(episode.step(say('x'))).rejects.toThrow(/^step: result\.messages\.0\.content:/);
  });
});
