/** Steps in this process are tried again as a campaign's are: with its back-off, and never sooner than the endpoint says. */
import { ATTEMPTS, retried } from '../../../src/cli/analyse/steps';
import { OutsideFailure, type FailureType, backoffMs } from '../../../src/domain/failures';

const mockWaited: number[] = [];
jest.mock('node:timers/promises', () => ({
  setTimeout: (ms: number) => {
    mockWaited.push(ms);
    return Promise.resolve();
  },
}));

const backoff = Array.from({ length: ATTEMPTS - 1 }, (_, n) => backoffMs(n + 1));

test.each<[FailureType, retryAfterMs: number | undefined, expected: number[]]>([
  ['LanguageModelUnavailable', undefined, backoff],
  ['LanguageModelUnavailable', 10_000, backoff.map((ms) => Math.max(ms, 10_000))],
  ['LanguageModelRejected', undefined, []],
])('%s, to come back in %p ms', async (type, retryAfterMs, expected) => {
  mockWaited.length = 0;
  const step = () => Promise.reject(new OutsideFailure(type, 'busy', undefined, retryAfterMs));
  const { signal } = new AbortController();
  await expect(retried(signal, step)).rejects.toMatchObject({ type, message: 'busy' });
  expect(mockWaited).toEqual(expected);
});
