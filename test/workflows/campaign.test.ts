/** The workflows under time skipping: what happens in which order, and what a failure becomes. */
import { Context, sleep } from '@temporalio/activity';
import { countWork } from '../../src/cli/check/work';
import type { RollOutInput } from '../../src/activities/types';
import type { FailureType } from '../../src/domain/failures';
import { searchAttributes } from '../../src/workflows/messages';
import { campaignsOn, latch, until } from './campaigns';
import { timeSkipping } from './environment';
import { type Activities, type ActivityName, artifact, failure, REFUSE, summary, TELL } from './fake-activities';
import { failing } from '../support/failing';

const { env, play, fail } = campaignsOn(timeSkipping);
const SUM = `${REFUSE}+${TELL}`;
const onTarget = { arms: [{ kind: 'grpo_target' }] };
const namesOf = (all: readonly { name: string }[] | undefined) => all?.map(({ name }) => name);

/** Batches with this title fail for good. */
const without =
  (title: string, error: Error) =>
  ({ rollOut }: Activities): Partial<Activities> => ({
    rollOut: async (input) => {
      if (input.title === title) throw error;
      return rollOut(input);
    },
  });

describe('a vLLM server is tried with adapters', () => {
  const vllm = { policyServer: { kind: 'vllm', url: 'http://gpu:8000' } };
  const reason = 'LoRA rank 16 is greater than max_lora_rank 8; start vLLM with --max-lora-rank 16';
  const refusing = { checkAdapters: () => Promise.reject(failure('AdapterRefused', reason)) };

  test('with all merged, once it is known how many there are', async () => {
    const { asked } = await play(vllm);
    expect(asked('checkAdapters').map(({ lora, merged }) => [lora.r, merged])).toEqual([
      [16, 1],
      [16, 2],
    ]);
  });

  test('before anything is spent, and not where nothing will be trained', async () => {
    const { reason: told, asked } = await fail(vllm, refusing);
    expect(told).toMatchObject({ type: 'AdapterRefused', message: reason });
    expect([...asked('checkBase'), ...asked('rollOut')]).toEqual([]);
    await play(vllm, refusing, { until: 'selection' });
  });
});

test('goes through every stage and reports it; every step has a limit on its silence', async () => {
  const { result, record, seen, handle, campaign } = await play(onTarget);
  expect(result.status).toBe('completed');
  expect(seen.trainings.map((t) => [t.name, t.steps]).sort()).toEqual([
    ['grpo_target', 8],
    [REFUSE, 4],
    [TELL, 4],
  ]);
  expect(record.capabilities?.map((c) => c.status)).toEqual(['completed', 'completed']);
  expect(namesOf(record.evaluation?.policies)).toEqual(['base', REFUSE, TELL, SUM, 'grpo_target', 'trace']);
  expect(seen.rollOuts.find(({ title }) => title === 'test: trace')?.policy).toEqual({ router: artifact('router') });
  expect(record.router).toMatchObject({ options: ['base', REFUSE, TELL, SUM], merged: [[REFUSE, TELL]] });
  // Both adapters as they are, with weight 1: the router's own tasks, and all test tasks.
  const merged = seen.rollOuts.filter(({ title }) => title.endsWith(SUM));
  const parts = record.capabilities?.flatMap(({ best }) => best!.policy.adapters);
  expect(merged.map(({ title, policy }) => [title, policy])).toEqual(
    ['outcome matrix', 'test'].map((what) => [`${what}: ${SUM}`, { base: 'base@1', adapters: parts }]),
  );
  const { events } = await handle.fetchHistory();
  const scheduled = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: one }) => one ?? []);
  expect(scheduled.map(({ activityType }) => activityType?.name)).toContain('writeReport');
  expect(new Set(scheduled.map(({ heartbeatTimeout }) => Number(heartbeatTimeout?.seconds)))).toEqual(
    new Set([campaign.workers.heartbeatSeconds]),
  );
});

