/** The arms that spend the budget otherwise, and the composite: on what they train, where they start, what their iterations count, how they end. */
import type { TrainInput } from '../../src/activities/types';
import { COMPOSITE } from '../../src/domain/capability';
import { languageModelSchema } from '../../src/domain/endpoints';
import { mixtureSpec, sandboxSpec } from '../../src/domain/kinds';
import type { ArmResult, EndedCapability } from '../../src/domain/results';
import { HELD_OUT_SEEDS, seedsOfEach, TRAINING_SEEDS } from '../../src/domain/seeds';
import { singles } from '../../src/workflows/arms/grpo';
import { campaignsOn, type Played } from './campaigns';
import { timeSkipping } from './environment';
import { type Activities, artifact, calibration, REFUSE, selecting, summary, TELL } from './fake-activities';

jest.setTimeout(120_000);
const { play } = campaignsOn(timeSkipping, 'arms');
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

test('grpo_single trains on the environment of the capability that gains most on held-out tasks of the target, joint on all that are calibrated, both with the whole budget', async () => {
  const success: Record<string, number> = {
    [`${REFUSE}: held out on the target`]: 0.4,
    [`${TELL}: held out on the target`]: 0.6,
    // What it reaches on its own environment decides nothing.
    [`${REFUSE}: held out at step 2`]: 1,
  };
  const played = await play(
    { arms: [{ kind: 'grpo_single' }, { kind: 'joint' }] },
    {
      rollOut: async (input) => summary(input, success[input.title]),
    },
  );
  const { record, campaign, asked } = played;
  const whole = { training: { steps: 8 } };
  const count = 8 * 32;
  expect(trainingOf(played, 'grpo_single')).toMatchObject({
    ...{ environment: sandboxSpec(artifact(`${TELL}-1`)), tasks: { kind: 'seeds', from: TRAINING_SEEDS, count } },
    ...whole,
  });
  const modules = [artifact(`${REFUSE}-1`), artifact(`${TELL}-1`)];
  expect(trainingOf(played, 'joint')).toMatchObject({
    ...{ environment: mixtureSpec(modules), tasks: { kind: 'mixed', from: TRAINING_SEEDS, count } },
    ...whole,
  });
  expect(record.arms).toMatchObject([
    {
      ...{ name: 'grpo_single', status: 'done', routable: false, builtOn: [TELL] },
      trainedOn: [{ module: artifact(`${TELL}-1`), seeds: count }],
    },
    { name: 'joint', status: 'done', builtOn: [REFUSE, TELL], trainedOn: [{ seeds: count / 2 }, { seeds: count / 2 }] },
  ]);
  expect(record.router?.options).not.toContain('grpo_single');
  for (const { name, iterations } of record.arms!) {
    expect(trainingOf(played, name)?.from).toBeUndefined();
    expect(iterations?.map(({ rollouts }) => rollouts)).toEqual([2, 4, 6, 8].map((at) => at * STEP));
    // Both are held out on the target.
    const own = asked('rollOut').filter(({ title }) => title.startsWith(`${name}: held out`));
    expect(own.map(({ environment, tasks }) => [environment, tasks])).toEqual(
      Array(4).fill([campaign.target, { kind: 'plan', plan: artifact('plan'), part: 'validation' }]),
    );
  }
});

const reflection = languageModelSchema.parse({ url: 'http://127.0.0.1:2/v1', model: 'm' });
const gepa = {
  ...{ kind: 'gepa', prompt: '', place: 'before', validationTasks: 1, minibatchSize: 1, merges: 0 },
  ...{ candidateSelection: 'pareto', acceptance: 'strict_improvement' },
};

