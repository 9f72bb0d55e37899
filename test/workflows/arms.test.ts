/** The arms that spend the budget otherwise: on what they train, where they start, what their iterations count, how they end. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { TrainInput } from '../../src/activities/types';
import { mixtureSpec, sandboxSpec } from '../../src/domain/kinds';
import type { ArmResult, EndedCapability } from '../../src/domain/results';
import { TRAINING_SEEDS } from '../../src/domain/seeds';
import { singles } from '../../src/workflows/arms/grpo';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import { artifact, calibration, config, fakeActivities, summary, type Activities, type Seen } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;
beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

const STEP = 32 * 16;
const [refuse, tell] = ['refuse_what_is_forbidden', 'tell_what_is_asked'] as const;

/** A campaign of two capabilities, 4 steps each, with these arms. */
async function run(arms: { kind: string; [option: string]: unknown }[], change: Partial<Activities> = {}) {
  const { activities, seen } = fakeActivities(change);
  const train = jest.spyOn(activities, 'train');
  const fineTuned = jest.spyOn(activities, 'fineTune');
  const taken = jest.spyOn(activities, 'takeConversations');
  const campaign = config({ name: `arms-${n++}`, arms, composites: { share: 0 } });
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  const training = (name: string): TrainInput | undefined =>
    train.mock.calls.map(([input]) => input).find((input) => input.name === name);
  const arm = (name: string): ArmResult => seen.record!.arms!.find((one) => one.name === name)!;
  return { seen, training, fineTuned, taken, arm, target: campaign.target };
}

/** Success on the held-out tasks of the target, by the batch's title. */
const heldOut =
  (success: Record<string, number>, seen: () => Seen | undefined = () => undefined) =>
  async (input: Parameters<Activities['rollOut']>[0]) => {
    seen()?.rollOuts.push(input);
    return summary(input, success[input.title]);
  };

test('grpo_single trains on the environment of the capability that gains most on held-out tasks of the target, with the whole budget', async () => {
  const { training, arm, seen } = await run([{ kind: 'grpo_single' }], {
    rollOut: heldOut({
      [`${refuse}: held out on the target`]: 0.4,
      [`${tell}: held out on the target`]: 0.6,
      // What it reaches on its own environment decides nothing.
      [`${refuse}: held out at step 2`]: 1,
    }),
  });
  expect(training('grpo_single')).toMatchObject({
    environment: sandboxSpec(artifact(`${tell}-1`)),
    tasks: { kind: 'seeds', from: TRAINING_SEEDS, count: 8 * 32 },
    training: { steps: 8 },
  });
  expect(training('grpo_single')?.from).toBeUndefined();
  expect(arm('grpo_single')).toMatchObject({
    status: 'done',
    routable: false,
    builtOn: [tell],
    trainedOn: [{ module: artifact(`${tell}-1`), seeds: 8 * 32 }],
  });
  expect(arm('grpo_single').iterations?.map(({ rollouts }) => rollouts)).toEqual([2, 4, 6, 8].map((at) => at * STEP));
  expect(seen.record?.router?.options).not.toContain('grpo_single');
});

test('its iterations are held out on the target, as those of the joint arm', async () => {
  const calls: Seen = { rollOuts: [], trainings: [], searches: [] };
  const { target } = await run([{ kind: 'grpo_single' }, { kind: 'joint' }], { rollOut: heldOut({}, () => calls) });
  for (const name of ['grpo_single', 'joint']) {
    const own = calls.rollOuts.filter(({ title }) => title.startsWith(`${name}: held out`));
    expect(own.map(({ environment, tasks }) => [environment, tasks])).toEqual(
      Array(4).fill([target, { kind: 'plan', plan: artifact('plan'), part: 'validation' }]),
    );
  }
});

