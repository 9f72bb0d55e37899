/** The workflows under time skipping: what happens in which order, and what a failure becomes. */
import { ApplicationFailure, Context, sleep } from '@temporalio/activity';
import type { WorkflowFailedError } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { FailureType } from '../../src/domain/failures';
import { searchAttributeNames, type CampaignProgress } from '../../src/workflows/messages';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import { adapter, artifact, calibration, config, fakeActivities, summary, type Activities } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;
const named = (fields: object = {}) => config({ name: `test-${n++}`, ...fields });
const failure = (type: FailureType, message: string) =>
  ApplicationFailure.create({ type, message, nonRetryable: true });
const fatal = (message: string) => failure('BadInput', message);

beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

/** As the reader of campaign files says it of a router that wants one. */
const wantsGate = <C extends object>(campaign: C) => ({
  ...campaign,
  parts: { trainsGate: true as const },
});

describe('a vLLM server is tried with adapters', () => {
  const policyServer = { kind: 'vllm', url: 'http://gpu:8000' };

  test('before anything is spent, and with their sum once it is known how many there are', async () => {
    const { activities } = fakeActivities();
    const tried = jest.spyOn(activities, 'checkAdapters');
    const looked = jest.spyOn(activities, 'checkBase');
    await withWorkers(env, activities, async () => (await start(env, { campaign: named({ policyServer }) })).result());
    expect(tried.mock.calls.map(([{ lora, summed }]) => [lora.r, summed])).toEqual([
      [16, 1],
      [16, 2],
    ]);
    expect(tried.mock.invocationCallOrder[0]).toBeLessThan(looked.mock.invocationCallOrder[0]!);
  });

  test('not where nothing will be trained; one that refuses stops the campaign', async () => {
    const reason = 'LoRA rank 16 is greater than max_lora_rank 8; start vLLM with --max-lora-rank 16';
    const { activities, seen } = fakeActivities({
      checkAdapters: () => Promise.reject(failure('AdapterRefused', reason)),
    });
    await withWorkers(env, activities, async () => {
      await (await start(env, { campaign: named({ policyServer }), until: 'selection' })).result();
      const before = seen.rollOuts.length;
      const error: unknown = await (
        await start(env, { campaign: named({ policyServer }) })
      )
        .result()
        .catch((e: unknown) => e);
      expect((error as Error).cause).toMatchObject({ cause: { type: 'AdapterRefused', message: reason } });
      expect(seen.rollOuts).toHaveLength(before);
    });
  });
});

test('goes through every stage and reports it', async () => {
  const { activities, seen } = fakeActivities();
  const result = await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  expect(result.status).toBe('completed');
  expect(seen.trainings.map((t) => [t.name, t.steps]).sort()).toEqual([
    ['grpo_target', 8],
    ['refuse_what_is_forbidden', 4],
    ['tell_what_is_asked', 4],
  ]);
  expect(seen.record?.capabilities?.map((c) => c.status)).toEqual(['trained', 'trained']);
  expect(seen.record?.evaluation?.policies.map((p) => p.name)).toEqual([
    'base',
    'refuse_what_is_forbidden',
    'tell_what_is_asked',
    'refuse_what_is_forbidden+tell_what_is_asked',
    'grpo_target',
    'trace',
  ]);
  expect(seen.rollOuts.find(({ title }) => title === 'test: trace')?.policy).toEqual({ router: artifact('router') });
  const sum = 'refuse_what_is_forbidden+tell_what_is_asked';
  const options = ['base', 'refuse_what_is_forbidden', 'tell_what_is_asked', sum];
  expect(seen.record?.router).toMatchObject({ options, sums: [options.slice(1, 3)] });
  // Both adapters as they are, with weight 1: the router's own tasks, and all test tasks.
  const summed = seen.rollOuts.filter(({ title }) => title.endsWith(sum));
  const parts = seen.record?.capabilities?.flatMap(({ trained }) => trained!.best.policy.adapters);
  expect(summed.map(({ title, policy }) => [title, policy])).toEqual(
    ['outcome matrix', 'test'].map((what) => [`${what}: ${sum}`, { base: 'base@1', adapters: parts }]),
  );
});