test('sft trains on conversations that somebody brings and spends no rollouts; environments of a folder are tested, and trained on beside the capabilities; gepa searches with what trace may spend', async () => {
  const played = await play({
    trainingSeed: 7,
    arms: [
      { kind: 'sft', conversations: '/some.jsonl', epochs: 2, checkpointEvery: 7 },
      { kind: 'environments', modules: '/somewhere' },
      { ...gepa, reflection },
    ],
  });
  const { campaign, asked, seen } = played;
  expect(asked('takeConversations')).toEqual([{ file: '/some.jsonl', minReward: 1 }]);
  const [fineTuning] = asked('fineTune');
  expect(fineTuning).toMatchObject({
    seed: 7,
    environment: campaign.target,
    conversations: artifact('conversations'),
    training: { epochs: 2, checkpointEvery: 7, rowsPerStep: 16, learningRate: 1e-5 },
  });
  // Not the file: what is in it decides.
  expect(fineTuning!.maker).toEqual({ kind: 'sft', version: '1', options: {} });
  // As long as its passes say, and not as the trainings on rollouts.
  expect(fineTuning!.training.steps).toBeUndefined();
  expect(armOf(played, 'sft')).toMatchObject({
    ...{ status: 'done', routable: false, conversations: 40 },
    iterations: [7, 14].map((step) => ({ step, rollouts: 0 })),
  });

  const environments = trainingOf(played, 'environments');
  expect(environments).toMatchObject({
    environment: mixtureSpec([artifact('one'), artifact('two')]),
    tasks: { kind: 'mixed' },
    training: { steps: 8 },
  });
  // Not the folder: what is in it decides.
  expect(environments?.maker).toMatchObject({ kind: 'environments', options: {} });
  expect(armOf(played, 'environments')).toMatchObject({ status: 'done', best: { step: 2 } });

  const budget = 8 * STEP;
  // Its rollouts have the campaign's seed, so that it finds those of the base model.
  expect(seen.searches).toEqual([{ name: 'gepa', rollouts: budget, seed: campaign.seed, searchSeed: 7 }]);
  expect(armOf(played, 'gepa')).toMatchObject({
    ...{ status: 'done', routable: false, training: { rollouts: budget } },
    iterations: [1, 2].map((step) => ({
      ...{ step, rollouts: (step * budget) / 2 },
      policy: { adapters: [], prompt: { text: `prompt ${step}` } },
    })),
  });
  const heldOut = asked('rollOut').filter(({ title }) => title.startsWith('gepa: held out'));
  expect(heldOut).toMatchObject([1, 2].map(() => ({ tasks: { part: 'validation' } })));
});

test('what there is nothing to build on for, or is unfit or incomplete, ends as a row with its reason', async () => {
  const arms = [{ kind: 'joint' }, { kind: 'grpo_single' }, { kind: 'environments', modules: '/somewhere' }, gepa];
  const replaced = { calibrate: async () => calibration(false), ...unfit('two') };
  const { record, seen } = await play({ arms, calibration: { maxRounds: 1 } }, replaced);
  expect(record.arms?.map(({ status, reason }) => [status, reason])).toEqual([
    ['failed', 'no capability has a calibrated environment to train on'],
    ['failed', 'no capability came to an adapter'],
    ['failed', 'modules of somewhere fail the self-test: two.js: pays for nothing'],
    ['failed', expect.stringMatching(/arms\.gepa\.reflection is missing/)],
  ]);
  expect(seen.searches).toEqual([]);
});

