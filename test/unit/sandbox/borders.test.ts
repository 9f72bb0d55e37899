/** What a module may not do to the host: tamper with what the sandbox uses, change a thread, say too much, deep or unprintable things. */
import {
  EPISODE_CHARS,
  isDeep,
  isUnfit,
  MOST_DEPTH,
  MOST_STEPS,
  MOST_TOOLS,
  quoted,
  TEXT_CHARS,
} from '../../../src/sandbox/limits';
import { openModule, type EnvironmentModule } from '../../../src/sandbox/module';
import { openSandbox, SandboxError, type Sandbox } from '../../../src/sandbox/sandbox';
import { sandboxEnvironment } from '../../../src/sandbox/episodes';

jest.setTimeout(60_000);

const open: { close(): Promise<void> }[] = [];
const kept = <Opened extends { close(): Promise<void> }>(opened: Opened): Opened => {
  open.push(opened);
  return opened;
};
const sandboxOf = (source: string, options: object = {}): Sandbox => kept(openSandbox({ source, ...options }));
afterEach(async () => {
  await Promise.all(open.splice(0).map((s) => s.close()));
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
    const lying = sandboxOf('Array.prototype.toJSON = () => 5; export const f = () => 1;');
    await expect(lying.exports()).rejects.toThrow(/^exports: not a list/);
  });
});

describe('a thread', () => {
  const depth =
    'export const depth = () => { let n = 0; const f = () => { n += 1; f(); }; try { f(); } catch {} return n; };';

  it('is replaced after a stack overflow of the interpreter itself, so that later calls have the same stack', async () => {
    const sandbox = sandboxOf(`${depth} export const deep = () => eval('"\`\${'.repeat(2e4));
      export const nested = () => { eval('('.repeat(1e5)); };`);
    const before = await sandbox.call('depth', []);
    for (const name of ['deep', 'nested', 'nested']) await expect(sandbox.call(name, [])).rejects.toThrow(SandboxError);
    expect(await sandbox.call('depth', [])).toBe(before);
  });

  it('has as much memory after a call that used it up as before', async () => {
    const sandbox = sandboxOf(`
      export const fill = () => { const a = []; try { for (;;) a.push(new Uint8Array(1e5)); } catch {} const n = a.length; a.length = 0; return n; };
      export const bomb = () => { const a = []; for (;;) a.push([a.length]); };`);
    const first = await sandbox.call('fill', []);
    await expect(sandbox.call('bomb', [])).rejects.toThrow(/memory/);
    expect(await sandbox.call('fill', [])).toBe(first);
  });

  it('is kept after an error that only looks like the end of it', async () => {
    const sandbox = sandboxOf(`export const spoof = (n) => { throw n === 0 ? { name: 'RuntimeError', message: 'x' }
      : n === 1 ? Promise.resolve(1) : n === 2 ? { get message() { throw 1; } } : new Error('interrupted'); };
      export const fine = () => 1;`);
    await sandbox.call('fine', []);
    const messages = await Promise.all(
      [0, 1, 2, 3].map((n) => sandbox.call('spoof', [n]).then(String, (e: Error) => e.message)),
    );
    expect(messages).toEqual([
      'spoof: RuntimeError: x',
      'spoof: an object without a message was thrown',
      'spoof: something was thrown that cannot be read',
      'spoof: Error: interrupted',
    ]);
    expect(sandbox.spent().functions).toContainEqual(expect.objectContaining({ name: 'spoof', calls: 4 }));
  });
});

describe('results', () => {
  it('are not promises, and not too deep', async () => {
    const sandbox = sandboxOf(`
      export const later = async () => ({});
      export const nested = (n) => { let a = 1; for (let i = 0; i < n; i += 1) a = i % 2 ? [a] : { a }; return a; };`);
    await expect(sandbox.call('later', [])).rejects.toThrow(/^later: a promise was returned/);
    expect(JSON.stringify(await sandbox.call('nested', [MOST_DEPTH]))).toHaveLength(MOST_DEPTH * 4 + 1);
    await expect(sandbox.call('nested', [MOST_DEPTH + 1])).rejects.toThrow(
      /^nested: the result is nested more than 200/,
    );
  });

  it('are as deep as their brackets outside of texts', () => {
    expect(isDeep('[[1]]'.padEnd(9, ' '), 2)).toBe(false);
    expect(isDeep('[[[1]]]', 2)).toBe(true);
    expect(isDeep(JSON.stringify(['[[[[', '\\"[[[[', '{']), 1)).toBe(false);
    expect(isDeep('[[],[],[],[],[]]', 2)).toBe(false);
  });
});

const parts = {
  describe: `({ policy: 'p', tools: [{ name: 'look', description: '', parameters: {} }], maxSteps: 200 })`,
  make: '({ n: 0 })',
  start: `[{ role: 'user', content: 'hello' }]`,
  step: `({ state, done: false, messages: [{ role: 'user', content: 'go on' }] })`,
  reward: '({ reward: 1, breakdown: {} })',
  reference: '({ actions: [], tell: [] })',
  solve: `[{ role: 'assistant', content: 'x' }]`,
  shortcuts: '({})',
};
const moduleOf = (changes: Partial<typeof parts>): EnvironmentModule => {
  const functions = Object.entries({ ...parts, ...changes }).map(
    ([name, body]) => `export const ${name} = (state, message) => ${body};`,
  );
  return kept(openModule({ source: functions.join('\n') }));
};
const say = (content: string) => ({ role: 'assistant' as const, content });
const use = { role: 'assistant' as const, content: '', toolCalls: [{ id: 'call_0', name: 'look', arguments: {} }] };

