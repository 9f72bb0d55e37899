import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactStore } from '../../../src/store/store';
import { evaluationSchema } from '../../../src/domain/environment';
import type { ScoredRollout } from '../../../src/domain/rollout';
import type { RollOutProgress } from '../../../src/rollout/attempts';
import { rollOut, type RollOutOptions } from '../../../src/rollout/engine';
import { played } from '../../support/played';
import type { TurnRequest } from '../../../src/policy/wire';
import { OutsideFailure } from '../../../src/domain/failures';
import { planBatch } from '../../../src/rollout/batch';
import { readOutcomes, readRecords } from '../../../src/rollout/read';
import { outcomesSchema } from '../../../src/domain/outcomes';
import { countingBatch, damagedIn, failingEnvironment, withFiles } from '../../support/counting-batch';
import { namesIn } from '../../support/faults-home';
import { temporaryStore } from '../../support/temporary-store';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';

let root: string;
let store: ArtifactStore;
temporaryStore((made, folder) => {
  store = made;
  root = folder;
});

const options = (changes: Partial<RollOutOptions> = {}) => countingBatch(store, changes);

/** Unfinished batches that have chunks. */
const unfinished = () => namesIn(join(root, 'chunks', 'one'));

test('a batch holds every rollout, sorted by task and attempt, and its figures', async () => {
  const { summary, records: made, reused } = await played(options());
  const all = (await readRecords({ store, ref: summary.ref })) as ScoredRollout[];
  expect(made).toEqual(all);
  const planned = ['n-0/0', 'n-0/1', 'n-1/0', 'n-1/1', 'n-2/0', 'n-2/1'];
  expect([reused, all.map(({ task, attempt }) => `${task}/${attempt}`)]).toEqual([0, planned]);
  expect(summary).toMatchObject({
    ...{ purpose: 'test', title: 'a batch', scored: 6, broken: 0, meanReward: 1, successRate: 1 },
    completionTokens: all.reduce((sum, { usage }) => sum + usage.completionTokens, 0),
  });
  expect((await store.provenance(summary.ref)).producer).toBe('rollouts: a batch');
  const last = all.at(-1)!;
  const ended = { status: 'scored', steps: 4, stopReason: 'user_stop', reward: 1, breakdown: { count: 2 } };
  expect(last).toMatchObject(ended);
  const roles = 'user assistant tool assistant tool assistant tool assistant user';
  expect(last.messages.map(({ role }) => role).join(' ')).toBe(roles);
});

test('outcomes are stored beside a batch, and read from it where they are damaged', async () => {
  const { summary, records: made, outcomes } = await played(options());
  expect(outcomes).toEqual(outcomesSchema.parse(made));
  const read: string[] = [];
  const watched: ArtifactStore = { ...store, read: (ref) => store.read((read.push(ref.sha256), ref)) };
  expect(await readOutcomes({ store: watched, ref: summary.ref })).toEqual(outcomes);
  expect((await rollOut(options({ store: watched }))).summary).toMatchObject({ scored: 6, successRate: 1 });
  expect(read).not.toContain(summary.ref.sha256);
  const damaged = damagedIn(store, { sha256: read[0]! });
  expect(await readOutcomes({ store: damaged, ref: summary.ref })).toEqual(outcomes);
});

test('a finished batch is found and not made again, whatever the order of its tasks', async () => {
  const first = await played(options());
  const client = countingPolicy();
  const tasks = ['n-0', 'n-1', 'n-2'];
  const again = await played(options({ client, tasks, concurrency: 1, purpose: 'held_out', title: 'again' }));
  expect(again).toMatchObject({ reused: 6, summary: { ref: first.summary.ref, title: 'again', scored: 6 } });
  expect(again.records).toEqual(first.records);
  expect(client.turns).toBe(0);
  expect(unfinished()).toEqual([]);
});

