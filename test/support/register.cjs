/* eslint-disable @typescript-eslint/no-require-imports, no-undef -- a preload script of node's own module system */
/** `node -r test/support/register.cjs x.ts` runs TypeScript sources through swc, as the tests do. */
const { readFileSync } = require('node:fs');
const { transformSync } = require('@swc/core');

require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), {
    filename,
    sourceMaps: 'inline',
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  });
  module._compile(code, filename);
};
