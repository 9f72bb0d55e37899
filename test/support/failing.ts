/** Matches a failure by its type and words of its message. */
export const failing = (type: string, words: string | RegExp, more: object = {}): object => ({
  type,
  message: (typeof words === 'string' ? expect.stringContaining(words) : expect.stringMatching(words)) as string,
  ...more,
});