test('whatever determines a rollout is in its key', () => {
  const inputs = {
    campaign: 'one',
    environment: { name: 'e', version: '1' },
    shown: new Map([['t', 'one']]),
    policy: { base: 'b', adapters: [] },
    sampling: { temperature: 1, topP: 1, maxTokens: 8 },
    seed: 1,
    tasks: ['t'],
    attempts: 1,
  };
  const adapter = (sha256: string, weight: number) => ({
    base: 'b',
    adapters: [{ ref: { uri: '', sha256, bytes: 0, mediaType: '' }, weight }],
  });
  const prompted = (text: string, place: 'before' | 'instead') => ({ ...adapter('y', 1), prompt: { text, place } });
  const changed = [
    { environment: { name: 'f', version: '1' } },
    { environment: { name: 'e', version: '2' } },
    { shown: new Map([['t', 'two']]) },
    { policy: { base: 'c', adapters: [] } },
    ...[adapter('x', 1), adapter('x', 0.5), adapter('y', 1)].map((policy) => ({ policy })),
    ...[prompted('p', 'before'), prompted('p', 'instead'), prompted('q', 'before')].map((policy) => ({ policy })),
    ...['x', 'y'].map((sha256) => ({ policy: { router: adapter(sha256, 1).adapters[0]!.ref } })),
    { sampling: { temperature: 0, topP: 1, maxTokens: 8 } },
    { sampling: { temperature: 1, topP: 0.9, maxTokens: 8 } },
    { sampling: { temperature: 1, topP: 1, maxTokens: 9 } },
    ...[{ seed: 2 }, { maxSteps: 3 }, { step: 0 }, { step: 1 }, { tasks: ['u'] }],
  ];
  const keys = [{}, ...changed].map((change) => planBatch({ ...inputs, ...change }).rollouts[0]!.key);
  expect(new Set(keys).size).toBe(keys.length);
  const [x, y] = [...adapter('x', 0.5).adapters, ...adapter('y', 1).adapters];
  const together = [
    [x!, y!],
    [y!, x!],
    [y!, { ...x!, ref: { ...x!.ref, sha256: 'z' }, weight: 0 }, x!],
  ].map((adapters) => planBatch({ ...inputs, policy: { base: 'b', adapters } }).key);
  expect(new Set(together).size).toBe(1);
  const grown = planBatch({ ...inputs, tasks: ['t', 's'], attempts: 2 }).rollouts;
  expect(grown.map(({ key }) => key)).toContain(keys[0]);
});

test('broken rollouts are recorded by type; the next run makes only them', async () => {
  let down = true;
  const environment = failingEnvironment((task) => down && task === 'n-1');
  const progress: RollOutProgress[] = [];
  const first = await played(options({ environment, onProgress: (p) => progress.push(p) }));
  expect(first.summary).toMatchObject({ scored: 4, broken: 2, meanReward: 1, errors: { EnvironmentFailed: 2 } });
  expect(first.summary.causes).toEqual([
    { type: 'EnvironmentFailed', message: expect.any(String) as string, count: 2, task: 'n-1' },
  ]);
  expect(progress.at(-1)).toMatchObject({ done: 6, total: 6, broken: 2 });
  const written = await readRecords({ store, ref: first.summary.ref });
  expect(written.filter(({ status }) => status === 'broken')).toHaveLength(2);
  expect(first.records.filter(({ status }) => status === 'broken')).toHaveLength(2);

  down = false;
  const client = countingPolicy();
  const second = await played(options({ environment, client }));
  expect(second).toMatchObject({ reused: 4, summary: { scored: 6, broken: 0 } });
  expect(client.turns).toBe(6);
  expect(second.summary.ref).not.toEqual(first.summary.ref);
  expect(unfinished()).toEqual([]);
});

test('a reward that misses 0 or 1 by rounding is 0 or 1', () => {
  const given = [0.7 + 0.2 + 0.1, 1.0000000000000002, Math.fround(0.99999994), -5e-17, 1e-17, 0.999998];
  const rewards = given.map((reward) => evaluationSchema.parse({ reward, breakdown: {} }).reward);
  expect(rewards).toEqual([1, 1, 1, 0, 0, 0.999998]);
});

test('an abort stops the batch; the next run goes on from what was scored', async () => {
  const abort = new AbortController();
  const environment = countingEnvironment();
  const tasks = ['n-0', 'n-1', 'n-2', 'n-3'];
  // After enough turns for more than ten rollouts the policy waits for the abort.
  let turns = 0;
  const waitForAbort = ({ signal }: TurnRequest) =>
    turns++ < 70 ? sleep(1) : sleep(60_000, undefined, { signal: signal! });
  const run = played(
    options({
      environment,
      tasks,
      attempts: 10,
      client: countingPolicy(waitForAbort),
      signal: abort.signal,
      onProgress: ({ done }) => done >= 10 && abort.abort(new Error('enough')),
    }),
  );
  await expect(run).rejects.toThrow('enough');
  expect(environment.episodes.opened).toBe(environment.episodes.closed);
  const client = countingPolicy();
  const batch = await played(options({ tasks, attempts: 10, client }));
  expect(batch.summary.scored).toBe(40);
  expect(batch.reused).toBeGreaterThanOrEqual(10);
  expect(batch.reused).toBeLessThan(40);
  expect(client.turns).toBeLessThan(140);
});

