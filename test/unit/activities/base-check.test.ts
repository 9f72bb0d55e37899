/** Whether a base can work on a target: the judgement, and the step that asks for it with rollouts that are made once. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createRolloutActivities } from '../../../src/activities';
import { EnvironmentPool } from '../../../src/activities/environments';
import type { RollOutInput } from '../../../src/activities/types';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { judgeBase, unsuitedText, type TokenCounts } from '../../../src/domain/base-check';
import { behaviourOf, onlyBehaviour } from '../../../src/domain/transcript';
import type { Message } from '../../../src/domain/messages';
import type { RolloutHeartbeat } from '../../../src/domain/work';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { createEnvironmentKind } from '../../support/counting-kind';
import { registry } from '../../../src/registry';
import { readScored } from '../../../src/rollout/read';
import { countingPolicy } from '../../support/counting-environment';
import { scriptedPolicy } from '../../support/scripted-policy';
import { scoredRollout } from '../../support/scored-rollout';

const known: TokenCounts = { tokens: 100, unknown: 0, words: [] };
// Python takes seconds where the machine is busy.
jest.setTimeout(60_000);
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
  test('a base that acts on the target has nothing against it', () => {
    expect(judgeBase({ tokens: known, rollouts: sound, tools })).toEqual({ problems: [], warnings: [] });
  });

  test('unknown tokens: more than a tenth, with the share, the figures and the words', () => {
    const words = [
      { word: 'You', count: 9 },
      { word: 'would', count: 2 },
    ];
    const judged = (unknown: number) => judgeBase({ tokens: { tokens: 110, unknown, words }, rollouts: sound, tools });
    expect(judged(11).problems).toEqual([]);
    expect(judged(12).problems).toEqual([
      `11% of the target's text (12 of 110 tokens) is unknown to the base's tokenizer, most often "You", "would"; the limit is 10%: ` +
        "take a base whose vocabulary has the target's words (baseModel.path)",
    ]);
  });

  test('a folder without tokenizer.json says nothing against its base', () => {
    const tokens = { tokens: 0, unknown: 0, words: [] };
    expect(judgeBase({ tokens, rollouts: sound, tools }).problems).toEqual([]);
  });

  test('the same conversation in every task, whatever its ids and white space', () => {
    const rollouts = six((n) => [call('look'), text(n % 2 ? 'sorry  .' : ' sorry .')]);
    const { problems } = judgeBase({ tokens: known, rollouts, tools });
    expect(problems).toEqual([
      expect.stringMatching(/^6 rollouts of as many different tasks all say the same: "look\(\{\}\) \/ sorry \."/),
    ]);
    const others = [...rollouts.slice(1), rollout(0, 0, call('look', { n: 1 }), text('sorry .'))];
    expect(judgeBase({ tokens: known, rollouts: others, tools }).problems).toEqual([]);
  });

  test('no call of a tool that is offered, and what is called instead', () => {
    const silent = six((n) => [text(`sorry ${n}`)]);
    const [problem] = judgeBase({ tokens: known, rollouts: silent, tools }).problems;
    expect(problem).toMatch(/^none of 6 rollouts calls a tool that the target offers, such as look, add: /);
    const wrong = six((n) => [call('lookup'), text(`sorry ${n}`)]);
    expect(judgeBase({ tokens: known, rollouts: wrong, tools }).problems[0]).toContain('(they call lookup)');
    expect(judgeBase({ tokens: known, rollouts: silent, tools: [] }).problems).toEqual([]);
  });

  test('a base that solves all tasks may say what it likes, and three rollouts say nothing', () => {
    const same = six(
      () => [text('no')],
      () => 1,
    );
    expect(judgeBase({ tokens: known, rollouts: same, tools }).problems).toEqual([]);
    const few = six(() => [text('no')]).slice(0, 3);
    expect(judgeBase({ tokens: known, rollouts: few, tools }).problems).toEqual([]);
  });

  test('no reward at all is a warning, not a reason to stop', () => {
    const hard = sound.map((one) => ({ ...one, reward: 0 }));
    const { problems, warnings } = judgeBase({ tokens: known, rollouts: hard, tools });
    expect(problems).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/^none of 6 rollouts got any reward/)]);
    const partial = hard.map((one, n) => ({ ...one, reward: n === 3 ? 0.1 : 0 }));
    expect(judgeBase({ tokens: known, rollouts: partial, tools }).warnings).toEqual([]);
    expect(judgeBase({ tokens: known, rollouts: [], tools })).toEqual({ problems: [], warnings: [] });
  });

  test('the message of a campaign that is stopped holds every problem and the way on', () => {
    const said = unsuitedText({ problems: ['one', 'two'] });
    expect(said).toMatch(/can't work on this target: one; two\..*--force/);
  });

  test('behaviour is what the agent says and calls, of at least two conversations', () => {
    expect(behaviourOf([{ role: 'user', content: 'hello' }, call('add', { n: 1 }), text(' a  b ')])).toBe(
      'add({"n":1}) / a b',
    );
    expect(onlyBehaviour([{ messages: [] }, { messages: [{ role: 'user', content: 'x' }] }])).toBe('');
    expect(onlyBehaviour([{ messages: [text('a')] }])).toBe(undefined);
    expect(onlyBehaviour([{ messages: [text('a')] }, { messages: [text('b')] }])).toBe(undefined);
  });
});

describe('the step', () => {
  const home = mkdtempSync(join(tmpdir(), 'base-check-'));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  const model = resolve(__dirname, '../../..', 'models', 'base');
  const base = 'base@8facfb00a73e';
  const python = resolve(__dirname, '../../..', '.venv', 'bin', 'python');
  let opened = 0;

  async function step(client: ReturnType<typeof scriptedPolicy>, over: { model?: string | undefined } = { model }) {
    const store = openFolderStore(join(home, `${opened++}`));
    const kinds = { ...registry, environments: [createEnvironmentKind()] };
    const environments = new EnvironmentPool(store, kinds.environments);
    const activities = createRolloutActivities({ store, environments, kinds, home, python, client, ...over });
    const train = Array.from({ length: 20 }, (_, n) => `n-${n + 1}`);
    const plan = { train, validation: ['x'], router: ['y'], test: ['z'] };
    const body = JSON.stringify(plan);
    const ref = await store.put({ key: 'plan', producer: 'test', inputs: [], mediaType: 'application/json', body });
    const rollouts: RollOutInput = {
      ...{
        purpose: 'base_rollouts',
        title: 'base rollouts',
        seed: 3,
        maxSteps: 40,
        concurrency: 8,
        maxAttempts: 1,
        maxBrokenShare: 0.1,
        campaign: 'one',
        budget: {},
      },
      environment: { kind: 'counting' },
      policy: { base, adapters: [] },
      tasks: { kind: 'plan', plan: ref, part: 'train' },
      attempts: 2,
      sampling: { temperature: 0.7, topP: 1, maxTokens: 8 },
    };
    const beats: RolloutHeartbeat[] = [];
    const run = <I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> => {
      const environment = new MockActivityEnvironment();
      environment.on('heartbeat', (beat: RolloutHeartbeat) => beats.push(beat));
      return environment.run(activity, input) as Promise<O>;
    };
    const found = await run(activities.checkBase, { base, rollouts });
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
    // The counting environment's words are no words of the base.
    expect(found.problems).toEqual([expect.stringMatching(/is unknown to the base's tokenizer/)]);
  });

  test('a worker with another base model, or none, plays nothing and leaves the step to others', async () => {
    const client = countingPolicy();
    for (const [of, has] of [
      [home, 'no model there'],
      [undefined, 'which is not set'],
    ] as const)
      await expect(step(client, { model: of })).rejects.toMatchObject({
        type: 'WrongBaseModel',
        nonRetryable: false,
        message: expect.stringMatching(
          new RegExp(`wants ${base}, and worker .* has CAMPAIGN_MODEL=${of ?? ''}, .*${has}`),
        ),
      });
    expect(client.turns).toBe(0);
  });

  test('a policy that says one sentence is found out', async () => {
    const { found } = await step(scriptedPolicy(() => ({ role: 'assistant', content: 'sorry .' })));
    expect(found.problems).toEqual([
      expect.stringMatching(/unknown to the base's tokenizer, most often .*"count"/),
      expect.stringMatching(/^16 rollouts of as many different tasks all say the same: "sorry \."/),
      expect.stringMatching(/^none of 16 rollouts calls a tool that the target offers, such as look, add/),
    ]);
    expect(found.warnings).toEqual([expect.stringMatching(/^none of 16 rollouts got any reward/)]);
  });
});
