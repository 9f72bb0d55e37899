import {
  beginningOf,
  commonest,
  COMPOSITE,
  type FailureOrigin,
  mixtureOf,
  sharedSteps,
} from '../../../src/domain/capability';

test('it is of all selected capabilities, if these are two at least and none has its name', () => {
  const [a, b, named] = ['a', 'b', COMPOSITE].map((name) => ({ name, definition: `${name}!` }));
  expect(mixtureOf([a!, b!])).toMatchObject({
    composite: { candidate: { name: COMPOSITE, mixed: true, parts: [{ names: ['a', 'b'], share: 1 }] } },
  });
  expect(mixtureOf([a!])).toEqual({ none: 'fewer than two capabilities are selected' });
  expect(mixtureOf([a!, named!])).toEqual({ none: `a selected capability is called ${COMPOSITE} already` });
});

describe('the steps are shared', () => {
  const shared = (steps: number, selected: number, share: number, checkpointEvery: number) =>
    sharedSteps({ steps, selected, share, checkpointEvery });

  test.each([
    ['the demo', [24, 3, 1 / 3, 8], { each: 16, composite: 24 }],
    ['two of the demo', [24, 2, 1 / 3, 8], { each: 16, composite: 16 }],
    ['rounded down to a checkpoint', [20, 2, 0.4, 5], { each: 10, composite: 20 }],
    ['not where that takes more than one checkpoint', [20, 4, 1 / 3, 5], { each: 13, composite: 28 }],
    ['fewer steps than a checkpoint', [4, 2, 1 / 3, 5], { each: 2, composite: 4 }],
    ['no share', [24, 3, 0, 8], { each: 24, composite: 0 }],
    ['less than a step', [4, 2, 0.05, 2], { each: 4, composite: 0 }],
    ['nothing left for the others', [1, 2, 0.9, 1], { each: 1, composite: 0 }],
  ] as const)('%s', (_, [steps, selected, share, every], expected) => {
    expect(shared(steps, selected, share, every)).toEqual(expected);
  });

  test('and none is lost or added', () => {
    for (const steps of [1, 3, 10, 24, 40])
      for (const selected of [2, 3, 5, 7])
        for (const share of [0.01, 0.2, 1 / 3, 0.5, 0.99])
          for (const every of [1, 4, 5, 100]) {
            const { each, composite: own } = shared(steps, selected, share, every);
            expect(selected * each + own).toBe(steps * selected);
            expect(Number.isInteger(each) && Number.isInteger(own) && each >= 1 && own >= 0).toBe(true);
            if (own > 0) expect(own - steps * selected * share).toBeLessThan(every + selected + 1);
            if (own > 0) expect(own - steps * selected * share).toBeGreaterThanOrEqual(-0.5);
          }
  });
});

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

  it('is none where nobody tells it', () => expect(beginningOf([])).toBeUndefined());
});

it('the commonest message is of several the earliest', () => {
  expect(commonest([7, 3, 7, 3, 9])).toEqual({ message: 3, votes: 2 });
  expect(commonest([])).toBeUndefined();
});