test('a chunk that can not be written stops the batch at once, and leaves no rejection unhandled', async () => {
  const full = new Error('ENOSPC: no space left on device');
  const broken = withFiles(store, { create: () => Promise.reject(full) });
  const client = countingPolicy(() => sleep(5));
  await expect(played(options({ store: broken, client, attempts: 100, concurrency: 2 }))).rejects.toBe(full);
  expect(client.turns).toBeLessThan(30);
  // The last rollouts end before their flush fails.
  await expect(played(options({ store: broken, tasks: ['n-0'], attempts: 1 }))).rejects.toBe(full);
  await sleep(5); // an unhandled rejection fails the test that is running
});

test('a policy server that is gone stops the batch at once; one that hiccups does not', async () => {
  const unavailable = () => {
    throw new OutsideFailure('PolicyServerUnavailable', 'connection refused');
  };
  const gone = { ...countingPolicy(unavailable), reachable: async () => false };
  const error = await played(options({ client: gone, attempts: 100 })).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ type: 'PolicyServerUnavailable', retryable: true });

  let hiccups = 2;
  const client = countingPolicy(() => void (hiccups-- > 0 && unavailable()));
  expect((await played(options({ client, concurrency: 1 }))).summary).toMatchObject({ scored: 6, broken: 0 });
});

test('the context length ends a rollout regularly, as does the limit of steps', async () => {
  const client = countingPolicy(({ messages }) => {
    if (messages.length > 4) throw new OutsideFailure('ContextLengthExceeded', 'too long');
  });
  const cut = Array(2).fill({ status: 'scored', stopReason: 'context_length' });
  expect((await played(options({ client, tasks: ['n-5'] }))).records).toMatchObject(cut);
  const { summary, records } = await played(options({ tasks: ['n-5'], maxSteps: 3 }));
  expect([summary.meanReward, records]).toMatchObject([0, Array(2).fill({ stopReason: 'max_steps' })]);
});

test('at most `concurrency` episodes at once, and a slow one holds nobody up', async () => {
  let finishSlow = () => {};
  const slow = new Promise<void>((resolve) => (finishSlow = resolve));
  const environment = countingEnvironment({ beforeStep: (task) => (task === 'n-0' ? slow : undefined) });
  const batch = played(
    options({
      environment,
      attempts: 1,
      tasks: ['n-0', 'n-1', 'n-2', 'n-3', 'n-4', 'n-5'],
      concurrency: 2,
      // The slow one ends only after all others have ended.
      onProgress: ({ done }) => done === 5 && finishSlow(),
    }),
  );
  expect((await batch).summary.scored).toBe(6);
  expect(environment.episodes.atOnce).toBe(2);
});

test('a seed of its own for every turn of every rollout, the same again for the same', async () => {
  const seeds = async (seed: number) => {
    const seen: number[] = [];
    await played(
      options({
        seed,
        store: openFolderStore(join(root, String(Math.random()))),
        client: countingPolicy((r) => void seen.push(r.seed)),
      }),
    );
    return seen.sort((x, y) => x - y);
  };
  const [one, again, two] = [await seeds(1), await seeds(1), await seeds(2)];
  expect(new Set(one).size).toBe(18);
  expect(again).toEqual(one);
  expect(one.filter((seed) => two.includes(seed))).toEqual([]);
});

test('a rollout that breaks is begun afresh, and the failure is nobody’s reward', async () => {
  let failures = 0;
  const environment = failingEnvironment((task) => task === 'n-1' && failures++ < 2);
  const unseen = { ...environment, appearance: { task: 'fixed' as const } };
  const { summary } = await played(options({ environment: unseen, concurrency: 1 }));
  expect(summary).toMatchObject({ scored: 6, broken: 0, meanReward: 1 });
  expect(environment.episodes).toMatchObject({ opened: 8, closed: 8 });
});

test('tool calls are numbered through the conversation, whatever ids the server gives', async () => {
  const policy = countingPolicy();
  const sample: typeof policy.sample = async (request) => {
    const turn = await policy.sample(request);
    const toolCalls = turn.message.toolCalls?.map((call) => ({ ...call, id: 'call_0' }));
    return { ...turn, message: { ...turn.message, ...(toolCalls && { toolCalls }) } };
  };
  const batch = await played(options({ client: { ...policy, sample } }));
  for (const { messages } of batch.records as ScoredRollout[]) {
    const ids = messages.flatMap((m) => (m.role === 'assistant' ? (m.toolCalls ?? []).map((call) => call.id) : []));
    expect(new Set(ids).size).toBe(ids.length);
    const answered = messages.flatMap((m) => (m.role === 'tool' ? [m.toolCallId] : []));
    expect(answered.every((id) => ids.includes(id))).toBe(true);
  }
});