test('where no adapter gains anything none are added up, behind a gate neither, and it is said why', async () => {
  const { activities, seen } = fakeActivities({ findGains: async () => ({ gaining: [] }) });
  const findGains = jest.spyOn(activities, 'findGains');
  const campaign = wantsGate(named({ arms: [] }));
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  const singles = ['base', 'refuse_what_is_forbidden', 'tell_what_is_asked'];
  const { router, evaluation } = seen.record!;
  expect(router).toMatchObject({ options: singles, sums: [] });
  expect(router!.noSums).toMatch(
    /^when the router was fitted, none of the 2 adapters had gained beyond chance, .* raise validation.seeds$/,
  );
  expect(router!.outcomes.map(({ option }) => option)).toEqual(singles);
  expect(evaluation!.policies.map(({ name }) => name)).toEqual([...singles, 'trace']);
  const name = singles[1]!;
  const { synthesized, target } = seen.record!.capabilities!.find((one) => one.name === name)!.trained!;
  const refs = ({ before, after }: typeof target) => ({ before: before.ref, after: after.ref });
  expect(findGains.mock.calls[0]![0]).toMatchObject({
    confidence: 0.95,
    adapters: [
      {
        name,
        own: refs(synthesized),
        target: [
          refs(target),
          { before: artifact('outcome matrix: base'), after: artifact(`outcome matrix: ${name}`) },
        ],
      },
      { name: singles[2] },
    ],
  });
});

test('nothing is asked of a single adapter', async () => {
  const { activities, seen } = fakeActivities();
  const { select } = activities;
  activities.select = async (input) => ({
    ...(await select(input)),
    selected: (await select(input)).selected.slice(1),
  });
  const findGains = jest.spyOn(activities, 'findGains');
  await withWorkers(env, activities, async () => (await start(env, { campaign: named({ arms: [] }) })).result());
  expect(findGains).not.toHaveBeenCalled();
  expect(seen.record!.router).toMatchObject({ sums: [] });
  expect(seen.record!.router!.noSums).toBeUndefined();
});

test('a gate is one more option, trained on the outcomes of all others', async () => {
  const { activities, seen } = fakeActivities();
  const trainGate = jest.spyOn(activities, 'trainGate');
  await withWorkers(env, activities, async () => (await start(env, { campaign: wantsGate(named()) })).result());
  const [[given]] = trainGate.mock.calls as [[Parameters<typeof activities.trainGate>[0]]];
  expect(given.policies).toEqual(seen.record?.capabilities?.map(({ trained }) => trained!.best.policy));
  const [one, other] = ['refuse_what_is_forbidden', 'tell_what_is_asked'];
  const tried = ['base', one, other, `${one}+${other}`].map((name) => `artifact:outcome matrix: ${name}`);
  expect(given.outcomes.map(({ uri }) => uri)).toEqual(tried);
  const { router, evaluation } = seen.record!;
  expect(router?.options.at(-1)).toBe('gated');
  const tested = seen.rollOuts.filter(({ title }) => title === 'test: gated');
  expect(tested.map(({ policy }) => policy)).toEqual([adapter('gated')]);
  expect(evaluation?.policies.map(({ name }) => name)).toContain('gated');
});

test('a gate that can not be trained is left out with its reason', async () => {
  const { activities, seen } = fakeActivities({
    trainGate: async () => {
      throw fatal('nothing was solved');
    },
  });
  await withWorkers(env, activities, async () => (await start(env, { campaign: wantsGate(named()) })).result());
  const { router, evaluation } = seen.record!;
  expect(router?.options).not.toContain('gated');
  expect(router?.failed).toEqual([{ name: 'gated', reason: expect.stringContaining('nothing was solved') }]);
  expect(evaluation?.failed).toEqual([]);
});

test('pairs of adapters and the sum of all are tried, and the router is given the pairs that gain and the sum of all', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const rates: Record<string, number> = { a: 0.4, b: 0.5, 'b+d': 0.6, 'a+c': 0.4 };
  const { activities, seen } = fakeActivities({
    select: async () => ({
      ref: artifact('selection'),
      selected: names.map((name) => ({ candidate: { name, definition: name, examples: [] }, votes: 10 })),
    }),
    rollOut: async (input) => summary(input, rates[input.title.replace('outcome matrix: ', '')] ?? 0.3),
  });
  const fitRouter = jest.spyOn(activities, 'fitRouter');
  await withWorkers(env, activities, async () => (await start(env, { campaign: named({ arms: [] }) })).result());
  const options = ['base', ...names, 'b+d', 'a+b+c+d+e'];
  expect(seen.record?.router).toMatchObject({ options, sums: [['b', 'd'], names] });
  expect(fitRouter.mock.calls[0]?.[0].outcomes.map(({ option }) => option)).toEqual(options);
  // Those that were tried and are no options have cost their rollouts, too.
  const tried = ['a+b', 'a+c', 'a+d', 'a+e', 'b+c', 'b+d', 'b+e', 'c+d', 'c+e', 'd+e', 'a+b+c+d+e'];
  expect(seen.record?.router?.outcomes.map(({ option }) => option)).toEqual(['base', ...names, ...tried]);
  expect(seen.record?.evaluation?.policies.map(({ name }) => name)).toEqual([...options, 'trace']);
});

