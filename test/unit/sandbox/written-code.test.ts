/** Code that a model wrote is read on this side too, before and beside the sandbox: whatever it is, it holds nobody up and breaks only itself. */
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { openModule } from '../../../src/sandbox/module';
import { sandboxEnvironment } from '../../../src/sandbox/episodes';
import { staticFindings, withoutTypes } from '../../../src/sandbox/source';
import { rationaleIn } from '../../../src/synthesis/llm/read-module';

jest.setTimeout(60_000);

describe('types', () => {
  it('are taken out of code that is not too deep, and no parser is asked about other code', () => {
    expect(withoutTypes('const a: number = 1;')).toEqual({ source: 'const a         = 1;' });
    expect(withoutTypes(`const b = 1;\nconst a = ${'['.repeat(2_000)}${']'.repeat(2_000)};`)).toEqual({
      problem: 'SyntaxError in line 2: brackets stand more than 200 deep: nest less',
    });
    expect(withoutTypes(`const a = ${'['.repeat(200)}${']'.repeat(200)};`)).toHaveProperty('source');
  });

  it('are taken out after code that broke the parser: it is loaded anew', () => {
    const strip = resolve(__dirname, '../../..', 'src', 'sandbox', 'source.ts');
    const script = `
      const { withoutTypes } = require(${JSON.stringify(strip)});
      const broken = withoutTypes('const a = ' + '!'.repeat(200_000) + 'b;');
      console.log(JSON.stringify([broken, withoutTypes('const a: number = 1;')]));`;
    const register = resolve(__dirname, '../..', 'support', 'register.cjs');
    const printed = execFileSync(process.execPath, ['-r', register, '-e', script], { encoding: 'utf8' });
    expect(JSON.parse(printed)).toEqual([
      { problem: expect.stringMatching(/^SyntaxError: /) },
      { source: 'const a         = 1;' },
    ]);
  });
});

describe('static checks', () => {
  it('let texts be, in the words of policies', () => {
    const texts = [
      'First start the return process. Give the Date (ISO), or the new Date (if it changed).',
      'import goods from abroad only as the rules for them require (see below); fetch (look up) the Date(s).',
      'Note the Date. Process it.',
    ];
    expect(staticFindings(`const policy = \`\n${texts.join('\n')}\`;`)).toEqual([]);
  });

  it.each([
    ["import x from 'y';", 'import'],
    ["import 'y';", 'import'],
    ["await import('y');", 'import()'],
    ["require('y');", 'require'],
    ["fetch('y');", 'fetch'],
    ['process.env.HOME;', 'process'],
    ['Math.random();', 'Math.random'],
    ['new Date();', 'Date'],
    ['Date.now();', 'Date'],
    ['Date.UTC(1);', 'Date'],
    ['Date();', 'Date'],
    ['setTimeout(f);', 'a timer'],
    ["eval('1');", 'eval'],
    ["new Function('1');", 'eval'],
  ])('find %s', (code, name) => {
    expect(staticFindings(`const a = 1;\n${code}`)).toEqual([expect.stringContaining(`line 2 uses ${name}: `)]);
  });
});

describe('a rationale', () => {
  it.each([
    ['Rationale: it asks .', 'it asks .'],
    ['Rationale: first.\n\n**Rationale:** It _asks_.**\r\n```', 'It _asks_.'],
    ['// - rationale : **asks**', 'asks'],
    ['### Rationale:\n\n  It asks.\nAnd more.', 'It asks.'],
    ['Rationale: It asks.\n**Rationale:**', 'It asks.'],
    ['The rationale: none', undefined],
    ['Rationale: ** _ ', undefined],
  ])('is read from %j', (text, rationale) => {
    expect(rationaleIn(text)).toBe(rationale);
  });

  it('is read of a megabyte too: whose time grew with its square would not end', () => {
    for (const text of ['\n'.repeat(1e6), ' \n'.repeat(1e5), '*'.repeat(1e6)])
      expect(rationaleIn(text)).toBeUndefined();
    expect(rationaleIn(`Rationale: a${'* '.repeat(5e5)}b`)).toHaveLength(1_000_002);
  });
});

describe('hints', () => {
  const withHint = (hint: string): string => `
    const tools = ['a', 'b', 'c'].map((name) => ({ name, description: '', parameters: {} }));
    export const describe = () => ({ policy: 'p', tools, maxSteps: 3 });
    export const make = (seed) => ({ seed });
    export const start = () => Array.from({ length: 10 }, () => ({ role: 'user', content: 'x'.repeat(50_000) }));
    export const step = (state) => ({ state, done: true, messages: [] });
    export const reward = () => ({ reward: 1, breakdown: {} });
    export const reference = () => ({ actions: [{ name: 'a', arguments: { a: 1 } }], tell: [] });
    export const solve = () => [{ role: 'assistant', content: 'x' }];
    export const hint = ${hint};`;

  it.each([`() => ' '`, `({ seed }) => { throw new Error('no hint'); }`])(
    'that fail are none, and their episodes are played: %s',
    async (hint) => {
      const environment = await sandboxEnvironment({ module: openModule({ source: withHint(hint) }), version: 'v' });
      const { start } = await environment.reset({ id: 'seed-1', seed: 0 });
      expect(start.messages).toHaveLength(10);
      expect(start).not.toHaveProperty('hint');
      await environment.close();
      const good = await sandboxEnvironment({ module: openModule({ source: withHint(`() => 'look'`) }), version: 'v' });
      expect((await good.reset({ id: 'seed-1', seed: 0 })).start.hint).toBe('look');
      await good.close();
    },
  );
});
