/** Code that a model wrote is read on this side too, before and beside the sandbox: whatever it is, it holds nobody up and breaks only itself. */
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
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
  it('is read of a megabyte too: whose time grew with its square would not end', () => {
    for (const text of ['\n'.repeat(1e6), ' \n'.repeat(1e5), '*'.repeat(1e6)])
      expect(rationaleIn(text)).toBeUndefined();
    expect(rationaleIn(`Rationale: a${'* '.repeat(5e5)}b`)).toHaveLength(1_000_002);
  });
});