test('a base model that can not work on the target stops the campaign before its rollouts, unless it is forced', async () => {
  const checkBase = async () => ({
    rollouts: artifact('check'),
    problems: ['it knows no word'],
    warnings: ['no reward'],
  });
  const stopped = fakeActivities({ checkBase });
  const ended = await withWorkers(env, stopped.activities, async () =>
    (await start(env, { campaign: named() })).result().catch((error: WorkflowFailedError) => error.cause),
  );
  expect(ended).toMatchObject({
    type: 'BaseUnsuited',
    nonRetryable: true,
    message: expect.stringMatching(/can't work on this target: it knows no word\..*--force/),
  });
  expect(stopped.seen.rollOuts).toEqual([]);
  const forced = fakeActivities({ checkBase });
  const asked = jest.spyOn(forced.activities, 'checkBase');
  const progress = await withWorkers(env, forced.activities, async () => {
    const handle = await start(env, { campaign: named(), until: 'rollouts', force: true });
    await handle.result();
    return handle.query<CampaignProgress>('progress');
  });
  expect(forced.seen.record?.baseCheck).toEqual(await checkBase());
  expect(progress.stages[0]?.detail).toBe('4 train tasks, base model; unsuited, but forced; no reward');
  // Asked for as the base rollouts are, so that these take its rollouts over.
  expect(asked.mock.calls.map(([{ rollouts }]) => rollouts)).toEqual(forced.seen.rollOuts);
});

test('stops after the stage it is told', async () => {
  const { activities, seen } = fakeActivities();
  const result = await withWorkers(env, activities, async () =>
    (await start(env, { campaign: named(), until: 'selection' })).result(),
  );
  expect(result.status).toBe('stopped_at_stage');
  expect(seen.trainings).toEqual([]);
  expect(seen.record).toMatchObject({
    stoppedAfter: 'selection',
    selection: { selected: [{ votes: 10 }, { votes: 10 }] },
  });
  expect(seen.record?.capabilities).toBeUndefined();
});

test('an environment outside the bands is made again with the report, and given up after the last round', async () => {
  const rounds: (boolean | undefined)[] = [];
  const { activities, seen } = fakeActivities({
    synthesize: async ({ candidate, round, previous }) => {
      rounds.push(previous?.calibration?.accepted);
      return artifact(`${candidate.name}-${round}`);
    },
    calibrate: async () => calibration(false),
  });
  const campaign = named({ calibration: { maxRounds: 3 }, arms: [] });
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  expect(rounds.filter((accepted) => accepted === undefined)).toHaveLength(2);
  expect(rounds.filter((accepted) => accepted === false)).toHaveLength(4);
  expect(seen.record?.capabilities?.map((c) => [c.status, c.rounds.length, c.reason])).toEqual([
    ['not_calibrated', 3, 'success rate 0.9 is above 0.6'],
    ['not_calibrated', 3, 'success rate 0.9 is above 0.6'],
  ]);
  expect(seen.record?.evaluation?.policies.map((p) => p.name)).toEqual(['base', 'trace']);
});

test('an environment that is too hard is calibrated with hints, and trained so where that is within the bands', async () => {
  const reason = 'success rate 0.01 is below 0.2';
  const hard = { ...calibration(false), verdict: 'too_hard' as const, reasons: [reason] };
  const run = async (replaced: Partial<Activities>, fields: object = {}) => {
    const { activities, seen } = fakeActivities({
      selfTest: async () => ({ passed: true, findings: [], hints: true }),
      calibrate: async ({ rollouts }) => (rollouts.uri.endsWith('with hints') ? calibration(true) : hard),
      ...replaced,
    });
    const campaign = named({
      calibration: { maxRounds: 1 },
      training: { steps: 4, hintShare: 0.25 },
      arms: [],
      ...fields,
    });
    await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
    const { record, rollOuts, trainings } = seen;
    return {
      trained: trainings.map(({ hints }) => hints),
      hinted: rollOuts.flatMap(({ purpose, hints }) => (hints ? [[purpose, hints.share]] : [])),
      ended: record?.capabilities?.map(({ status, reason: why, rounds: [round] }) => [
        ...[status, why, round?.calibration?.verdict],
        round?.aided?.map(({ hints, calibration: { accepted } }) => [hints, accepted]),
      ]),
    };
  };
  const accepted = await run({});
  expect(accepted.ended).toEqual(Array(2).fill(['trained', undefined, 'too_hard', [[0.5, true]]]));
  expect(accepted.hinted).toEqual(Array(2).fill(['calibration', 0.5]));
  expect(accepted.trained).toEqual(Array(2).fill({ share: 0.25 }));

  const notEven = await run({ calibrate: async () => hard });
  const both = `${reason}; with hints: ${reason}`;
  expect(notEven.ended).toEqual(Array(2).fill(['not_calibrated', both, 'too_hard', [[0.5, false]]]));

  // Without any, or where they are not wanted, nothing is rolled out for them.
  for (const without of [
    await run({ selfTest: async () => ({ passed: true, findings: [] }) }),
    await run({}, { calibration: { maxRounds: 1, hintShare: 0 } }),
  ]) {
    expect(without.ended).toEqual(Array(2).fill(['not_calibrated', reason, 'too_hard', undefined]));
    expect(without.hinted).toEqual([]);
  }
  const easy = await run({ calibrate: async () => calibration(false) });
  expect(easy.hinted).toEqual([]);
});

test('what calibration with hints came to goes back to the synthesizer beside that without', async () => {
  const given: unknown[] = [];
  const hard = { ...calibration(false), verdict: 'too_hard' as const, reasons: ['success rate 0.01 is below 0.2'] };
  const { activities } = fakeActivities({
    selfTest: async () => ({ passed: true, findings: [], hints: true }),
    synthesize: async ({ candidate, round, previous }) => {
      if (previous)
        given.push({ ...previous, module: undefined, attempts: previous.attempts?.uri.replace(candidate.name, '') });
      return artifact(`${candidate.name}-${round}`);
    },
    calibrate: async ({ rollouts }) => (rollouts.uri.endsWith('with hints') ? calibration(false) : hard),
  });
  const campaign = named({ calibration: { maxRounds: 2 }, arms: [] });
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  const feedback = { findings: [], calibration: hard, aided: [{ hints: 0.5, calibration: calibration(false) }] };
  // The attempts that were judged last.
  const attempts = artifact(': calibration, round 1, with hints').uri;
  expect(given).toEqual(Array(2).fill({ ...feedback, attempts }));
});

test('findings of the self-test go back to the synthesizer within the rounds', async () => {
  const given: (readonly string[] | undefined)[] = [];
  const { activities, seen } = fakeActivities({
    synthesize: async ({ candidate, round, previous }) => {
      given.push(previous?.findings);
      return artifact(`${candidate.name}-${round}`);
    },
    selfTest: async ({ module }) =>
      module.sha256.endsWith('-1')
        ? { passed: false, findings: ['doing nothing scores 1.0'] }
        : { passed: true, findings: [] },
  });
  await withWorkers(env, activities, async () => (await start(env, { campaign: named({ arms: [] }) })).result());
  expect(given.filter((findings) => findings?.[0] === 'doing nothing scores 1.0')).toHaveLength(2);
  expect(given).toHaveLength(4);
  expect(seen.record?.capabilities?.map((c) => [c.status, c.rounds.map((r) => r.selfTest.passed)])).toEqual([
    ['trained', [false, true]],
    ['trained', [false, true]],
  ]);
});

test('a module that breaks in play goes back to the synthesizer within the rounds', async () => {
  const given: (readonly string[] | undefined)[] = [];
  const broken = (type: FailureType) => ApplicationFailure.nonRetryable('make is not a function', type);
  let type: FailureType = 'BadEnvironment';
  const { activities, seen } = fakeActivities({
    synthesize: async ({ candidate, round, previous }) => {
      given.push(previous?.findings);
      return artifact(`${candidate.name}-${round}`);
    },
    rollOut: async (input) => {
      if (input.title.endsWith('calibration, round 1')) throw broken(type);
      const errors = input.title.endsWith('calibration, round 2') ? { BadEnvironment: 3 } : {};
      return { ...summary(input), errors };
    },
  });
  await withWorkers(env, activities, async () => (await start(env, { campaign: named({ arms: [] }) })).result());
  expect(given.filter((findings) => findings?.[0] === 'in play, by the agent: make is not a function')).toHaveLength(2);
  expect(given.filter((findings) => findings?.[0]?.includes('3 attempts ended with BadEnvironment'))).toHaveLength(2);
  expect(seen.record?.capabilities?.map((c) => [c.status, c.rounds.map((r) => r.selfTest.passed)])).toEqual([
    ['trained', [false, false, true]],
    ['trained', [false, false, true]],
  ]);
  type = 'PolicyAnswerInvalid';
  const second = await withWorkers(env, activities, async () =>
    (await start(env, { campaign: named({ arms: [] }) })).result().then(() => seen.record?.capabilities),
  );
  expect(second?.map(({ status }) => status)).toEqual(['failed', 'failed']);
});

test('a synthesizer that has nothing to give ends a capability as not synthesized, or as not calibrated after a calibration', async () => {
  const cannot = (message: string) =>
    ApplicationFailure.create({ type: 'CannotSynthesize', message, nonRetryable: true });
  const { activities, seen } = fakeActivities({
    synthesize: async ({ candidate, previous }) => {
      if (candidate.name === 'refuse_what_is_forbidden') throw cannot('no generator');
      if (previous) throw cannot('nothing to revise');
      return artifact(candidate.name);
    },
    calibrate: async () => calibration(false),
  });
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  expect(seen.record?.capabilities?.map((c) => [c.status, c.rounds.length, c.reason])).toEqual([
    ['not_synthesized', 0, 'no generator'],
    ['not_calibrated', 1, 'success rate 0.9 is above 0.6; nothing to revise'],
  ]);
  // Trace spent nothing, so there is nothing to be equal to: the arm is evaluated at its best.
  expect(seen.record?.arms?.[0]).toMatchObject({ status: 'done', best: { step: 2 } });
});

test('a labeling pass that fails for good is left out and told', async () => {
  const { activities, seen } = fakeActivities({
    label: async ({ pass }) => {
      if (pass === 3) throw failure('LabelsInvalid', 'the reply is no partition');
      return artifact(`labels-${pass}`);
    },
  });
  const select = jest.spyOn(activities, 'select');
  const campaign = named({ arms: [] });
  const progress = await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign, until: 'selection' });
    await handle.result();
    return handle.query<CampaignProgress>('progress');
  });
  expect(select.mock.calls[0]?.[0].labels).toHaveLength(9);
  expect(seen.record?.selection?.failedPasses).toEqual([
    { pass: 3, reason: 'LabelsInvalid: the reply is no partition' },
  ]);
  expect(progress.stages[1]?.detail).toContain('1 of 10 labeling passes failed');
});