test('`campaign check` counts the rollouts that the workflows ask for, of every purpose', async () => {
  const tasks = { train: 17, validation: 5, router: 11, test: 13 };
  const made: Record<string, number> = {};
  const count = (purpose: string, rollouts: number) => (made[purpose] = (made[purpose] ?? 0) + rollouts);
  const sizeOf = ({ tasks: set }: RollOutInput): number => (set.kind === 'plan' ? tasks[set.part] : set.count);
  const fields = {
    rollouts: { perTask: 3 },
    calibration: { seeds: 7, rolloutsPerSeed: 4 },
    training: { steps: 10, checkpointEvery: 3, groupsPerStep: 2, groupSize: 8 },
    validation: { seeds: 6, trials: 2 },
    router: { trials: 2 },
    evaluation: { trials: 4 },
    arms: [
      { kind: 'grpo_target' },
      { kind: 'environments' },
      { kind: 'environments', name: 'one', from: { capability: TELL } },
      { kind: 'environments', name: 'brought', from: { folder: '/somewhere' } },
    ],
  };
  const { campaign } = await play(fields, ({ prepare, train }) => ({
    prepare: async (input) => ({ ...(await prepare(input)), tasks }),
    rollOut: async (input) => {
      count(input.purpose, sizeOf(input) * input.attempts);
      return summary(input);
    },
    train: async (input) => {
      const trained = await train(input);
      count('training', trained.rollouts);
      return trained;
    },
  }));
  const planned = countWork({ campaign, tasks, capabilities: 2 }).purposes;
  expect(made).toEqual(Object.fromEntries(planned.map(({ purpose, rollouts }) => [purpose, rollouts.low])));
});

test('where no adapter gains anything none are added up, and it is said why', async () => {
  const { record, asked } = await play({}, { findGains: async () => ({ gaining: [] }) });
  const singles = ['base', REFUSE, TELL];
  const { router, evaluation } = record;
  expect(router).toMatchObject({ options: singles, merged: [] });
  expect(router!.notMerged).toMatch(
    /^when the router was fitted, none of the 2 adapters had gained beyond chance, .* raise validation.seeds$/,
  );
  expect(router!.policies.map(({ name }) => name)).toEqual(singles);
  expect(namesOf(evaluation?.policies)).toEqual([...singles, 'trace']);
  const { synthesized, target } = record.capabilities![0]!.validation!;
  const refs = ({ before, after }: typeof target) => ({ before: before.ref, after: after.ref });
  const onRouter = { before: artifact('outcome matrix: base'), after: artifact(`outcome matrix: ${REFUSE}`) };
  expect(asked('findGains')).toMatchObject([
    {
      confidence: 0.95,
      adapters: [{ name: REFUSE, own: refs(synthesized), target: [refs(target), onRouter] }, { name: TELL }],
    },
  ]);
});

