/** A campaign with a composite, under time skipping: in which order, with which budgets and from what it is trained, and why it is not. */
import { ApplicationFailure } from '@temporalio/activity';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { Campaign } from '../../src/domain/campaign';
import type { Candidate, Pair } from '../../src/domain/capability';
import { COMPOSITE } from '../../src/domain/composite';
import { mixtureSpec } from '../../src/domain/environment-spec';
import type { CapabilityResult } from '../../src/domain/results';
import { HELD_OUT_SEEDS, seedsOfEach, TRAINING_SEEDS } from '../../src/sandbox/seeds';
import type { CampaignProgress } from '../../src/workflows/messages';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import { artifact, calibration, config, fakeActivities, type Activities, type Seen } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;
beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

const [refuse, tell, ask] = ['refuse_what_is_forbidden', 'tell_what_is_asked', 'ask_when_unclear'] as const;
const candidates: Candidate[] = [refuse, tell, ask].map((name) => ({ name, definition: `${name}!`, examples: [] }));
const named = (fields: object = {}): Campaign =>
  config({ name: `composite-${n++}`, arms: [], training: { steps: 12, checkpointEvery: 2 }, ...fields });

const composite = (...pairs: [[string, string], number][]): Candidate => ({
  name: COMPOSITE,
  definition: 'Both.',
  examples: ['r1'],
  parts: pairs.map(([names, share]) => ({ names, share })),
});
const both = composite([[refuse, tell], 0.75], [[tell, ask], 0.25]);

/** What happens, in order: a child begins with its first environment, and ends with its held-out rollouts on the target. */
function activitiesWith(replaced: Partial<Activities> = {}, candidate = both) {
  const happened: string[] = [];
  const { activities, seen } = fakeActivities({
    select: async () => ({
      ref: artifact('selection'),
      selected: candidates.map((one) => ({ candidate: one, votes: 10 })),
    }),
    combine: async () => ({ composite: { candidate, counted: { failures: 4, of: 10 } } }),
    ...replaced,
  });
  const { synthesize, rollOut } = activities;
  activities.synthesize = async (input) => {
    happened.push(`begin ${input.candidate.name}`);
    return synthesize(input);
  };
  activities.rollOut = async (input) => {
    const ended = /^(.*): held out on the target$/.exec(input.title)?.[1];
    if (ended) happened.push(`end ${ended}`);
    return rollOut(input);
  };
  return { activities, seen, happened };
}

async function run(
  { activities, seen }: { activities: Activities; seen: Seen },
  campaign: Campaign,
): Promise<{ results: CapabilityResult[]; progress: CampaignProgress }> {
  const progress = await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    await handle.result();
    return handle.query<CampaignProgress>('progress');
  });
  return { results: seen.record?.capabilities ?? [], progress };
}

const stepsOf = ({ trainings }: Seen) => Object.fromEntries(trainings.map(({ name, steps }) => [name, steps]));

