/** What the examples say of themselves: the files stay small, and each does what it claims. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { byLength } from '../../examples/by-length';
import { phrases } from '../../examples/phrases';
import { checkModule } from '../../src/cli/environment-check';
import type { Message } from '../../src/domain/messages';
import type { ScoredRollout } from '../../src/domain/rollout';
import { checkPartition } from '../../src/domain/selection';
import { createShop } from '../../src/environments/shop/shop';
import { openModule, play } from '../../src/sandbox/module';
import type { FitInput, FittedRouter } from '../../src/routing/router';
import { noLedger } from '../support/no-ledger';
import { scoredRollout } from '../support/scored-rollout';

const examples = resolve(__dirname, '..', '..', 'examples');
const { signal } = new AbortController();
const work = { progress: () => undefined, signal, ledger: noLedger };
const user = (content: string): Message => ({ role: 'user', content });
const agent = (content: string): Message => ({ role: 'assistant', content });

const MODULE = 'modules/refuse_forbidden_actions.js';

test.each(['phrases.ts', 'fixed-prompt.ts', 'by-length.ts', MODULE])('%s is a file of fewer than 60 lines', (file) => {
  expect(readFileSync(resolve(examples, file), 'utf8').trimEnd().split('\n').length).toBeLessThan(60);
});

describe('refuse_forbidden_actions', () => {
  const file = resolve(examples, MODULE);
  const source = readFileSync(file, 'utf8');

  test('passes `campaign env check`', async () => {
    const { episode, ...found } = await checkModule({ file, say: () => undefined });
    expect(found).toEqual({ passed: true, static: [], selfTest: [] });
    expect(episode).toMatchObject({ reward: 1, branch: 'special' });
  }, 60_000);

  test("has twins, levels of reward, shortcuts and a hint, and the target's own tools", async () => {
    const module = openModule({ source });
    const { tools } = await createShop().describe();
    const offered = (await module.describe()).tools;
    expect(offered).toEqual(offered.map(({ name }) => tools.find((one) => one.name === name)));
    const [special, twin] = await Promise.all([0, 1].map(async (seed) => module.start(await module.make(seed))));
    expect(special).toEqual(twin);
    const { always = [], never = [] } = await module.shortcuts(0);
    const rewards = [always, never, always.slice(0, 1), always.slice(1)].map(async (script) =>
      [0, 1].map(async (seed) => (await play(module, { seed, script })).reward),
    );
    const played = await Promise.all(rewards.map(async (each) => Promise.all(await each)));
    expect(played).toEqual([
      [1, 0.1],
      [0.1, 1],
      [0.1, 0.1],
      [0, 0],
    ]);
    const hints = await Promise.all([0, 1].map(async (seed) => module.hint(await module.make(seed))));
    expect(hints).toEqual(['the status says no : say not allowed .', 'the status says yes : do as asked .']);
    await module.close();
  });
});

describe('phrases', () => {
  const description = { name: 'x', version: '1', policy: '', tools: [], maxSteps: 1, hasReference: false };
  const spec = {
    kind: 'phrases',
    name: 'say_please',
    definition: 'Asked nicely?',
    occasion: 'nicely',
    phrase: 'please',
  };
  const rollout = (name: string, reward: number, messages: Message[]) =>
    ({ ...scoredRollout({ name, task: name, reward }), messages }) as ScoredRollout;
  const rollouts = Array.from({ length: 10 }, (_, n) => [
    rollout(`present-${n}`, 1, [user('ask nicely'), agent('please')]),
    // Said before there was an occasion.
    rollout(`lacking-${n}`, 0, [agent('please'), user('ask nicely'), agent('no')]),
    rollout(`na-${n}`, 0, [user('ask'), agent('nicely')]),
  ]).flat();
  const nameOf = (key: string) => Buffer.from(key, 'hex').toString().replace(/\0+$/, '');

  test('labels follow the words, in passes over different halves', async () => {
    const analyst = await phrases.open(spec, undefined);
    const { candidates } = await analyst.discover({
      ...work,
      seed: 1,
      rollouts,
      description,
      rule: { maxCandidates: 10 },
      quotable: new Set(rollouts.map(({ key }) => key).filter((key) => nameOf(key) !== 'lacking-0')),
    });
    expect(candidates.map(({ name, examples: keys }) => [name, keys.map(nameOf)])).toEqual([
      ['say_please', ['lacking-1', 'lacking-2', 'present-0', 'present-1']],
    ]);
    const passes = await Promise.all(
      [0, 1].map((pass) => analyst.label({ ...work, rollouts, description, candidates, pass, seed: 1 })),
    );
    expect(passes.flatMap(checkPartition)).toEqual([]);
    expect(passes[0]).not.toEqual(passes[1]);
    for (const { totals, labels } of passes) {
      expect(totals.total_failed + totals.total_passed).toBeLessThan(rollouts.length);
      for (const [list, keys] of Object.entries(labels['say_please']!)) {
        const label = { lacking_failed: 'lacking', na_failed: 'na', present_passed: 'present' }[list];
        expect(keys.map((key) => nameOf(key).split('-')[0])).toEqual(keys.map(() => label));
      }
    }
  });
});

describe('by_length', () => {
  const router = byLength.open(
    { kind: 'by_length' },
    { python: '', client: { sample: () => Promise.reject(), likeliest: () => Promise.reject() } },
  );
  const options = ['base', 'other'].map((name) => ({ name, policy: { base: name, adapters: [] } }));
  /** Twelve tasks of 1 to 12 words. */
  const tasks = (outcome: (words: number) => [base: number, other: number]): FitInput['tasks'] =>
    Array.from({ length: 12 }, (_, n) => {
      const [base, other] = outcome(n + 1);
      const messages = [user(Array.from({ length: n + 1 }, () => 'word').join(' '))];
      return { id: `task-${String(n).padStart(2, '0')}`, messages, outcomes: { base: [base], other: [other] } };
    });
  const fit = (given: FitInput['tasks']) => router.fit({ ...work, options, tasks: given, seed: 1 });

  test('short and long requests go where they were better', async () => {
    const found = await fit(tasks((words) => (words <= 6 ? [1, 0] : [0, 1])));
    expect(found).toMatchObject({
      crossValidation: {
        helps: true,
        base: { mean: 0.5, n: 12 },
        bestSingle: { option: 'base', mean: 0.5 },
        unionCeiling: { mean: 1, standardError: 0 },
      },
    });
    expect(found.constant).toBeUndefined();
    expect(found.crossValidation.routed.mean).toBeGreaterThan(0.8);
    const fitted: FittedRouter = { ...found, maker: router.identity, options };
    const chosen = async (text: string) =>
      (await router.choose({ fitted, messages: [user(text)], tools: [], seed: 1, signal })).policy.base;
    expect([await chosen('word word'), await chosen('word '.repeat(12).trim())]).toEqual(['base', 'other']);
  });

  test('where length says nothing, everything goes to the better one', async () => {
    const found = await fit(tasks((words) => [words % 3 === 0 ? 1 : 0, 1]));
    expect(found.constant).toBe('other');
    expect(found.crossValidation).toMatchObject({ helps: false, routed: { mean: 1 }, bestSingle: { mean: 1 } });
  });
});
