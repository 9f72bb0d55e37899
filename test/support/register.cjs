/* eslint-disable @typescript-eslint/no-require-imports, no-undef -- a preload script of node's own module system */
/** `node -r test/support/register.cjs x.ts` runs TypeScript sources through swc, as the tests do. */
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join, resolve } = require('node:path');
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

// Dynamic imports of sources name the file that the compiler makes of them.
const root = resolve(__dirname, '../..');
const resolveFilename = Module._resolveFilename;
Module._resolveFilename = function (request, ...rest) {
  if (request === 'trace-campaign/plugin') return join(root, 'src/plugin.ts');
  if (request === join(root, 'examples/shop')) return join(root, 'examples/shop/index.ts');
  try {
    return resolveFilename.call(this, request, ...rest);
  } catch (error) {
    if (!/^\.{1,2}\/.*\.js$/.test(request)) throw error;
    return resolveFilename.call(this, request.replace(/\.js$/, '.ts'), ...rest);
  }
};