test('it begins when its parts have ended, with what they left of the steps, from the sum of their adapters', async () => {
  const faked = activitiesWith();
  const { seen, happened, activities } = faked;
  const combine = jest.spyOn(activities, 'combine');
  const { results, progress } = await run(faked, named({ arms: [{ kind: 'grpo_target' }] }));
  expect(combine.mock.calls[0]?.[0]).toMatchObject({
    rollouts: artifact('base rollouts'),
    labels: Array.from({ length: 10 }, (_, pass) => artifact(`labels-${pass}`)),
    selected: candidates.map(({ name, definition }) => ({ name, definition })),
  });

  const begun = happened.indexOf(`begin ${COMPOSITE}`);
  for (const part of [refuse, tell, ask]) expect(happened.indexOf(`end ${part}`)).toBeLessThan(begun);
  expect(begun).toBeGreaterThan(0);
  // Three times 12 steps, a third of them for it; an arm has what all of them have.
  expect(stepsOf(seen)).toEqual({ [refuse]: 8, [tell]: 8, [ask]: 8, [COMPOSITE]: 12, grpo_target: 36 });
  const { groupsPerStep, groupSize } = seen.record!.campaign.training;
  expect(results.reduce((sum, { trained }) => sum + trained!.training.rollouts, 0)).toBe(
    36 * groupsPerStep * groupSize,
  );
  expect(seen.record?.arms?.[0]?.best?.rollouts).toBeLessThanOrEqual(36 * groupsPerStep * groupSize);

  expect(results.map(({ name, status, parts }) => [name, status, parts])).toEqual([
    ...[refuse, tell, ask].map((name) => [name, 'trained', undefined]),
    [COMPOSITE, 'trained', both.parts],
  ]);
  // The best iteration of each part: of equals the first.
  const sum = [refuse, tell, ask].map((name) => ({ ref: artifact(`${name}-2`), weight: 1 }));
  const from = Object.fromEntries(seen.trainings.map((training) => [training.name, training.from]));
  expect(from).toEqual({
    [refuse]: undefined,
    [tell]: undefined,
    [ask]: undefined,
    grpo_target: undefined,
    [COMPOSITE]: sum,
  });
  const titled = (title: string) => seen.rollOuts.find((one) => one.title === title)!;
  const policy = { base: 'base@1', adapters: sum };
  expect(titled(`${COMPOSITE}: calibration, round 1`).policy).toEqual(policy);
  expect(titled(`${COMPOSITE}: held out, the sum of its parts`).policy).toEqual(policy);
  const onTarget = titled(`${COMPOSITE}: held out on the target, the sum of its parts`);
  expect(onTarget).toMatchObject({ policy, environment: { name: 'shop' }, tasks: { part: 'heldOut' } });
  expect(results.at(-1)?.trained?.target.before.title).toBe(onTarget.title);
  expect(results[0]?.trained?.target.before.title).toBe('base on the held-out train tasks');
  expect(titled(`${refuse}: calibration, round 1`).policy).toEqual({ base: 'base@1', adapters: [] });

  expect(progress.children.find(({ name }) => name === COMPOSITE)).toMatchObject({
    kind: 'capability',
    status: 'done',
  });
  expect(progress.stages[1]?.detail).toContain(COMPOSITE);
  expect(seen.record?.evaluation?.policies.map(({ name }) => name)).toContain(COMPOSITE);
  expect(seen.record?.router?.options).toContain(COMPOSITE);
});

test('environments are written beside the other capabilities; the composite is none of them', async () => {
  const faked = activitiesWith({}, composite([[refuse, tell], 1]));
  const synthesize = jest.spyOn(faked.activities, 'synthesize');
  await run(faked, named());
  const others = synthesize.mock.calls.map(([input]) => [input.candidate.name, input.others.map(({ name }) => name)]);
  expect(Object.fromEntries(others)).toEqual({
    [refuse]: [tell, ask],
    [tell]: [refuse, ask],
    [ask]: [refuse, tell],
    [COMPOSITE]: [ask],
  });
});

test('pairs of which a part came to no adapter are left out, and so is its adapter from the sum', async () => {
  const faked = activitiesWith({
    selfTest: async ({ module }) => ({ passed: !module.sha256.startsWith(ask), findings: ['no reward'] }),
  });
  const { results } = await run(faked, named());
  expect(results.map(({ name, status }) => [name, status])).toEqual([
    [refuse, 'trained'],
    [tell, 'trained'],
    [ask, 'not_synthesized'],
    [COMPOSITE, 'trained'],
  ]);
  expect(results.at(-1)?.parts).toEqual([{ names: [refuse, tell], share: 1 }]);
  const training = faked.seen.trainings.find(({ name }) => name === COMPOSITE);
  expect(training?.from?.map(({ ref }) => ref.sha256)).toEqual([`${refuse}-2`, `${tell}-2`]);
});

test('without a pair left it is not started: a row that says why, and nobody gets its steps', async () => {
  const faked = activitiesWith();
  const { train } = faked.activities;
  faked.activities.train = async (input) => {
    if (input.name === tell) throw ApplicationFailure.create({ type: 'BadJob', message: 'no', nonRetryable: true });
    return train(input);
  };
  const { results, progress } = await run(faked, named());
  expect(results.at(-1)).toMatchObject({
    name: COMPOSITE,
    status: 'not_started',
    rounds: [],
    reason: `no pair of it has two adapters: ${tell} ended without one`,
  });
  expect(stepsOf(faked.seen)).toEqual({ [refuse]: 8, [ask]: 8 });
  expect(faked.happened).not.toContain(`begin ${COMPOSITE}`);
  expect(progress.children.at(-1)).toMatchObject({ name: COMPOSITE, status: 'failed' });
  expect(faked.seen.record?.router?.options).not.toContain(COMPOSITE);
});