test('an analyst that selects outright is not asked for labels', async () => {
  const { activities, seen } = fakeActivities({
    discover: async () => ({ ref: artifact('candidates'), selects: 'outright' }),
    label: async () => {
      throw fatal('asked for labels');
    },
  });
  const select = jest.spyOn(activities, 'select');
  await withWorkers(env, activities, async () =>
    (await start(env, { campaign: named(), until: 'selection' })).result(),
  );
  expect(select.mock.calls[0]?.[0].labels).toBeUndefined();
  expect(seen.record?.selection).toMatchObject({ labels: [], failedPasses: [], selected: [{}, {}] });
});

test('a policy that cannot be evaluated is a row of the report', async () => {
  const { activities, seen } = fakeActivities();
  const { rollOut } = activities;
  activities.rollOut = async (input) => {
    if (input.title === 'test: trace') throw fatal('none of the first rollouts was scored');
    return rollOut(input);
  };
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  expect(seen.record?.evaluation?.policies.map((p) => p.name)).not.toContain('trace');
  expect(seen.record?.evaluation?.failed).toEqual([
    { name: 'trace', reason: 'BadInput: none of the first rollouts was scored' },
  ]);
});

test('an option whose outcome matrix fails for good is left out of the router', async () => {
  const { activities, seen } = fakeActivities();
  const { rollOut } = activities;
  activities.rollOut = async (input) => {
    if (input.title === 'outcome matrix: tell_what_is_asked') throw fatal('its adapter has another rank');
    return rollOut(input);
  };
  const fitRouter = jest.spyOn(activities, 'fitRouter');
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  expect(fitRouter.mock.calls[0]?.[0].outcomes.map(({ option }) => option)).toEqual([
    'base',
    'refuse_what_is_forbidden',
  ]);
  expect(seen.record?.router).toMatchObject({
    router: artifact('router'),
    options: ['base', 'refuse_what_is_forbidden'],
    failed: [{ name: 'tell_what_is_asked', reason: 'BadInput: its adapter has another rank' }],
  });
  expect(seen.record?.evaluation?.policies.map((p) => p.name)).toContain('tell_what_is_asked');
  expect(seen.record?.evaluation?.policies.map((p) => p.name)).toContain('trace');
});

