/** What a failure is expected to be: its type, and words that its message has. */
export const failing = (type: string, words: string | RegExp, more: object = {}): object => ({
  type,
  message: (typeof words === 'string' ? expect.stringContaining(words) : expect.stringMatching(words)) as string,
  ...more,
});
