/** The way to an endpoint: how long it is left alone after refusals, and who hears that a wait is over. */
import { Lane } from '../../../src/language-model/limits';

const pass = (more: { onWaiting?: () => void } = {}) => ({
  concurrency: 8,
  signal: new AbortController().signal,
  onWaiting: () => undefined,
  tooLong: (ms: number) => new Error(`${ms} ms`),
  ...more,
});
async function entered(lane: Lane): Promise<number> {
  const began = Date.now();
  (await lane.enter(pass()))();
  return Date.now() - began;
}

test('refusals that ask for a short wait are waited for longer from one to the next', async () => {
  const lane = new Lane();
  lane.refused(1);
  expect(await entered(lane)).toBeGreaterThanOrEqual(950);
  lane.refused(1);
  expect(await entered(lane)).toBeGreaterThanOrEqual(1950);
  lane.replied();
  lane.refused(1);
  expect(await entered(lane)).toBeLessThan(1500);
}, 15_000);

test('refusals of what was asked at once are one', async () => {
  const lane = new Lane();
  for (let n = 0; n < 8; n++) lane.refused(n === 3 ? 1200 : undefined);
  const waited = await entered(lane);
  expect(waited).toBeGreaterThanOrEqual(1150);
  expect(waited).toBeLessThan(1900);
}, 70_000);

test('a longer wait that was asked for counts', async () => {
  const lane = new Lane();
  lane.refused(90_000);
  await expect(lane.enter(pass())).rejects.toThrow(/^(90000|8\d{4}) ms$/);
});

test('who enters hears of it', async () => {
  let heard = 0;
  await new Lane().enter(pass({ onWaiting: () => heard++ }));
  expect(heard).toBe(1);
});
