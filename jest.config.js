/** Tests run the TypeScript sources through swc; types are checked by `npm run typecheck`. */
module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  // Many tests flush files or start processes: on busy cores they take long, and none of them is about time.
  testTimeout: 30_000,
  resolver: '<rootDir>/test/support/resolver.cjs',
  transform: {
    '\\.ts$|/src/.+\\.js$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' } },
    ],
  },
};
