/** Steps in this process are tried again as a campaign's are: with its back-off, and never sooner than the endpoint says. */
import { retried } from '../../../src/cli/analyse/steps';
import { OutsideFailure, type FailureType, backoffMs, MAX_FAULTS } from '../../../src/domain/failures';

jest.mock('node:timers/promises', () => ({ setTimeout: () => Promise.resolve() }));

async function waits(type: FailureType, o: { retryAfterMs?: number; answered?: boolean } = {}): Promise<number[]> {
  const waited: number[] = [];
  const step = () => Promise.reject(new OutsideFailure(type, 'busy', undefined, o.retryAfterMs));
  const progress = {
    hasAnswer: () => o.answered ?? true,
    waits: (_: string, waitMs: number) => void waited.push(waitMs),
  };
  const { signal } = new AbortController();
  await expect(retried({ progress, signal }, step)).rejects.toMatchObject({ type, message: 'busy' });
  return waited;
}

const backoff = Array.from({ length: MAX_FAULTS - 1 }, (_, n) => backoffMs(n + 1));

test.each([undefined, 0, 10_000, 900_000])('an endpoint that says "in %s ms"', async (retryAfterMs) => {
  const expected = backoff.map((ms) => Math.max(ms, retryAfterMs ?? 0));
  expect(await waits('LanguageModelUnavailable', retryAfterMs === undefined ? {} : { retryAfterMs })).toEqual(expected);
});

test('an endpoint that never answered, whose address may be wrong, is soon given up', async () => {
  expect(await waits('LanguageModelUnavailable', { answered: false })).toEqual(backoff.slice(0, 2));
});

test('what no retry mends is not tried again', async () => {
  expect(await waits('LanguageModelRejected')).toEqual([]);
});
