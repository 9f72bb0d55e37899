/** The arms, which spend the budget otherwise (on what they train, what their iterations count, how they end), and children that were cancelled or replaced. */
import { Context } from '@temporalio/activity';
import type { TrainInput } from '../../src/activities/types';
import { languageModelSchema } from '../../src/domain/endpoints';
import { mixtureSpec, sandboxSpec } from '../../src/domain/kinds';
import type { ArmResult } from '../../src/domain/results';
import { TRAINING_SEEDS } from '../../src/domain/seeds';
import { campaignsOn, latch, type Played } from './campaigns';
import { timeSkipping } from './environment';
import { type Activities, artifact, calibration, REFUSE, selecting, TELL } from './fake-activities';

const { env, begin, play } = campaignsOn(timeSkipping, 'arms');
const STEP = 32 * 16;

const trainingOf = ({ asked }: Played, name: string): TrainInput | undefined =>
  asked('train').find((input) => input.name === name);
const armOf = ({ record }: Played, name: string): ArmResult => record.arms!.find((one) => one.name === name)!;
/** Modules of these fail their self-test. */
const unfit = (...names: string[]): Pick<Activities, 'selfTest'> => ({
  selfTest: async ({ module }) => ({
    passed: !names.some((name) => module.sha256.startsWith(name)),
    findings: ['pays for nothing'],
  }),
});

const PARTS = [
  { kind: 'environments' },
  { kind: 'environments', name: 'one', from: { capability: TELL } },
  { kind: 'environments', name: 'brought', from: { folder: '/somewhere' } },
];

test('an adapter trains on all accepted environments, on that of one capability, or on those of a folder, with the whole budget', async () => {
  const played = await play({ arms: PARTS });
  const { record, campaign, asked } = played;
  const maker = { kind: 'environments', version: '2', options: {} };
  const whole = { maker, training: { steps: 8 } };
  const tasks = { kind: 'seeds', from: TRAINING_SEEDS, count: 8 * 32 };
  expect(trainingOf(played, 'environments')).toMatchObject({
    environment: mixtureSpec([artifact(`${REFUSE}-1`), artifact(`${TELL}-1`)]),
    ...{ tasks, ...whole },
  });
  expect(trainingOf(played, 'one')).toMatchObject({
    environment: sandboxSpec(artifact(`${TELL}-1`)),
    ...{ tasks, ...whole },
  });
  expect(trainingOf(played, 'brought')).toMatchObject({
    environment: mixtureSpec([artifact('one'), artifact('two')]),
    ...{ tasks, ...whole },
  });
  expect(record.arms).toMatchObject([
    { ...{ name: 'environments', status: 'completed' }, builtOn: [REFUSE, TELL], trainedOn: { length: 2 } },
    { name: 'one', status: 'completed', builtOn: [TELL], trainedOn: [artifact(`${TELL}-1`)] },
    { name: 'brought', status: 'completed', trainedOn: [artifact('one'), artifact('two')] },
  ]);
  expect(armOf(played, 'brought').builtOn).toBeUndefined();
  expect(record.router?.options).not.toContain('environments');
  for (const { name, work } of record.arms!) {
    expect(work?.iterations.map(({ rollouts }) => rollouts)).toEqual([2, 4, 6, 8].map((at) => at * STEP));
    // All are held out on the target.
    const own = asked('rollOut').filter(({ title }) => title.startsWith(`${name}: held out`));
    expect(own.map(({ environment, tasks }) => [environment, tasks])).toEqual(
      Array(4).fill([campaign.target, { kind: 'plan', plan: artifact('plan'), part: 'validation' }]),
    );
  }
});

const reflection = languageModelSchema.parse({ url: 'http://127.0.0.1:2/v1', model: 'm' });
const gepa = {
  ...{ kind: 'gepa', prompt: '', place: 'before', validationTasks: 1, minibatchSize: 1 },
  ...{ acceptance: 'strict_improvement' },
};

test('gepa searches with what trace may spend', async () => {
  const played = await play({ trainingSeed: 7, arms: [{ ...gepa, reflection }] });
  const { campaign, asked, seen } = played;
  const budget = 8 * STEP;
  // Its rollouts have the campaign's seed, so that it finds those of the base model.
  expect(seen.searches).toEqual([{ name: 'gepa', rollouts: budget, seed: campaign.seed, searchSeed: 7 }]);
  expect(armOf(played, 'gepa')).toMatchObject({
    status: 'completed',
    work: {
      training: { rollouts: budget },
      iterations: [1, 2].map((step) => ({
        ...{ step, rollouts: (step * budget) / 2 },
        policy: { adapters: [], prompt: { text: `prompt ${step}` } },
      })),
    },
  });
  const heldOut = asked('rollOut').filter(({ title }) => title.startsWith('gepa: held out'));
  expect(heldOut).toMatchObject([1, 2].map(() => ({ tasks: { part: 'validation' } })));
});

test('what there is nothing to build on for, or is unfit or incomplete, ends as a row with its reason', async () => {
  const replaced = { calibrate: async () => calibration(false), ...unfit('two') };
  const { record, seen } = await play({ arms: [...PARTS, gepa], calibration: { maxRounds: 1 } }, replaced);
  expect(record.arms?.map(({ status, reason }) => [status, reason])).toEqual([
    ['failed', 'no capability has an accepted environment to train on'],
    ['failed', 'no capability has an accepted environment to train on'],
    ['failed', 'modules of somewhere fail the self-test: two.js: pays for nothing'],
    ['failed', expect.stringMatching(/arms\.gepa\.reflection is missing/)],
  ]);
  expect(seen.searches).toEqual([]);
});

test('a child that is cancelled alone fails, and the campaign continues', async () => {
  const started = latch();
  const begun = await begin({}, ({ train }) => ({
    train: async (input) => {
      if (input.name !== TELL) return train(input);
      started.open();
      const heartbeats = setInterval(() => Context.current().heartbeat(), 100);
      return Context.current().cancelled.finally(() => clearInterval(heartbeats));
    },
  }));
  await started.opened;
  await begun.child(TELL).cancel();
  await begun.handle.result();
  const ends = Object.fromEntries(begun.seen.record?.capabilities?.map(({ name, status }) => [name, status]) ?? []);
  expect(ends).toEqual({ [TELL]: 'failed', [REFUSE]: 'completed' });
});

test('a child that still runs for an earlier run is replaced', async () => {
  const name = 'still-ending';
  const workflowId = `${name}/capability/${TELL}`;
  const earlier = await env().client.workflow.start('campaignRun', { workflowId, taskQueue: 'nobody polls it' });
  const { handle, seen } = await begin({ name }, selecting(TELL));
  await handle.result();
  const { status } = await env().client.workflow.getHandle(workflowId, earlier.firstExecutionRunId).describe();
  expect(status.name).toBe('TERMINATED');
  expect(seen.record?.capabilities?.map((one) => one.status)).toEqual(['completed']);
});