test('one that is not calibrated, or whose training fails, is a row like any other', async () => {
  const reason = 'success rate 0.9 is above 0.6';
  const uncalibrated = activitiesWith({
    calibrate: async ({ rollouts }) => calibration(!rollouts.sha256.startsWith(COMPOSITE)),
  });
  const { results } = await run(uncalibrated, named({ calibration: { maxRounds: 2 } }));
  expect(results.at(-1)).toMatchObject({ name: COMPOSITE, status: 'not_calibrated', reason, parts: both.parts });
  expect(results.at(-1)?.rounds).toHaveLength(2);
  expect(Object.keys(stepsOf(uncalibrated.seen)).sort()).toEqual([ask, refuse, tell]);

  const failing = activitiesWith();
  const { train } = failing.activities;
  failing.activities.train = async (input) => {
    if (input.name === COMPOSITE)
      throw ApplicationFailure.create({ type: 'BadJob', message: 'gone', nonRetryable: true });
    return train(input);
  };
  const failed = await run(failing, named());
  expect(failed.results.map(({ status }) => status)).toEqual(['trained', 'trained', 'trained', 'failed']);
  expect(failed.results.at(-1)).toMatchObject({ reason: 'BadJob: gone', parts: both.parts });
});

test('none is looked for where its share is 0, nor without labels, nor where nothing is selected', async () => {
  const off = activitiesWith();
  const combine = jest.spyOn(off.activities, 'combine');
  await run(off, named({ composites: { share: 0 } }));
  expect(combine).not.toHaveBeenCalled();
  expect(stepsOf(off.seen)).toEqual({ [refuse]: 12, [tell]: 12, [ask]: 12 });
  expect(off.seen.record?.selection).not.toHaveProperty('noComposite');

  const outright = activitiesWith({ discover: async () => ({ ref: artifact('candidates'), selects: 'outright' }) });
  const asked = jest.spyOn(outright.activities, 'combine');
  await run(outright, named());
  expect(asked).not.toHaveBeenCalled();
  expect(outright.seen.record?.selection?.noComposite).toContain('nothing was labeled');
  expect(stepsOf(outright.seen)).toEqual({ [refuse]: 12, [tell]: 12, [ask]: 12 });

  const nothing = activitiesWith({ select: async () => ({ ref: artifact('selection'), selected: [] }) });
  const never = jest.spyOn(nothing.activities, 'combine');
  await run(nothing, named());
  expect(never).not.toHaveBeenCalled();
});

test('of given pairs it is made without labels', async () => {
  const pairs: Pair[] = [{ names: [refuse, tell], share: 1 }];
  const given = activitiesWith({
    discover: async () => ({ ref: artifact('candidates'), selects: 'outright', pairs }),
  });
  const combine = jest.spyOn(given.activities, 'combine');
  await run(given, named());
  expect(combine).not.toHaveBeenCalled();
  expect(given.seen.record?.selection?.composite).toMatchObject({ candidate: { name: COMPOSITE, parts: pairs } });
  expect(given.seen.record?.selection?.composite).not.toHaveProperty('counted');
  expect(stepsOf(given.seen)).toEqual({ [refuse]: 8, [tell]: 8, [ask]: 8, [COMPOSITE]: 12 });
});