test('a router that can not be fitted ends no campaign: all but the routed policy is evaluated, and that says why', async () => {
  const { activities, seen } = fakeActivities({
    fitRouter: async () => {
      throw fatal('tasks: 1 different text');
    },
  });
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  const reason = 'the router was not fitted: BadInput: tasks: 1 different text';
  expect(seen.record?.router).toMatchObject({ reason, outcomes: [{ option: 'base' }, {}, {}, {}] });
  expect(seen.record?.router?.router).toBeUndefined();
  expect(seen.record?.evaluation?.policies.map((p) => p.name)).toEqual([
    'base',
    'refuse_what_is_forbidden',
    'tell_what_is_asked',
    'refuse_what_is_forbidden+tell_what_is_asked',
    'grpo_target',
  ]);
  expect(seen.record?.evaluation?.failed).toEqual([{ name: 'trace', reason }]);
});

describe('what is about the campaign as a whole is nobody’s result: it fails the campaign', () => {
  const damaged = (message: string) => failure('ArtifactDamaged', message);
  const innermost = (error: unknown): unknown => {
    let cause = error;
    while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
    return cause;
  };
  /** The campaign's failure, where this activity throws. */
  async function failureOf(replaced: Parameters<typeof fakeActivities>[0], change?: (all: Activities) => void) {
    const { activities, seen } = fakeActivities(replaced);
    change?.(activities);
    const campaign = named();
    const error = await withWorkers(env, activities, async () =>
      (await start(env, { campaign })).result().catch((failure: unknown) => failure),
    );
    expect(seen.record).toBeUndefined();
    return { error: innermost(error), campaign };
  }

  test('in a labeling pass', async () => {
    const label = async ({ pass }: { pass: number }) => {
      if (pass === 3) throw damaged('the candidates');
      return artifact(`labels-${pass}`);
    };
    const { error } = await failureOf({ label });
    expect(error).toMatchObject({ type: 'ArtifactDamaged', message: 'the candidates' });
  });

  test.each<FailureType>(['LanguageModelRejected', 'RepliesLost', 'BadInput'])(
    '%s in a labeling pass, as it would be of every other one',
    async (type) => {
      const label = async ({ pass }: { pass: number }) => {
        if (pass === 3) throw failure(type, 'analyst.apiKeyEnv');
        return artifact(`labels-${pass}`);
      };
      const { error } = await failureOf({ label });
      expect(error).toMatchObject({ type, message: 'analyst.apiKeyEnv' });
    },
  );

  test.each<FailureType>(['LanguageModelRejected', 'RepliesLost'])(
    '%s in a synthesis, and the same campaign started again ends',
    async (type) => {
      let away = true;
      const { activities, seen } = fakeActivities({
        synthesize: async ({ candidate, round }) => {
          if (away && candidate.name === 'tell_what_is_asked') throw failure(type, 'synthesizer: no credit');
          return artifact(`${candidate.name}-${round}`);
        },
      });
      const campaign = named({ arms: [] });
      await withWorkers(env, activities, async () => {
        const error: unknown = await (await start(env, { campaign })).result().catch((thrown: unknown) => thrown);
        expect(innermost(error)).toMatchObject({ type, message: 'synthesizer: no credit' });
        expect(seen.record).toBeUndefined();
        away = false;
        await (await start(env, { campaign })).result();
      });
      expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['trained', 'trained']);
    },
  );

  test('in a child, when the others have ended', async () => {
    let others = 0;
    let left = 0;
    let begun: () => void = () => undefined;
    const training = new Promise<void>((done) => (begun = done));
    const { error, campaign } = await failureOf({
      selfTest: async ({ module }) => {
        await training;
        if (!module.sha256.startsWith('refuse')) return { passed: true, findings: [] };
        // The test server now and then never ends a workflow that is cancelled while its activity fails.
        const { workflowId } = Context.current().info.workflowExecution!;
        const other = env.client.workflow.getHandle(
          workflowId.replace('refuse_what_is_forbidden', 'tell_what_is_asked'),
        );
        while ((await other.describe()).status.name === 'RUNNING') await sleep(50);
        throw damaged('the module');
      },
      train: async ({ name }) => {
        if (name !== 'grpo_target') throw fatal('not this one');
        others += 1;
        begun();
        try {
          for (;;) {
            Context.current().heartbeat({ kind: 'train', step: 1, steps: 4 });
            await sleep(50);
          }
        } finally {
          left += 1;
        }
      },
    });
    expect(error).toMatchObject({ type: 'ArtifactDamaged', message: 'the module' });
    expect([others, left]).toEqual([1, 1]);
    const arm = await env.client.workflow.getHandle(`${campaign.name}/arm/grpo_target`).describe();
    expect(arm.status.name).toBe('CANCELLED');
  });

  test.each<[title: string, type: FailureType]>([
    ['outcome matrix: tell_what_is_asked', 'ArtifactDamaged'],
    ['outcome matrix: refuse_what_is_forbidden+tell_what_is_asked', 'AdapterRefused'],
    ['test: grpo_target', 'PolicyServerWrong'],
  ])('in the batch %s: %s', async (title, type) => {
    const { error } = await failureOf({}, (activities) => {
      const { rollOut } = activities;
      activities.rollOut = async (input) => {
        if (input.title === title) throw failure(type, title);
        return rollOut(input);
      };
    });
    expect(error).toMatchObject({ type, message: title });
  });
});

