/** The arm `gepa` in a campaign: its search has the budget of trace, and each prompt that was the best so far is held out. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { languageModelSchema } from '../../src/domain/endpoints';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import { config, fakeActivities } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

const reflection = languageModelSchema.parse({ url: 'http://127.0.0.1:2/v1', model: 'm' });
const search = {
  ...{ prompt: '', place: 'before', validationTasks: 1, minibatchSize: 1, merges: 0 },
  ...{ candidateSelection: 'pareto', acceptance: 'strict_improvement' },
};

test('it is given what trace may spend, and its prompts are evaluated', async () => {
  const { activities, seen } = fakeActivities();
  const campaign = config({ name: 'gepa', trainingSeed: 7, arms: [{ kind: 'gepa', ...search, reflection }] });
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  const { steps, groupsPerStep, groupSize } = campaign.training;
  const budget = 2 * steps * groupsPerStep * groupSize;
  // Its rollouts have the campaign's seed, so that it finds those of the base model.
  expect(seen.searches).toEqual([{ name: 'gepa', rollouts: budget, seed: campaign.seed, searchSeed: 7 }]);
  const [arm] = seen.record!.arms!;
  expect(arm).toMatchObject({ name: 'gepa', status: 'done', routable: false, training: { rollouts: budget } });
  expect(arm!.iterations).toMatchObject([
    { step: 1, rollouts: budget / 2, policy: { adapters: [], prompt: { text: 'prompt 1' } } },
    { step: 2, rollouts: budget, policy: { adapters: [], prompt: { text: 'prompt 2' } } },
  ]);
  const heldOut = seen.rollOuts.filter(({ title }) => title.startsWith('gepa: held out'));
  expect(heldOut.map(({ tasks }) => tasks)).toEqual([1, 2].map(() => expect.objectContaining({ part: 'validation' })));
});

test('without a model to ask it is a failed row that says what to set', async () => {
  const { activities, seen } = fakeActivities();
  const campaign = config({ name: 'gepa-without', arms: [{ kind: 'gepa', ...search }] });
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  expect(seen.searches).toEqual([]);
  expect(seen.record!.arms).toMatchObject([
    { status: 'failed', reason: expect.stringMatching(/arms\.gepa\.reflection is missing/) as string },
  ]);
});