describe('a composite', () => {
  const ASK = 'ask_when_unclear';
  const all = [REFUSE, TELL, ASK];
  const mixed = { composites: { share: 1 / 3 }, training: { steps: 12, checkpointEvery: 2 } };
  const three = selecting(...all);
  const stepsOf = ({ asked }: Played) =>
    Object.fromEntries(asked('train').map(({ name, training }) => [name, training.steps]));
  const resultOf = ({ record }: Played) => record.capabilities!.at(-1)!;

  test('takes turns in what its parts have trained on, on the seeds after theirs; nothing is written or calibrated for it', async () => {
    const played = await play(mixed, three);
    const { record, asked, campaign } = played;
    expect(asked('synthesize').map(({ candidate }) => candidate.name)).not.toContain(COMPOSITE);
    const parts = [{ names: all, share: 1 }];
    expect(record.selection?.composite?.candidate).toMatchObject({ name: COMPOSITE, parts, mixed: true });

    expect(stepsOf(played)).toEqual({ [REFUSE]: 8, [TELL]: 8, [ASK]: 8, [COMPOSITE]: 12 });
    const { groupsPerStep, learningRate } = campaign.training;
    const modules = all.map((name) => artifact(`${name}-1`));
    const environment = mixtureSpec(modules);
    const tasks = { kind: 'mixed', unlike: campaign.target };
    expect(trainingOf(played, COMPOSITE)).toMatchObject({
      environment,
      tasks: { ...tasks, from: TRAINING_SEEDS + 8 * groupsPerStep, count: 12 * groupsPerStep },
      from: all.map((name) => ({ ref: artifact(`${name}-2`), weight: 1 })),
      training: { learningRate: learningRate / 3 },
    });
    const batches = (title: string) => asked('rollOut').filter((one) => one.title.startsWith(title));
    const [heldOut] = batches(`${COMPOSITE}: held out, the sum of its parts`);
    const { seeds } = campaign.validation;
    expect(heldOut).toMatchObject({ environment, tasks: { ...tasks, from: HELD_OUT_SEEDS, count: seeds } });
    const result = resultOf(played);
    expect(result).toMatchObject({ name: COMPOSITE, status: 'trained', rounds: [], parts });
    // It stands for the whole target, whose held-out tasks choose its iteration.
    const iterations = batches(`${COMPOSITE}: held out at step`);
    expect(iterations.length).toBeGreaterThan(1);
    const [baseHeldOut] = batches('base on the held-out');
    for (const one of iterations) {
      expect(one.environment).toEqual(campaign.target);
      expect(one.tasks).toEqual(baseHeldOut!.tasks);
    }
    const { best, synthesized, target } = result.trained!;
    expect(target.after).toEqual(best.heldOut);
    const own = asked('rollOut').find(({ title }) => title === `${COMPOSITE}: held out`);
    expect(own).toMatchObject({ environment, policy: best.policy });
    expect(synthesized.after).not.toEqual(best.heldOut);
    // Two of each in a row: its own, after those that each part has trained on.
    const each = 8 * groupsPerStep + seedsOfEach(3, 12 * groupsPerStep);
    expect(result.trainedOn).toEqual(modules.map((module) => ({ module, seeds: each })));
    expect(record.router?.options).toContain(COMPOSITE);
  });

  test('leaves out a part that came to no adapter, its environment too; with one that did it is not trained', async () => {
    const once = { ...mixed, calibration: { maxRounds: 1 } };
    expect(resultOf(await play(once, { ...three, ...unfit(ASK) }))).toMatchObject({
      status: 'trained',
      parts: [{ names: [REFUSE, TELL], share: 1 }],
      trainedOn: [{ module: artifact(`${REFUSE}-1`) }, { module: artifact(`${TELL}-1`) }],
    });
    expect(resultOf(await play(once, { ...three, ...unfit(REFUSE, ASK) }))).toMatchObject({
      status: 'not_started',
      reason: `fewer than two of it have an adapter: ${REFUSE}, ${ASK} ended without one`,
    });
  });

  test('is not looked for where its share is 0 or one capability is selected, and has no step where its share is too small', async () => {
    const whole = { [REFUSE]: 12, [TELL]: 12, [ASK]: 12 };
    const off = await play({ ...mixed, composites: { share: 0 } }, three);
    expect(stepsOf(off)).toEqual(whole);
    expect(off.record.selection).not.toHaveProperty('noComposite');
    const single = await play(mixed, selecting(REFUSE));
    expect(stepsOf(single)).toEqual({ [REFUSE]: 12 });
    expect(single.record.selection).toMatchObject({ noComposite: 'fewer than two capabilities are selected' });
    const small = await play({ ...mixed, composites: { share: 0.001 } }, three);
    expect(stepsOf(small)).toEqual(whole);
    const reason = expect.stringContaining('composites.share (0.001)') as string;
    expect(resultOf(small)).toMatchObject({ name: COMPOSITE, status: 'not_started', reason });
  });

  test('is no capability alone: it starts from adapters of others', () => {
    const trained = {} as NonNullable<EndedCapability['trained']>;
    const result = (name: string, more: Partial<EndedCapability>): EndedCapability => {
      return { name, workflowId: name, status: 'trained', ...more };
    };
    const composite = result(COMPOSITE, { trained, parts: [{ names: [REFUSE, TELL], share: 1 }] });
    const ended = [result(REFUSE, {}), result(TELL, { trained }), composite];
    expect(singles(ended).map(({ name }) => name)).toEqual([TELL]);
    expect(() => singles([composite])).toThrow('no capability came to an adapter');
  });
});