test('every step has a limit on its silence', async () => {
  const { activities } = fakeActivities();
  const campaign = named();
  const history = await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    await handle.result();
    return handle.fetchHistory();
  });
  const scheduled = (history.events ?? []).flatMap(({ activityTaskScheduledEventAttributes: one }) => one ?? []);
  expect(scheduled.map(({ activityType }) => activityType?.name)).toContain('writeReport');
  expect(new Set(scheduled.map(({ heartbeatTimeout }) => Number(heartbeatTimeout?.seconds)))).toEqual(
    new Set([campaign.workers.heartbeatSeconds]),
  );
});

test('a capability that fails for good is a row of the report', async () => {
  const { activities, seen } = fakeActivities({
    selfTest: async ({ module }) =>
      module.sha256.startsWith('refuse')
        ? { passed: false, findings: ['doing nothing scores 1.0'] }
        : { passed: true, findings: [] },
  });
  const campaign = named({ calibration: { maxRounds: 2 } });
  const train = activities.train;
  activities.train = async (input) => {
    if (input.name === 'tell_what_is_asked') throw fatal('the model folder is gone');
    return train(input);
  };
  const result = await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  expect(seen.record?.capabilities?.map((c) => [c.status, c.reason, c.rounds.length])).toEqual([
    ['not_synthesized', 'doing nothing scores 1.0', 2],
    ['failed', 'BadInput: the model folder is gone', 1],
  ]);
  // In the list of workflows, what failed is no success: without a worker, and without the report.
  const ids = ['capability/refuse_what_is_forbidden', 'capability/tell_what_is_asked', 'arm/grpo_target'];
  const listed = await Promise.all(
    [campaign.name, ...ids.map((id) => `${campaign.name}/${id}`)].map(async (id) => {
      const { status, typedSearchAttributes } = await env.client.workflow.getHandle(id).describe();
      const outcome = defineSearchAttributeKey(searchAttributeNames.outcome, 'KEYWORD');
      return [status.name, typedSearchAttributes.get(outcome)];
    }),
  );
  expect(listed).toEqual([
    ['COMPLETED', 'completed'],
    ['COMPLETED', 'not_synthesized'],
    ['FAILED', 'failed'],
    ['COMPLETED', 'done'],
  ]);
  expect(result).toMatchObject({
    ...{ status: 'completed', verdict: 'Ship trace.', failed: ['tell_what_is_asked'] },
    children: [
      { status: 'not_synthesized' },
      { kind: 'capability', status: 'failed' },
      { kind: 'arm', status: 'done' },
    ],
  });
  expect(seen.record?.arms?.[0]?.iterations?.map(({ step }) => step)).toEqual([2, 4, 6, 8]);
});

