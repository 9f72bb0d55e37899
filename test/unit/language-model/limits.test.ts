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
const enter = (limiter: RateLimiter, requestsPerMinute?: number) =>
  limiter
    .enter({ concurrency: 8, requestsPerMinute, signal: new AbortController().signal, tooLong })
    .then((leave) => leave());

/** The milliseconds after which somebody may enter. */
async function waitOf(limiter: RateLimiter, requestsPerMinute?: number): Promise<number> {
  const began = Date.now();
  let entered: number | undefined;
  void enter(limiter, requestsPerMinute).then(() => (entered = Date.now() - began));
  for (let step = 0; step < 2000 && entered === undefined; step++) await jest.advanceTimersByTimeAsync(50);
  return entered!;
}

test('so many requests begin within a minute', async () => {
  const limiter = new RateLimiter();
  const waits: number[] = [];
  for (let n = 0; n < 4; n++) waits.push(await waitOf(limiter, 2));
  expect(waits.map((ms) => Math.round(ms / 1000))).toEqual([0, 0, 60, 0]);
});

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
