/** The limits of an endpoint: how long it is left alone after refusals. */
import { RateLimiter } from '../../../src/language-model/limits';

const pass = () => ({
  concurrency: 8,
  signal: new AbortController().signal,
  tooLong: (ms: number) => new Error(`${ms} ms`),
});
async function entered(limiter: RateLimiter): Promise<number> {
  const began = Date.now();
  (await limiter.enter(pass()))();
  return Date.now() - began;
}

test('refusals that ask for a short wait are waited for longer from one to the next', async () => {
  const limiter = new RateLimiter();
  limiter.refused(1);
  expect(await entered(limiter)).toBeGreaterThanOrEqual(950);
  limiter.refused(1);
  expect(await entered(limiter)).toBeGreaterThanOrEqual(1950);
  limiter.replied();
  limiter.refused(1);
  expect(await entered(limiter)).toBeLessThan(1500);
}, 15_000);

test('refusals of what was asked at once are one', async () => {
  const limiter = new RateLimiter();
  for (let n = 0; n < 8; n++) limiter.refused(n === 3 ? 1200 : undefined);
  const waited = await entered(limiter);
  expect(waited).toBeGreaterThanOrEqual(1150);
  expect(waited).toBeLessThan(1900);
}, 70_000);

test('a longer wait that was asked for counts', async () => {
  const limiter = new RateLimiter();
  limiter.refused(90_000);
  await expect(limiter.enter(pass())).rejects.toThrow(/^(90000|8\d{4}) ms$/);
});
