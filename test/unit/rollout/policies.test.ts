/** What a policy is besides its adapters: a router that chooses for each conversation, and a prompt. */
import { z } from 'zod';
import type { ArtifactStore } from '../../../src/store/store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { OutsideFailure } from '../../../src/domain/failures';
import { defineKind } from '../../../src/domain/kinds';
import type { FixedPolicy, Prompt, ScoredRollout } from '../../../src/domain/rollout';
import type { TurnRequest } from '../../../src/policy/wire';
import type { RollOutOptions } from '../../../src/rollout/engine';
import { put } from '../../support/activity-inputs';
import { played } from '../../support/played';
import { withPrompt } from '../../../src/rollout/play';
import { createResolver } from '../../../src/rollout/resolve';
import type { ChooseInput, ChosenOption, FittedRouter, RouterKind } from '../../../src/routing/router';
import { temporaryStore } from '../../support/temporary-store';
import { countingBatch, damagedIn } from '../../support/counting-batch';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';

let store: ArtifactStore;
let asked: TurnRequest[];
temporaryStore((made) => {
  store = made;
  asked = [];
});

const adapter = (sha256: string): ArtifactRef => ({ uri: `artifact-tree:${sha256}`, sha256, bytes: 1, mediaType: 'x' });
const base: FixedPolicy = { base: 'b', adapters: [] };
const adds: FixedPolicy = { base: 'b', adapters: [{ ref: adapter('adds'), weight: 1 }] };

const options = (changes: Partial<RollOutOptions> = {}): RollOutOptions =>
  countingBatch(store, {
    environment: countingEnvironment({ system: ['the rules'] }),
    policy: base,
    attempts: 1,
    concurrency: 2,
    client: countingPolicy((request) => void asked.push(request)),
    ...changes,
  });

const none = { mean: 0, standardError: 0, n: 1 };
const fitted = (changes: Partial<FittedRouter> = {}): FittedRouter => ({
  maker: { kind: 'by-task', version: '1', options: { letter: 'n' } },
  options: [
    { name: 'base', policy: base },
    { name: 'adds', policy: adds },
  ],
  crossValidation: {
    helps: true,
    routed: none,
    base: none,
    bestSingle: { option: 'base', ...none },
    unionCeiling: none,
  },
  parameters: {},
  ...changes,
});

const stored = async (value: object): Promise<{ router: ArtifactRef }> => ({
  router: await put(store, JSON.stringify(value), JSON.stringify(value)),
});

/** A kind that chooses by a function, and remembers what it was opened with and asked. */
function byTask(choose: (input: ChooseInput) => unknown) {
  const seen: { opened: object[]; asked: ChooseInput[] } = { opened: [], asked: [] };
  const kind: RouterKind = defineKind({
    kind: 'by-task',
    version: '1',
    options: { letter: z.string() },
    open(given, identity) {
      seen.opened.push(given);
      return {
        identity,
        fit: () => Promise.reject(new Error('not fitted here')),
        choose: async (input) => {
          seen.asked.push(input);
          return choose(input) as ChosenOption;
        },
      };
    },
  });
  const context = { python: 'python', client: countingPolicy() };
  return { seen, resolve: createResolver({ store, routers: [kind], context }) };
}

const choiceOf = ({ messages }: ChooseInput): ChosenOption => ({
  chosen: messages.at(-1)!.content === 'n-1' ? 'adds' : 'base',
  probabilities: { base: 0.5, adds: 0.4 },
});

test('the chosen policy plays the conversation, and the record says which it was', async () => {
  const { seen, resolve } = byTask(choiceOf);
  const policy = await stored(fitted());
  const { records, summary } = await played(options({ policy, resolve, attempts: 3 }));
  expect(summary).toMatchObject({ scored: 9, broken: 0 });
  for (const { task, routed, messages } of records as ScoredRollout[]) {
    const [chosen, policy] = task === 'n-1' ? ['adds', adds] : ['base', base];
    const probabilities: unknown = expect.anything();
    expect(routed).toEqual({ chosen, policy, probabilities });
    const said = [
      { role: 'system', content: 'the rules' },
      { role: 'user', content: task },
    ];
    expect(messages.slice(0, 2)).toEqual(said);
  }
  for (const request of asked) {
    expect(request.policy).toEqual(request.messages[1]!.content === 'n-1' ? adds : base);
  }
  expect(seen.opened).toEqual([{ letter: 'n' }]);
  expect(seen.asked).toHaveLength(9);
  expect(new Set(seen.asked.map(({ seed }) => seed)).size).toBe(9);
  expect(seen.asked[0]).toMatchObject({ fitted: fitted(), tools: [{ name: 'look' }, { name: 'add' }] });
  expect((await store.provenance(summary.ref)).inputs).toContainEqual(policy.router);
});

