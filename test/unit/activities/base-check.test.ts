/** Whether a base can work on a target: the judgement, and the step that asks for it with rollouts that are made once. */
import { join } from 'node:path';
import { createRolloutActivities } from '../../../src/activities';
import { EnvironmentPool } from '../../../src/activities/environments';
import { openFolderStore } from '../../../src/store/open-store';
import { judgeBase } from '../../../src/domain/base-check';
import { defineKind } from '../../../src/domain/kinds';
import type { Message } from '../../../src/domain/messages';
import type { HeartbeatDetails } from '../../../src/domain/work';
import type { ScoredRollout } from '../../../src/domain/rollout';
import type { EnvironmentKind } from '../../../src/environments/kinds';
import { registry } from '../../support/kinds';
import { readScored } from '../../../src/rollout/read';
import { putPlan, rollOutInput, run } from '../../support/activity-inputs';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { scriptedPolicy } from '../../support/scripted-policy';
import { scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';

const tools = ['look', 'add'];
const call = (name: string, given = {}): Message => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'c', name, arguments: given }],
});
const text = (content: string): Message => ({ role: 'assistant', content });

function rollout(n: number, reward: number, ...messages: Message[]): ScoredRollout {
  const user: Message = { role: 'user', content: `task ${n}` };
  return {
    ...(scoredRollout({ name: `r${n}`, task: `t${n}`, reward }) as ScoredRollout),
    messages: [user, ...messages],
  };
}
const six = (of: (n: number) => Message[], reward = (n: number) => n % 2): ScoredRollout[] =>
  Array.from({ length: 6 }, (_, n) => rollout(n, reward(n), ...of(n)));
/** Each does something else, with calls. */
const sound = six((n) => [call('look'), call('add', { n }), text('done')]);

describe('the judgement', () => {
  const all = (content: string) => () => [text(content)];
  const silent = six((n) => [text(`sorry ${n}`)]);
  const hard = sound.map((one) => ({ ...one, reward: 0 }));
  type Case = [what: string, given: Partial<Parameters<typeof judgeBase>[0]>, problems?: number, warnings?: number];
  test.each<Case>([
    ['acts on the target', {}],
    ['calls no tool that is offered', { rollouts: silent }, 1],
    ['calls another instead', { rollouts: six((n) => [call('lookup'), text(`sorry ${n}`)]) }, 1],
    ['talks where there are no tools', { rollouts: silent, tools: [] }],
    ['solves all tasks by what it likes', { rollouts: six(all('no'), () => 1) }],
    ['has three rollouts, which say nothing', { rollouts: six(all('no')).slice(0, 3) }],
    ['gets no reward at all, which is no reason to stop', { rollouts: hard }, 0, 1],
  ])('of a base that %s', (_, given, problems = 0, warnings = 0) => {
    const judged = judgeBase({ rollouts: sound, tools, ...given });
    expect([judged.problems.length, judged.warnings.length]).toEqual([problems, warnings]);
  });
});

describe('the step', () => {
  const home = temporaryFolder();
  const counting: EnvironmentKind = defineKind({
    ...{ kind: 'counting', version: '1', options: {} },
    open: () => countingEnvironment({ maxSteps: 40 }),
  });
  let opened = 0;

  async function step(client: ReturnType<typeof scriptedPolicy>) {
    const store = openFolderStore(join(home, `${opened++}`));
    const kinds = { ...registry, environments: [counting] };
    const environments = new EnvironmentPool(store, kinds.environments);
    const activities = createRolloutActivities({ store, environments, kinds, home, python: '', client });
    const plan = await putPlan(
      store,
      Array.from({ length: 20 }, (_, n) => `n-${n + 1}`),
    );
    const rollouts = rollOutInput(plan, {
      store: await store.id(),
      ...{ environment: { kind: 'counting' }, policy: { base: 'base@8facfb00a73e', adapters: [] } },
      ...{ attempts: 2, maxSteps: 40, concurrency: 8, maxBrokenShare: 0.1 },
    });
    const beats: HeartbeatDetails[] = [];
    const found = await run(activities.checkBase, { store: rollouts.store, rollouts }, { beats });
    return { found, beats, store, rollOut: () => run(activities.rollOut, rollouts) };
  }

  test('sixteen rollouts of base rollouts, once each, that these take over', async () => {
    const client = countingPolicy();
    const { found, beats, store, rollOut } = await step(client);
    expect(beats.at(-1)).toMatchObject({ kind: 'rollouts', title: 'base model check', done: 16, total: 16 });
    const turns = client.turns;
    const { scored, ref } = await rollOut();
    expect(scored).toBe(40);
    const [all, first] = [await readScored({ store, ref }), await readScored({ store, ref: found.rollouts })];
    expect(first.map(({ attempt }) => attempt)).toEqual(Array(16).fill(0));
    // With the seconds that they took: they were not played again.
    expect(all).toEqual(expect.arrayContaining(first));
    expect((await store.provenance(ref)).inputs).toContainEqual(found.rollouts);
    const steps = (of: ScoredRollout[]) => of.reduce((sum, one) => sum + one.steps, 0);
    expect([turns, client.turns]).toEqual([steps(first), steps(all)]);
    expect(found.problems).toEqual([]);
  });
});
