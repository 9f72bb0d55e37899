/** Code that a model wrote is read on this side too, before and beside the sandbox: whatever it is, it holds nobody up and breaks only itself. */
import { staticFindings } from '../../../src/sandbox/source';

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