describe('what fails for good is left out with its reason, and the rest is done', () => {
  test('a policy on the test tasks', async () => {
    const { record } = await play(
      {},
      without('test: trace', failure('BadInput', 'none of the first rollouts was scored')),
    );
    const { evaluation } = record;
    expect(namesOf(evaluation?.policies)).toEqual(['base', REFUSE, TELL, SUM]);
    expect(evaluation?.failed).toEqual([{ name: 'trace', reason: 'BadInput: none of the first rollouts was scored' }]);
  });

  test('an option whose outcomes there are none of: the router and sums do without it', async () => {
    const error = failure('BadInput', 'its adapter has another rank');
    const { record, asked } = await play({}, without(`outcome matrix: ${TELL}`, error));
    const options = ['base', REFUSE];
    expect(asked('fitRouter')[0]?.outcomes.map(({ option }) => option)).toEqual(options);
    expect(record.router).toMatchObject({
      ...{ router: artifact('router'), options },
      failed: [{ name: TELL, reason: 'BadInput: its adapter has another rank' }],
    });
    expect(namesOf(record.evaluation?.policies)).toEqual(['base', REFUSE, TELL, 'trace']);
  });

  test('a router: all but the routed policy is evaluated', async () => {
    const { record } = await play(onTarget, {
      fitRouter: () => Promise.reject(failure('BadInput', 'tasks: 1 different text')),
    });
    const reason = 'the router was not fitted: BadInput: tasks: 1 different text';
    expect(record.router).toMatchObject({ reason, policies: [{ name: 'base' }, {}, {}, {}] });
    expect(record.router?.router).toBeUndefined();
    expect(namesOf(record.evaluation?.policies)).toEqual(['base', REFUSE, TELL, SUM, 'grpo_target']);
    expect(record.evaluation?.failed).toEqual([{ name: 'trace', reason }]);
  });

  test('capabilities, which are no success in the list of workflows, without a worker and without the report', async () => {
    const fields = { ...onTarget, calibration: { maxRounds: 2 } };
    const { record, result, campaign } = await play(fields, ({ train }) => ({
      selfTest: async ({ module }) =>
        module.sha256.startsWith(REFUSE)
          ? { passed: false, findings: ['doing nothing scores 1.0'] }
          : { passed: true, findings: [] },
      train: async (input) => {
        if (input.name === TELL) throw failure('BadInput', 'the model folder is gone');
        return train(input);
      },
    }));
    expect(record.capabilities?.map((c) => [c.status, c.reason, c.rounds.length])).toEqual([
      ['not_trained', 'doing nothing scores 1.0', 2],
      ['failed', 'BadInput: the model folder is gone', 1],
    ]);
    const ids = ['', `/capability/${REFUSE}`, `/capability/${TELL}`, '/arm/grpo_target'];
    const listed = ids.map(async (id) => {
      const { status, typedSearchAttributes } = await env()
        .client.workflow.getHandle(campaign.name + id)
        .describe();
      return [status.name, typedSearchAttributes.get(searchAttributes.outcome)];
    });
    expect(await Promise.all(listed)).toEqual([
      ['COMPLETED', 'completed'],
      ['COMPLETED', 'not_trained'],
      ['FAILED', 'failed'],
      ['COMPLETED', 'completed'],
    ]);
    expect(result).toMatchObject({
      ...{ status: 'completed', verdict: 'Ship trace.', failed: [TELL] },
      children: [
        { status: 'not_trained' },
        { kind: 'capability', status: 'failed' },
        { kind: 'arm', status: 'completed' },
      ],
    });
    // Trace spent nothing, so there is nothing to be equal to: the arm is evaluated at its best.
    expect(record.arms).toMatchObject([
      { best: { step: 2 }, work: { iterations: [2, 4, 6, 8].map((step) => ({ step })) } },
    ]);
  });

  test('what fails after its training keeps that, which is spent: baselines are held to it', async () => {
    const ends = [`${REFUSE}: held out at step 2`, `${TELL}: held out on the target`, 'second: held out at step 2'];
    const fields = { arms: [{ kind: 'grpo_target' }, { kind: 'grpo_target', name: 'second' }] };
    const { record, campaign } = await play(fields, ({ rollOut }) => ({
      rollOut: async (input) => {
        if (ends.includes(input.title)) throw failure('RolloutsBroken', 'too many');
        return rollOut(input);
      },
    }));
    const rollouts = 4 * campaign.training.groupsPerStep * campaign.training.groupSize;
    const training = { steps: 4, rollouts };
    expect(record.capabilities).toMatchObject([
      { status: 'failed', work: { training, iterations: [] } },
      { status: 'failed', work: { training, iterations: [{ step: 2 }, { step: 4 }] } },
    ]);
    for (const one of record.capabilities!) expect(one).not.toHaveProperty('best');
    expect(record.arms).toMatchObject([
      { status: 'completed' },
      { status: 'failed', work: { training: { steps: 8 } } },
    ]);
    expect(record.router?.options).toEqual(['base']);
  });

  test.each<[what: string, types: Record<number, FailureType>, told: RegExp]>([
    ['an answer', { 3: 'LabelsInvalid' }, /; 1 of 10 labeling passes failed$/],
    ['a budget', { 7: 'AnswerInvalid', 8: 'BudgetSpent', 9: 'BudgetSpent' }, /; 3 of 10 .* failed: budget spent$/],
  ])('labeling passes that %s ends', async (_, types, told) => {
    const reason = 'the reply is no partition';
    const label = async ({ pass }: { pass: number }) => {
      if (types[pass]) throw failure(types[pass], reason);
      return artifact(`labels-${pass}`);
    };
    const { record, progress, asked } = await play({ selection: { passes: 10 } }, { label }, { until: 'selection' });
    const failed = Object.entries(types).map(([pass, type]) => ({ pass: Number(pass), reason: `${type}: ${reason}` }));
    expect(record.selection?.failedPasses).toEqual(failed);
    expect(asked('select')[0]?.labels).toHaveLength(10 - failed.length);
    expect((await progress()).stages[1]?.detail).toMatch(told);
  });
});

