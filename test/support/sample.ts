/** Returns all cases in `make test-all`, else the first ones: for cases that take seconds each. */
export const sample = <Case>(cases: readonly Case[], count: number): Case[] =>
  process.env['TEST_ALL'] ? [...cases] : cases.slice(0, count);
