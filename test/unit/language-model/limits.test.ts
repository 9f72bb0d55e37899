/** How long an endpoint is left alone after refusals. */
import { RateLimiter } from '../../../src/language-model/limits';

/** Fake timers do not reach the promises of Node. */
jest.mock('node:timers/promises', () => ({
  setTimeout: (ms: number, _: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((done) => {
      setTimeout(done, ms);
      signal.addEventListener('abort', done);
    }),
  setImmediate: () => Promise.resolve(),
}));
beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

const tooLong = (ms: number) => new Error(`${ms} ms`);
const enter = (limiter: RateLimiter) =>
  limiter.enter({ concurrency: 8, signal: new AbortController().signal, tooLong }).then((leave) => leave());

/** The milliseconds after which somebody may enter. */
async function waitOf(limiter: RateLimiter): Promise<number> {
  const began = Date.now();
  let entered: number | undefined;
  void enter(limiter).then(() => (entered = Date.now() - began));
  for (let step = 0; step < 200 && entered === undefined; step++) await jest.advanceTimersByTimeAsync(50);
  return entered!;
}

test('it is left alone for longer from one refusal to the next, and for as long as it says', async () => {
  const limiter = new RateLimiter();
  expect(await waitOf(limiter)).toBe(0);
  for (const wait of [1000, 2000, 4000]) {
    // What was asked at once is refused at once.
    for (let n = 0; n < 3; n++) limiter.refused(1);
    expect(await waitOf(limiter)).toBe(wait);
  }
  limiter.replied();
  limiter.refused(1200);
  expect(await waitOf(limiter)).toBe(1200);
  limiter.refused(90_000);
  await expect(enter(limiter)).rejects.toThrow('90000 ms');
});