describe('on the environments mixed', () => {
  const mixed = { composites: { share: 1 / 3, environment: 'mixed' } };

  test('nothing is written or calibrated for it: it takes turns in what its parts have trained on, on the seeds after theirs', async () => {
    const faked = activitiesWith();
    const combine = jest.spyOn(faked.activities, 'combine');
    const train = jest.spyOn(faked.activities, 'train');
    const { results } = await run(faked, named(mixed));
    const { seen, happened } = faked;
    expect(combine).not.toHaveBeenCalled();
    expect(happened).not.toContain(`begin ${COMPOSITE}`);
    const parts = [{ names: [refuse, tell, ask], share: 1 }];
    expect(seen.record?.selection?.composite?.candidate).toMatchObject({ name: COMPOSITE, parts, mixed: true });

    expect(stepsOf(seen)).toEqual({ [refuse]: 8, [tell]: 8, [ask]: 8, [COMPOSITE]: 12 });
    const input = train.mock.calls.map(([one]) => one).find(({ name }) => name === COMPOSITE)!;
    const { groupsPerStep, learningRate } = seen.record!.campaign.training;
    const modules = [refuse, tell, ask].map((name) => ({ module: artifact(`${name}-1`), hints: false }));
    const without = { unlike: seen.record!.campaign.target };
    expect(input).toMatchObject({
      environment: mixtureSpec(modules),
      tasks: { kind: 'mixed', from: TRAINING_SEEDS + 8 * groupsPerStep, count: 12 * groupsPerStep, ...without },
      from: [refuse, tell, ask].map((name) => ({ ref: artifact(`${name}-2`), weight: 1 })),
      training: { learningRate: learningRate / 3 },
    });
    const heldOut = seen.rollOuts.find(({ title }) => title === `${COMPOSITE}: held out, the sum of its parts`);
    const { seeds } = seen.record!.campaign.validation;
    expect(heldOut).toMatchObject({
      environment: mixtureSpec(modules),
      tasks: { kind: 'mixed', from: HELD_OUT_SEEDS, count: seeds, ...without },
    });
    expect(results.at(-1)).toMatchObject({ name: COMPOSITE, status: 'trained', rounds: [], parts });
    // It stands for the whole target, whose held-out tasks choose its iteration.
    const { target } = seen.record!.campaign;
    const iterations = seen.rollOuts.filter(({ title }) => title.startsWith(`${COMPOSITE}: held out at step`));
    expect(iterations.length).toBeGreaterThan(1);
    for (const { environment, tasks } of iterations) {
      expect(environment).toEqual(target);
      expect(tasks).toEqual(seen.rollOuts.find(({ title }) => title.startsWith('base on the held-out'))!.tasks);
    }
    const { best, synthesized, target: onTarget } = results.at(-1)!.trained!;
    expect(onTarget.after).toEqual(best.heldOut);
    const own = seen.rollOuts.find(({ title }) => title === `${COMPOSITE}: held out`);
    expect(own).toMatchObject({ environment: mixtureSpec(modules), policy: best.policy });
    expect(synthesized.after).not.toEqual(best.heldOut);
    // Two of each in a row: its own, after those that each part has trained on.
    const each = 8 * groupsPerStep + seedsOfEach(3, 12 * groupsPerStep);
    expect(results.at(-1)?.trainedOn).toEqual(modules.map(({ module }) => ({ module, seeds: each })));
    expect(seen.record?.router?.options).toContain(COMPOSITE);
  });

  test('a part that came to no adapter is left out, its environment too', async () => {
    const faked = activitiesWith({
      selfTest: async ({ module }) => ({ passed: !module.sha256.startsWith(ask), findings: ['no reward'] }),
    });
    const { results } = await run(faked, named(mixed));
    expect(results.at(-1)).toMatchObject({
      status: 'trained',
      parts: [{ names: [refuse, tell], share: 1 }],
      trainedOn: [{ module: artifact(`${refuse}-1`) }, { module: artifact(`${tell}-1`) }],
    });
    const alone = activitiesWith({
      selfTest: async ({ module }) => ({ passed: module.sha256.startsWith(tell), findings: ['no reward'] }),
    });
    expect((await run(alone, named(mixed))).results.at(-1)).toMatchObject({
      status: 'not_started',
      reason: `fewer than two of it have an adapter: ${refuse}, ${ask} ended without one`,
    });
  });
});

test('where there is none, the steps are as without, and the record says why', async () => {
  const faked = activitiesWith({ combine: async () => ({ none: 'too few' }) });
  await run(faked, named());
  expect(stepsOf(faked.seen)).toEqual({ [refuse]: 12, [tell]: 12, [ask]: 12 });
  expect(faked.seen.record?.selection).toMatchObject({ noComposite: 'too few' });
  expect(faked.seen.record?.selection).not.toHaveProperty('composite');
});

test('too small a share leaves it no step, and takes none', async () => {
  const faked = activitiesWith();
  const { results } = await run(faked, named({ composites: { share: 0.001 } }));
  expect(stepsOf(faked.seen)).toEqual({ [refuse]: 12, [tell]: 12, [ask]: 12 });
  expect(results.at(-1)).toMatchObject({ name: COMPOSITE, status: 'not_started' });
  expect(results.at(-1)?.reason).toContain('composites.share (0.001)');
});

test('an arm of its name ends the campaign before anything is trained', async () => {
  const { activities, seen } = activitiesWith();
  const campaign = named({ arms: [{ kind: 'grpo_target', name: COMPOSITE }] });
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'BadInput', message: expect.stringContaining(`arms: ${COMPOSITE} is the name`) as string },
    });
  });
  expect(seen.trainings).toEqual([]);
});