test('joint trains one adapter on all calibrated environments, whether they came to an adapter or not', async () => {
  const { training, arm } = await run([{ kind: 'joint' }], {
    selfTest: async ({ module }) => ({ passed: true, findings: [], hints: module.sha256.startsWith('tell') }),
    calibrate: async ({ rollouts }) => {
      const hard = { ...calibration(false), verdict: 'too_hard' as const, reasons: ['success rate 0.01 is below 0.2'] };
      return rollouts.uri.includes(tell) && !rollouts.uri.endsWith('with hints') ? hard : calibration(true);
    },
  });
  expect(training('joint')).toMatchObject({
    environment: mixtureSpec([
      { module: artifact(`${refuse}-1`), hints: false },
      { module: artifact(`${tell}-1`), hints: true },
    ]),
    tasks: { kind: 'mixed', from: TRAINING_SEEDS, count: 8 * 32 },
    hints: { share: 0.5 },
    training: { steps: 8 },
  });
  expect(arm('joint')).toMatchObject({
    status: 'done',
    builtOn: [refuse, tell],
    trainedOn: [{ seeds: 4 * 32 }, { seeds: 4 * 32 }],
  });
});

test('sft trains on conversations that somebody brings, and spends no rollouts', async () => {
  const { arm, target, fineTuned, taken } = await run([
    { kind: 'sft', conversations: '/some.jsonl', epochs: 2, checkpointEvery: 7 },
  ]);
  expect(taken.mock.calls[0]![0]).toEqual({ file: '/some.jsonl', minReward: 1 });
  expect(fineTuned.mock.calls[0]![0]).toEqual(
    expect.objectContaining({
      environment: target,
      conversations: artifact('conversations'),
      // Not the file: what is in it decides.
      maker: { kind: 'sft', version: '1', options: {} },
      training: expect.objectContaining({ epochs: 2, checkpointEvery: 7, rowsPerStep: 16, learningRate: 1e-5 }),
    }),
  );
  // As long as its passes say, and not as the trainings on rollouts.
  expect(fineTuned.mock.calls[0]![0].training.steps).toBeUndefined();
  expect(arm('sft')).toMatchObject({ status: 'done', routable: false, conversations: 40 });
  expect(arm('sft').iterations?.map(({ step, rollouts }) => [step, rollouts])).toEqual([
    [7, 0],
    [14, 0],
  ]);
});

test('a composite is no capability alone: it starts from adapters of others', () => {
  const trained = {} as NonNullable<EndedCapability['trained']>;
  const result = (name: string, more: Partial<EndedCapability>): EndedCapability => {
    return { name, workflowId: name, status: 'trained', ...more };
  };
  const composite = result('combined_capabilities', { trained, parts: [{ names: [refuse, tell], share: 1 }] });
  const all = [result(refuse, {}), result(tell, { trained }), composite];
  expect(singles(all).map(({ name }) => name)).toEqual([tell]);
  expect(() => singles([composite])).toThrow('no capability came to an adapter');
});

test('environments are taken from a folder, tested, and trained on beside the capabilities', async () => {
  const { training, arm } = await run([{ kind: 'environments', modules: '/somewhere' }]);
  expect(training('environments')).toMatchObject({
    environment: mixtureSpec(['one', 'two'].map((name) => ({ module: artifact(name), hints: false }))),
    tasks: { kind: 'mixed' },
    // Not the folder: what is in it decides.
    maker: { kind: 'environments', options: {} },
    training: { steps: 8 },
  });
  expect(arm('environments')).toMatchObject({ status: 'done', best: { step: 2 } });
});

test('what there is nothing to build on for, or is unfit, ends as a row with its reason', async () => {
  const kinds = ['joint', 'grpo_single'].map((kind) => ({ kind }));
  const reasonsOf = async (arms: { kind: string }[], change: Partial<Activities>) => {
    const { seen } = await run(arms, change);
    return seen.record!.arms!.map(({ status, reason }) => [status, reason]);
  };
  const uncalibrated = await reasonsOf(kinds, { calibrate: async () => calibration(false) });
  expect(uncalibrated).toEqual([
    ['failed', 'no capability has a calibrated environment to train on'],
    ['failed', 'no capability came to an adapter'],
  ]);
  const unfit = {
    selfTest: async ({ module }: { module: { sha256: string } }) => ({
      passed: module.sha256 !== 'two',
      findings: ['pays for nothing'],
    }),
  };
  expect(await reasonsOf([{ kind: 'environments', modules: '/somewhere' } as { kind: string }], unfit)).toEqual([
    ['failed', 'modules of somewhere fail the self-test: two.js: pays for nothing'],
  ]);
});