test('an analyst that selects outright is not asked for labels; it stops after the stage that it is told', async () => {
  const discover = async () => ({ ref: artifact('candidates'), selects: 'outright' as const });
  const { record, result, asked } = await play({}, { discover }, { until: 'selection' });
  expect(asked('label')).toEqual([]);
  expect(asked('select')[0]?.labels).toBeUndefined();
  expect(result).toMatchObject({ status: 'completed', stoppedAfter: 'selection' });
  const selected = [{ votes: 10 }, { votes: 10 }];
  expect(record).toMatchObject({ stoppedAfter: 'selection', selection: { labels: [], failedPasses: [], selected } });
  expect(record.capabilities).toBeUndefined();
  expect(asked('train')).toEqual([]);
});

test('a base model that can not work on the target stops the campaign before its rollouts, unless it is forced', async () => {
  const found = { rollouts: artifact('check'), problems: ['it knows no word'], warnings: ['no reward'] };
  const checkBase = async () => found;
  const stopped = await fail({}, { checkBase });
  expect(stopped.reason).toMatchObject(
    failing('BaseUnsuited', /can't work on this target: it knows no word\..*--force/, { nonRetryable: true }),
  );
  expect(stopped.asked('rollOut')).toEqual([]);
  const { record, progress, asked } = await play({}, { checkBase }, { until: 'rollouts', force: true });
  expect(record.baseCheck).toEqual(found);
  expect((await progress()).stages[0]?.detail).toBe('4 train tasks, base model; unsuited, but forced');
  // Asked for as the base rollouts are, so that these take its rollouts over.
  expect(asked('checkBase').map(({ rollouts }) => rollouts)).toEqual(asked('rollOut'));
});

describe('what is about the campaign as a whole is nobody’s result: it fails the campaign, with the way to go on', () => {
  const all = () => true;
  const titled = (title: string) => (input: unknown) => (input as RollOutInput).title === title;
  const second = (input: unknown) => (input as { pass: number }).pass === 1;
  test.each<[step: ActivityName, type: FailureType, when: (input: unknown) => boolean]>([
    ['prepare', 'BadInput', all],
    ['discover', 'BudgetSpent', all],
    ['label', 'ArtifactDamaged', second],
    ['label', 'BadInput', second],
    ['rollOut', 'BudgetSpent', titled('base rollouts')],
    ['rollOut', 'ArtifactDamaged', titled(`outcome matrix: ${TELL}`)],
    ['rollOut', 'BudgetSpent', titled('outcome matrix: base')],
    ['rollOut', 'PolicyServerWrong', titled(`test: ${TELL}`)],
  ])('%s: %s', async (step, type, when) => {
    let thrown = 0;
    const { reason, seen, asked, handle, campaign } = await fail({ budget: { tokens: 10 } }, (fakes) => ({
      [step]: async (input: unknown) => {
        if (!when(input)) return (fakes[step] as (given: unknown) => Promise<unknown>)(input);
        thrown += 1;
        throw failure(type, 'budget.tokens is 10');
      },
    }));
    expect(reason).toMatchObject({ type, message: 'budget.tokens is 10' });
    expect((await handle.describe()).status.name).toBe('FAILED');
    expect([thrown, seen.record]).toEqual([1, undefined]);
    const { name, budget } = campaign;
    for (const input of asked('rollOut')) expect(input).toMatchObject({ campaign: name, budget });
    // Nothing later is begun.
    const isTested = asked('rollOut').some(({ purpose }) => purpose === 'test');
    expect(isTested).toBe(type === 'PolicyServerWrong');
  });

  test('in a child, when the others have ended', async () => {
    let others = 0;
    let left = 0;
    const training = latch();
    const { reason, seen, child } = await fail(onTarget, {
      selfTest: async ({ module }) => {
        await training.opened;
        if (!module.sha256.startsWith('refuse')) return { passed: true, findings: [] };
        // The test server now and then never ends a workflow that is cancelled while its activity fails.
        const { workflowId } = Context.current().info.workflowExecution!;
        const other = env().client.workflow.getHandle(workflowId.replace(REFUSE, TELL));
        await until(async () => (await other.describe()).status.name !== 'RUNNING');
        throw failure('ArtifactDamaged', 'the module');
      },
      train: async ({ name }) => {
        if (name !== 'grpo_target') throw failure('BadInput', 'not this one');
        others += 1;
        training.open();
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
    expect(reason).toMatchObject({ type: 'ArtifactDamaged', message: 'the module' });
    expect([others, left, seen.record]).toEqual([1, 1, undefined]);
    expect((await child('grpo_target', 'arm').describe()).status.name).toBe('CANCELLED');
  });
});

test('an arm and a capability of one name end the campaign before anything is trained', async () => {
  const { reason, asked } = await fail({ arms: [{ kind: 'grpo_target', name: TELL }] });
  const message = `arms: ${TELL} is the name of a selected capability as well; give the arm another name`;
  expect(reason).toMatchObject({ type: 'BadInput', message });
  expect(asked('train')).toEqual([]);
});

test("Temporal's UI shows what an environment said, and renders none of it", async () => {
  const said = 'gone\n# Sign in\n![x](http://evil.example/p.png) <img src=x> [here](http://evil.example) \u001b[31m';
  const causes = [{ type: 'EnvironmentFailed', message: said, count: 1, task: said }];
  const { campaign } = await play({}, ({ rollOut }) => ({
    rollOut: async (input) => ({ ...(await rollOut(input)), broken: 1, causes }),
  }));
  const handle = env().client.workflow.getHandle(campaign.name);
  const metadata = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
  const details = metadata.currentDetails.replaceAll(/\\[!-/:-@[-`{-~]/g, '');
  expect(details).toContain('gone');
  expect(details).not.toMatch(/^#|!\[|<img|\]\(http:\/\/evil|http:\/\/evil/m);
  expect(details).not.toContain('\u001b');
});

test('the best iteration by held-out success is kept, the first of equals; of an arm only within what trace really spent', async () => {
  const fields = { ...onTarget, training: { steps: 6, checkpointEvery: 2 } };
  const rates: Record<string, number> = { [`${TELL}: held out at step 4`]: 0.9, [`${TELL}: held out at step 6`]: 0.9 };
  const { record } = await play(fields, {
    // The later the better, but one of two capabilities was trained: half of the twelve steps count.
    rollOut: async (input) => {
      const [, step] = /^grpo_target: held out at step (\d+)/.exec(input.title) ?? [];
      return summary(input, step ? 0.05 * Number(step) : (rates[input.title] ?? 0.3));
    },
    selfTest: async ({ module }) => ({ passed: !module.sha256.startsWith('refuse'), findings: ['x'] }),
  });
  expect(record.capabilities?.map(({ best }) => best?.step)).toEqual([undefined, 4]);
  expect(record.arms?.[0]?.best).toMatchObject({ step: 6, rollouts: 6 * 32 * 16 });
});
