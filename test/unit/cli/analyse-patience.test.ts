/** Asking again without Temporal: never sooner than the own waits, however soon the endpoint says. */
import { patiently } from '../../../src/cli/analyse/patience';
import { OutsideFailure } from '../../../src/domain/failures';

jest.mock('node:timers/promises', () => ({ setTimeout: () => Promise.resolve() }));

async function waits(retryAfterMs: number | undefined): Promise<number[]> {
  const told: number[] = [];
  const busy = () => Promise.reject(new OutsideFailure('LanguageModelUnavailable', 'busy', undefined, retryAfterMs));
  const { signal } = new AbortController();
  const onWait = ({ waitMs }: { waitMs: number }) => void told.push(waitMs);
  await expect(patiently(busy, { signal, answered: () => true, onWait })).rejects.toMatchObject({ message: 'busy' });
  return told;
}

test.each([
  [undefined, [2_000, 4_000, 8_000, 16_000, 32_000]],
  [0, [2_000, 4_000, 8_000, 16_000, 32_000]],
  [10_000, [10_000, 10_000, 10_000, 16_000, 32_000]],
  [900_000, [300_000, 300_000, 300_000, 300_000, 300_000]],
])('an endpoint that says "in %s ms"', async (said, expected) => {
  expect(await waits(said)).toEqual(expected);
});
