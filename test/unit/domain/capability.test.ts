import { beginningOf, type FailureOrigin } from '../../../src/domain/capability';

describe('the beginning', () => {
  const origins = (told: string): FailureOrigin[] =>
    told.split(', ').map((one, n) => {
      const [of, message] = one.split(' ');
      return { of: of as FailureOrigin['of'], message: Number(message), reason: `pass ${n}` };
    });

  const most = { of: 'agent', message: 7, reason: 'pass 2', votes: 2, blaming: 3 };
  test.each([
    ['of those whom most blame', 'user 3, agent 5, agent 7, agent 7, user 3', most],
    ['of the user, where most blame it', 'agent 9, user 4, user 2', { of: 'user', message: 2, votes: 1 }],
    ['of several messages the earliest', 'agent 8, agent 6', { message: 6, votes: 1, reason: 'pass 1' }],
    ["in doubt the agent's", 'user 1, environment 2, agent 4', { of: 'agent', message: 4 }],
    ["in doubt the user's last", 'user 1, environment 2', { of: 'environment' }],
    ['message 0, too', 'agent 0', { message: 0, votes: 1 }],
  ])('is %s: %s', (_, told, expected) => {
    expect(beginningOf(origins(told))).toMatchObject(expected);
  });
});
