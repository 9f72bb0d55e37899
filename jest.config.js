/** Tests run the TypeScript sources through swc; types are checked by `npm run typecheck`. */
module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  // `make test-all` runs the long ones too.
  testMatch: ['**/*.test.ts', ...(process.env.TEST_ALL ? ['**/*.long.ts'] : [])],
  globalSetup: './test/support/services.ts',
  globalTeardown: './test/support/stop-services.ts',
  testSequencer: './test/support/sequencer.mjs',
  // Many tests flush files or start processes: on busy cores they take long, and none of them is about time. Only those that take longer say so.
  testTimeout: 300_000,
  // Dynamic imports of sources name the file that the compiler makes of them.
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': '$1',
    // The shop and what it imports are sources, too.
    '^trace-campaign/plugin$': '<rootDir>/src/plugin.ts',
    '/examples/shop$': '<rootDir>/examples/shop/index.ts',
  },
  transform: {
    '\\.ts$|/examples/shop/.+\\.js$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' } },
    ],
  },
};
