/** How a target's tasks are dealt out, and what is refused before any work. */
import { campaignSchema, type Stage } from '../../../src/domain/campaign';
import { splitTasks } from '../../../src/environments/split';
import { shopCampaign } from '../../support/kinds';

const ids = (prefix: string, n: number) => Array.from({ length: n }, (_, i) => `${prefix}-${i}`);
const split = (o: { train: number; groupsPerStep: number; arms?: object[]; skip?: number; until?: Stage }) =>
  splitTasks({
    until: o.until,
    armKinds: [{ kind: 'on_target', trainsOnTarget: true }, { kind: 'other' }],
    campaign: campaignSchema.parse({
      ...shopCampaign,
      validation: { targetTasks: 10 },
      training: { groupsPerStep: o.groupsPerStep },
      arms: o.arms ?? [{ kind: 'on_target' }],
      evaluation: { skip: o.skip },
    }),
    train: ids('train', o.train),
    test: ids('test', 4),
  });

test('train and validation tasks are disjoint parts of the train split', () => {
  const { train, validation, test: tested } = split({ train: 30, groupsPerStep: 20 });
  expect([train.length, validation.length, tested.length]).toEqual([20, 10, 4]);
  expect(new Set([...train, ...validation]).size).toBe(30);
});

test('test tasks that were read already are left out', () => {
  const setting = { train: 30, groupsPerStep: 4 };
  expect(split({ ...setting, skip: 2 }).test.toSorted()).toEqual(['test-2', 'test-3']);
  expect(() => split({ ...setting, skip: 4 })).toThrow(
    'evaluation.skip is 4, but the target has 4 test tasks; lower it to 3 or less',
  );
});

test('a campaign that stops after its rollouts is not asked for what only later stages need', () => {
  const wrong = { train: 30, groupsPerStep: 32, skip: 4 };
  expect(split({ ...wrong, until: 'rollouts' })).toMatchObject({ test: [] });
  expect(() => split({ ...wrong, until: 'selection' })).toThrow('evaluation.skip is 4');
});

test('a step takes no task twice: fewer tasks than groups are refused where an arm trains on the target', () => {
  expect(() => split({ train: 30, groupsPerStep: 32 })).toThrow(
    'training.groupsPerStep is 32, but the target has 20 train tasks; lower it to 20',
  );
  expect(split({ train: 30, groupsPerStep: 32, arms: [] }).train).toHaveLength(20);
  expect(split({ train: 30, groupsPerStep: 32, arms: [{ kind: 'other' }] }).train).toHaveLength(20);
});