describe('the interface', () => {
  const answer = (messages: string, done = false): Partial<typeof parts> => ({
    step: `({ state, done: ${done}, messages: ${messages} })`,
  });
  const tool = (more: string): string =>
    parts.describe.replace(/tools: \[.*\]/, `tools: [{ name: 'look', description: '', parameters: {}, ${more} }]`);

  const described = (m: EnvironmentModule) => m.describe();
  const spoken = (m: EnvironmentModule) => m.step({}, say('x'));
  const called = (m: EnvironmentModule) => m.step({}, use);
  const describing = (from: string | RegExp, to: string) => ({ describe: parts.describe.replace(from, to) });
  const said = (text: string) => answer(`[{ role: 'user', content: ${text} }]`);
  const toolAnswer = (id: string) => `{ role: 'tool', toolCallId: '${id}', content: 'x' }`;
  const manyTools = `({ policy: 'p', maxSteps: 5, tools: Array(${MOST_TOOLS + 1}).fill({}) })`;
  const manyShortcuts = 'Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, []]))';
  const longSolution = `Array(${MOST_STEPS + 1}).fill({ role: 'assistant', content: 'x' })`;
  const longKey = `({ reward: 1, breakdown: { ['z'.repeat(900000)]: 1 } })`;
  const nullState = `({ state: null, done: true, messages: [] })`;
  const longAbout = tool(`outputSchema: { about: ['x'.repeat(250000)] }`);

  it.each<[string, Partial<typeof parts>, (m: EnvironmentModule) => Promise<unknown>, RegExp]>([
    ['a silent step', answer('[]'), spoken, /^step: nothing is said and the episode goes on/],
    ['an unanswered call', said(`'x'`), called, /call_0" is not answered/],
    ['an answer to nobody', answer(`[${toolAnswer('z')}]`), called, /"z", which is no open call/],
    ['a second answer', answer(`Array(2).fill(${toolAnswer('call_0')})`), called, /no open call/],
    ['a blank text', said(`' \\n'`), spoken, /messages\.0\.content: it is blank/],
    ['control characters', said(`'a\\u001b[2J'`), spoken, /control characters/],
    ['half a pair', said(`'\\ud800 x'`), spoken, /surrogate/],
    ['a long text', said(`'x'.repeat(${TEXT_CHARS + 1})`), spoken, /content: Too big/],
    ['many messages', answer(`Array(17).fill({ role: 'user', content: 'x' })`), spoken, /17 messages answer one/],
    ['a crowd of messages', answer('Array(300000).fill(0)'), spoken, /result\.messages: more than 1000/],
    ['a state of null', { step: nullState }, spoken, /result\.state: a state is needed/],
    ['endless steps', describing('200', '201'), described, /maxSteps: Too big/],
    ['a crowd of tools', { describe: manyTools }, described, /result\.tools: more than 64/],
    ['a tool twice', describing(/tools: \[(.*)\]/, 'tools: [$1, $1]'), described, /the same name/],
    ['a nameless tool', describing(`'look'`, `''`), described, /tools\.0\.name/],
    ['a list for a schema', { describe: tool('outputSchema: []') }, described, /outputSchema: a schema is needed/],
    ['a long description', { describe: longAbout }, described, /describe: \d+ characters, more than 200000/],
    ['a long solution', { solve: longSolution }, (m) => m.solve(1), /more than 200/],
    ['many shortcuts', { shortcuts: manyShortcuts }, (m) => m.shortcuts(1), /more than 64 entries/],
    ['a long key', { reward: longKey }, (m) => m.reward({}), /^reward: result\.breakdown\.z+…: /],
  ])('%s breaks the call, in few words', async (_, changes, run, message) => {
    const error = await run(moduleOf(changes)).then(
      () => undefined,
      (e: Error) => e,
    );
    expect(error).toBeInstanceOf(SandboxError);
    expect(error?.message).toMatch(message);
    expect(error?.message.length).toBeLessThan(500);
  });

  it('lets an episode end without an answer to a call', async () => {
    const { step } = moduleOf(answer('[]', true));
    expect(await step({}, use)).toMatchObject({ done: true });
  });

  it('ends an episode in which too much is said', async () => {
    const step = `({ state, done: false, messages: [{ role: 'user', content: 'x'.repeat(${TEXT_CHARS}) }] })`;
    const environment = await sandboxEnvironment({ module: moduleOf({ step }), version: 'f'.repeat(64) });
    const episode = await environment.reset({ id: 'seed-1', seed: 0 });
    const full = Math.floor(EPISODE_CHARS / TEXT_CHARS) - 1;
    for (let n = 0; n < full; n += 1) await episode.step(say('x'));
    await episode.step(say('x')).then(
      () => expect(episode.step(say('x'))).rejects.toThrow(/the episode's messages have \d+ characters/),
      (error: Error) => expect(error.message).toMatch(/the episode's messages have \d+ characters/),
    );
  });
});

describe('text', () => {
  it('of a module is one printable line where it is quoted', async () => {
    const sandbox = sandboxOf(
      `export const f = () => { throw new Error('\\u001b]0;owned\\u0007\\u202e\\r\\nhidden' + 'x'.repeat(5e6)); };`,
    );
    const error = await sandbox.call('f', []).then(String, (e: Error) => e.message);
    expect(error).toMatch(/^f: Error: ]0;owned hiddenx+…$/);
    expect(error.length).toBeLessThan(320);
    expect(quoted('a\u009b31m\n b')).toBe('a 31m b');
    expect(['plain \t\r\n é 😀', 'a\0b', '\u007f', '\udc00'].map(isUnfit)).toEqual([false, true, true, true]);
  });
});