test("Temporal's UI shows stages and children as two lists, and in the end what came out", async () => {
  const { activities } = fakeActivities();
  const { train } = activities;
  const campaign = named();
  const details = async () => {
    const handle = env.client.workflow.getHandle(campaign.name);
    return (await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails;
  };
  let during = '';
  activities.train = async (input) => {
    during ||= await details();
    return train(input);
  };
  const after = await withWorkers(env, activities, async () => {
    await (await start(env, { campaign })).result();
    return details();
  });
  expect(during).toMatch(/^- rollouts: done /);
  expect(during).toContain('- evaluation: waiting\n\n**Capabilities and arms**\n\n- refuse_what_is_forbidden: ');
  expect(after).toMatch(/^Ship trace\.\n\n- rollouts: done/);
});

test('an arm is compared at what trace really spent', async () => {
  const { activities, seen } = fakeActivities();
  const { rollOut } = activities;
  activities.rollOut = async (input) =>
    input.title.startsWith('grpo_target: held out') ? summary(input, 0.1 * Number(input.title.at(-1))) : rollOut(input);
  activities.selfTest = async ({ module }) => ({ passed: !module.sha256.startsWith('refuse'), findings: ['x'] });
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  // The later the better, but one of two capabilities was trained: half of the eight steps count.
  expect(seen.record?.arms?.[0]?.best).toMatchObject({ step: 4, rollouts: 4 * 32 * 16 });
});

test('an arm and a selected capability of one name end the campaign before anything is trained', async () => {
  const { activities, seen } = fakeActivities();
  const campaign = named({ arms: [{ kind: 'grpo_target', name: 'tell_what_is_asked' }] });
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    const message = 'arms: tell_what_is_asked is the name of a selected capability as well; give the arm another name';
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'BadInput', message } });
  });
  expect(seen.trainings).toEqual([]);
});

