/** The arms that spend the budget otherwise: on what they train, what their iterations count, how they end. */
import type { TrainInput } from '../../src/activities/types';
import { languageModelSchema } from '../../src/domain/endpoints';
import { mixtureSpec, sandboxSpec } from '../../src/domain/kinds';
import type { ArmResult } from '../../src/domain/results';
import { TRAINING_SEEDS } from '../../src/domain/seeds';
import { campaignsOn, type Played } from './campaigns';
import { timeSkipping } from './environment';
import { type Activities, artifact, calibration, REFUSE, summary, TELL } from './fake-activities';

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