test('a rollout that a router has no choice for is broken and counted, and never played by another policy', async () => {
  const { resolve } = byTask((input) => {
    if (input.messages.at(-1)!.content === 'n-1') throw new Error('no idea');
    return choiceOf(input);
  });
  const { summary, records } = await played(options({ policy: await stored(fitted()), resolve, concurrency: 1 }));
  expect(summary).toMatchObject({ scored: 2, broken: 1, errors: { RouterFailed: 1 } });
  expect(records[1]).toMatchObject({
    task: 'n-1',
    status: 'broken',
    error: { message: expect.stringContaining('no idea') },
  });
  expect(asked.filter(({ messages }) => messages[1]!.content === 'n-1')).toEqual([]);
});

test.each<[string, () => unknown, Partial<FittedRouter>]>([
  ['a router answers with chosen and probabilities', () => undefined, {}],
  ['chosen "stranger" is none of its options', () => ({ chosen: 'stranger', probabilities: {} }), {}],
  ['probabilities.base', () => ({ chosen: 'base', probabilities: { base: NaN } }), {}],
  ['fitted by by-task 2', () => undefined, { maker: { kind: 'by-task', version: '2', options: { letter: 'n' } } }],
  ['has another form than expected', () => undefined, { options: [] }],
])('a router is refused by name: %s', async (problem, choose, changes) => {
  const { resolve } = byTask(choose);
  const run = played(options({ policy: await stored(fitted(changes)), resolve }));
  await expect(run).rejects.toMatchObject({ type: 'RouterFailed', message: expect.stringContaining(problem) });
  expect(asked).toEqual([]);
});

test('a policy server that a router waits for is not the router’s failure', async () => {
  let down = 2;
  const { resolve } = byTask((input) => {
    if (down-- > 0) throw new OutsideFailure('PolicyServerError', 'going down');
    return choiceOf(input);
  });
  const { summary } = await played(
    options({ policy: await stored(fitted()), resolve, concurrency: 1, maxAttempts: 3 }),
  );
  expect(summary).toMatchObject({ scored: 3, broken: 0 });
});

test('a router that is damaged in the store fails the batch and breaks no rollout, also where some are scored', async () => {
  const policy = await stored(fitted());
  await played(options({ policy, resolve: byTask(choiceOf).resolve, tasks: ['n-0'] }));
  store = damagedIn(store, policy.router);
  const { resolve } = byTask(choiceOf);
  await expect(played(options({ policy, resolve }))).rejects.toMatchObject({ type: 'ArtifactDamaged' });
});

const prompt = (place: Prompt['place']): Prompt => ({ text: 'be brief', place });
const [rules, more, user] = [
  { role: 'system', content: 'the rules' },
  { role: 'system', content: 'more rules' },
  { role: 'user', content: 'n-1' },
] as const;
test.each([
  ['before', [rules, user], [{ role: 'system', content: 'be brief\n\nthe rules' }, user]],
  ['before', [user], [{ role: 'system', content: 'be brief' }, user]],
  ['instead', [rules, more, user], [{ role: 'system', content: 'be brief' }, user]],
  ['instead', [user, more], [user, { role: 'system', content: 'be brief' }]],
] as const)('a prompt %s of %j', (place, opening, seen) => {
  expect(withPrompt(opening, prompt(place))).toEqual(seen);
});

test('the policy sees its prompt in every turn; the record holds what the environment said', async () => {
  const plain = await played(options());
  asked = [];
  const prompted = await played(options({ policy: { ...base, prompt: prompt('before') } }));
  expect(asked.length).toBeGreaterThan(6);
  for (const { messages } of asked) {
    expect(messages[0]).toEqual({ role: 'system', content: 'be brief\n\nthe rules' });
    expect(messages.filter(({ role }) => role === 'system')).toHaveLength(1);
  }
  const said = ({ records }: typeof plain) => (records as ScoredRollout[]).map(({ messages }) => messages);
  expect(said(prompted)).toEqual(said(plain));
  expect(prompted.summary.ref).not.toEqual(plain.summary.ref);
  // Training sees what was sampled from.
  expect(prompted.summary.promptTokens).toBeGreaterThan(plain.summary.promptTokens);
});