test('children wait while the campaign is paused', async () => {
  const { activities, seen } = fakeActivities();
  const { rollOut } = activities;
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  let begun: () => void = () => undefined;
  const atHeldOut = new Promise<void>((resolve) => (begun = resolve));
  activities.rollOut = async (input) => {
    if (input.title === 'base on the held-out train tasks') {
      begun();
      await held;
    }
    return rollOut(input);
  };
  const campaign = named();
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    await atHeldOut;
    await handle.signal('pause');
    release();
    for (;;) {
      const progress = await handle.query<CampaignProgress>('progress');
      if (progress.children.length === 3) {
        expect(progress.children.map(({ status }) => status)).toEqual(['waiting', 'waiting', 'waiting']);
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const synthesized = () => seen.rollOuts.some(({ purpose }) => purpose === 'calibration');
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect([synthesized(), seen.trainings.length]).toEqual([false, 0]);
    await handle.signal('resume');
    await handle.result();
    expect(synthesized()).toBe(true);
  });
});

test('an infrastructure failure is tried again; a bad input is not', async () => {
  let calls = 0;
  const { activities } = fakeActivities();
  const rollOut = activities.rollOut;
  activities.rollOut = async (input) => {
    if (calls++ < 3)
      throw ApplicationFailure.create({ type: 'PolicyServerUnavailable', message: 'connection refused' });
    return rollOut(input);
  };
  await withWorkers(env, activities, async () => (await start(env, { campaign: named(), until: 'rollouts' })).result());
  expect(calls).toBe(4);

  let attempts = 0;
  const broken = fakeActivities({
    prepare: async () => {
      attempts++;
      throw fatal('baseModel.path: no model');
    },
  });
  await withWorkers(env, broken.activities, async () => {
    const handle = await start(env, { campaign: named() });
    await expect(handle.result()).rejects.toMatchObject({ cause: { cause: { message: 'baseModel.path: no model' } } });
  });
  expect(attempts).toBe(1);
});

test('the best iteration by held-out success is kept, the first of equals', async () => {
  const { activities, seen } = fakeActivities();
  activities.rollOut = async (input) => summary(input, input.title.endsWith('step 2') ? 0.9 : 0.5);
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  expect(seen.record?.capabilities?.[0]?.trained?.best.step).toBe(2);
});

test('a child of an earlier run that is still ending is waited for', async () => {
  const { activities, seen } = fakeActivities();
  const candidate = { name: 'tell_what_is_asked', definition: 'x', examples: [] };
  activities.select = async () => ({ ref: artifact('s'), selected: [{ candidate, votes: 10 }] });
  const campaign = named({ arms: [] });
  await withWorkers(env, activities, async () => {
    const earlier = await env.client.workflow.start('campaign', {
      workflowId: `${campaign.name}/capability/${candidate.name}`,
      taskQueue: 'nobody polls it',
    });
    const handle = await start(env, { campaign });
    const failed = async () =>
      (await handle.fetchHistory()).events?.some((event) => event.startChildWorkflowExecutionFailedEventAttributes);
    while (!(await failed())) await new Promise((resolve) => setTimeout(resolve, 50));
    await earlier.terminate();
    await handle.result();
  });
  expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['trained']);
});
