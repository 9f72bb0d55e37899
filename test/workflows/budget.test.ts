/** What a campaign does when its language models may spend no more, or give no answer that can be used: it loses no more than that step. */
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { CampaignProgress } from '../../src/workflows/messages';
import type { FailureType } from '../../src/domain/failures';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import type { RollOutInput } from '../../src/activities/types';
import { artifact, calibration, config, fakeActivities, summary } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;
const named = (fields: object = {}) => config({ name: `budget-${n++}`, arms: [], ...fields });
const failure = (type: FailureType, message: string) =>
  ApplicationFailure.create({ type, message, nonRetryable: true });
const SPENT = 'budget.tokens is 10: raise budget.tokens and run the campaign again';

beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

test('labeling passes that it ends are left out, and the tree says why', async () => {
  const { activities, seen } = fakeActivities({
    label: async ({ pass }) => {
      if (pass > 7) throw failure('BudgetSpent', SPENT);
      if (pass === 7) throw failure('AnswerInvalid', 'the labels of r3 are missing');
      return artifact(`labels-${pass}`);
    },
  });
  const progress = await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: named(), until: 'selection' });
    await handle.result();
    return handle.query<CampaignProgress>('progress');
  });
  expect(progress.stages[1]?.detail).toMatch(/; 3 of 10 labeling passes failed: budget spent$/);
  expect(seen.record?.selection?.failedPasses).toEqual([
    { pass: 7, reason: 'AnswerInvalid: the labels of r3 are missing' },
    { pass: 8, reason: `BudgetSpent: ${SPENT}` },
    { pass: 9, reason: `BudgetSpent: ${SPENT}` },
  ]);
});

test('a capability whose environment it ends is not synthesized; the others go on', async () => {
  const asked: string[] = [];
  const { activities, seen } = fakeActivities({
    synthesize: async ({ candidate, round }) => {
      asked.push(candidate.name);
      if (candidate.name === 'tell_what_is_asked') throw failure('BudgetSpent', SPENT);
      return artifact(`${candidate.name}-${round}`);
    },
  });
  const progress = await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: named() });
    await handle.result();
    return handle.query<CampaignProgress>('progress');
  });
  expect(asked.sort()).toEqual(['refuse_what_is_forbidden', 'tell_what_is_asked']);
  const reason = `budget spent: ${SPENT}`;
  expect(seen.record?.capabilities).toMatchObject([
    { name: 'refuse_what_is_forbidden', status: 'trained' },
    { name: 'tell_what_is_asked', status: 'not_synthesized', reason, rounds: [] },
  ]);
  expect(progress.children[1]).toMatchObject({ status: 'failed', detail: reason });
});

test('an answer that can not be used ends the rounds, and is told beside the bands that were missed', async () => {
  let asked = 0;
  const { activities, seen } = fakeActivities({
    select: async () => {
      const candidate = { name: 'tell_what_is_asked', definition: 'x', examples: [] };
      return { ref: artifact('selection'), selected: [{ candidate, votes: 10 }] };
    },
    synthesize: async ({ round }) => {
      asked += 1;
      if (round === 2) throw failure('AnswerInvalid', 'there is no code in the reply');
      return artifact(`v${round}`);
    },
    calibrate: async () => calibration(false),
  });
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  expect(asked).toBe(2);
  expect(seen.record?.capabilities).toMatchObject([
    { status: 'not_calibrated', reason: 'success rate 0.9 is above 0.6; there is no code in the reply' },
  ]);
});

test('discovery that it ends fails the campaign, once, with the way to go on', async () => {
  let asked = 0;
  const { activities } = fakeActivities({
    discover: async () => {
      asked += 1;
      throw failure('BudgetSpent', SPENT);
    },
  });
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: named() });
    await expect(handle.result()).rejects.toMatchObject({ cause: { cause: { type: 'BudgetSpent', message: SPENT } } });
  });
  expect(asked).toBe(1);
});

const brokeAt = async (purpose: RollOutInput['purpose']) => {
  const asked: string[] = [];
  const { activities, seen } = fakeActivities({
    rollOut: async (input) => {
      expect(input).toMatchObject({ campaign: expect.stringMatching(/^budget-/), budget: { tokens: 10 } });
      asked.push(input.purpose);
      if (input.purpose === purpose) throw failure('BudgetSpent', SPENT);
      return summary(input);
    },
  });
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: named({ budget: { tokens: 10 } }) });
    await expect(handle.result()).rejects.toMatchObject({ cause: expect.anything() });
    expect((await handle.describe()).status.name).toBe('FAILED');
  });
  return { asked, record: seen.record };
};

test('base rollouts whose users it ends fail the campaign, once', async () => {
  expect(await brokeAt('base_rollouts')).toEqual({ asked: ['base_rollouts'], record: undefined });
});

test('what it ends in the middle of the campaign is no row of the report: the campaign fails, and goes on with more', async () => {
  const { asked, record } = await brokeAt('outcome_matrix');
  expect(asked).not.toContain('test');
  expect(record).toBeUndefined();
});
