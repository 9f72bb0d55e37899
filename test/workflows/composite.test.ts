/** A campaign with a composite, under time skipping: in which order, with which budgets and from what it is trained, and why it is not. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { Campaign } from '../../src/domain/campaign';
import { type Candidate, COMPOSITE } from '../../src/domain/capability';
import { mixtureSpec } from '../../src/domain/kinds';
import type { CapabilityResult } from '../../src/domain/results';
import { HELD_OUT_SEEDS, seedsOfEach, TRAINING_SEEDS } from '../../src/domain/seeds';
import type { CampaignProgress } from '../../src/workflows/messages';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import { artifact, config, fakeActivities, type Activities, type Seen } from './fake-activities';

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

/** What happens, in order: a child begins with its first environment, and ends with its held-out rollouts on the target. */
function activitiesWith(replaced: Partial<Activities> = {}) {
  const happened: string[] = [];
  const { activities, seen } = fakeActivities({
    select: async () => ({
      ref: artifact('selection'),
      selected: candidates.map((one) => ({ candidate: one, votes: 10 })),
    }),
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

describe('on the environments mixed', () => {
  const mixed = { composites: { share: 1 / 3 } };

  test('nothing is written or calibrated for it: it takes turns in what its parts have trained on, on the seeds after theirs', async () => {
    const faked = activitiesWith();
    const train = jest.spyOn(faked.activities, 'train');
    const { results } = await run(faked, named(mixed));
    const { seen, happened } = faked;
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

test('none is looked for where its share is 0, and of one capability alone there is none', async () => {
  const off = activitiesWith();
  await run(off, named());
  expect(stepsOf(off.seen)).toEqual({ [refuse]: 12, [tell]: 12, [ask]: 12 });
  expect(off.seen.record?.selection).not.toHaveProperty('noComposite');
  const single = activitiesWith({
    select: async () => ({ ref: artifact('selection'), selected: [{ candidate: candidates[0]!, votes: 10 }] }),
  });
  await run(single, named({ composites: { share: 1 / 3 } }));
  expect(stepsOf(single.seen)).toEqual({ [refuse]: 12 });
  expect(single.seen.record?.selection).toMatchObject({ noComposite: 'fewer than two capabilities are selected' });
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
  const campaign = named({ composites: { share: 1 / 3 }, arms: [{ kind: 'grpo_target', name: COMPOSITE }] });
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'BadInput', message: expect.stringContaining(`arms: ${COMPOSITE} is the name`) as string },
    });
  });
  expect(seen.trainings).toEqual([]);
});
