/** Where a failure begins, as passes say it together. */
import { beginningOf, commonest, type FailureOrigin } from '../../../src/domain/capability';

const origins = (...given: [FailureOrigin['of'], number][]): FailureOrigin[] =>
  given.map(([of, message], n) => ({ of, message, reason: `pass ${n}` }));

describe('the beginning', () => {
  it('is the message of most among those that blame whom most blame, with the first reason for it', () => {
    expect(beginningOf(origins(['user', 3], ['agent', 5], ['agent', 7], ['agent', 7], ['user', 3]))).toEqual({
      of: 'agent',
      message: 7,
      reason: 'pass 2',
      votes: 2,
      blaming: 3,
    });
    expect(beginningOf(origins(['agent', 9], ['user', 4], ['user', 2]))).toMatchObject({
      of: 'user',
      message: 2,
      votes: 1,
    });
  });

  it("is of several messages the earliest, and in doubt the agent's", () => {
    expect(beginningOf(origins(['agent', 8], ['agent', 6]))).toMatchObject({ message: 6, votes: 1, reason: 'pass 1' });
    expect(beginningOf(origins(['user', 1], ['environment', 2], ['agent', 4]))).toMatchObject({
      of: 'agent',
      message: 4,
    });
    expect(beginningOf(origins(['user', 1], ['environment', 2]))).toMatchObject({ of: 'environment' });
  });

  it('may be message 0, and is none where nobody tells it', () => {
    expect(beginningOf(origins(['agent', 0]))).toMatchObject({ message: 0, votes: 1 });
    expect(beginningOf([])).toBeUndefined();
  });
});

it('the commonest message is of several the earliest', () => {
  expect(commonest([7, 3, 7, 3, 9])).toEqual({ message: 3, votes: 2 });
  expect(commonest([])).toBeUndefined();
});
