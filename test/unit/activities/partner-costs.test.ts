/** What simulated users and judges cost: counted for the campaign that plays, and held to its budget. */
import { join, resolve } from 'node:path';
import { EnvironmentPool, type PlayingFor } from '../../../src/activities/environments';
import { createRolloutActivities } from '../../../src/activities';
import { TEST_TEXTS, testTexts } from '../../../src/activities/tasks';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { chatModelSchema, type Budget, type Price } from '../../../src/domain/endpoints';
import { spentOf } from '../../../src/llm/spending';
import type { PolicyClient } from '../../../src/policy/client';
import { registry } from '../../support/kinds';
import { call, recorded, say, startChatServer, type ChatServer, type Play } from '../../support/chat-server';
import { putPlan, rollOutInput, run } from '../../support/activity-inputs';
import { usageOf } from '../../support/model-endpoint';
import { scriptedPolicy, turnOf } from '../../support/scripted-policy';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let home: string;
eachTemporaryFolder((made) => (home = made));
let [user, judge]: ChatServer[] = [];
const pools: EnvironmentPool[] = [];
beforeEach(async () => {
  [user, judge] = [await startChatServer(phoneOwner), await startChatServer(recorded(say('yes')))];
  user.usage = usageOf(100, 10, 40);
  judge.usage = usageOf(50, 5);
});
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
  await Promise.all([user!.close(), judge!.close()]);
});

/** Asked three times in a rollout: for the complaint, the phone and the good-bye. */
const phoneOwner: Play = ({ messages }) => {
  const last = messages.at(-1)!;
  if (last.role === 'tool') return say('it works . BYE');
  return last.content.includes('switch') ? call('toggle_data', {}) : say('no data');
};
const agent = scriptedPolicy(({ messages }) =>
  turnOf(messages) === 1
    ? { role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name: 'look_up', arguments: {} }] }
    : { role: 'assistant', content: 'switch it on .' },
);
/** Of one rollout: three requests to the user, one to the judge. */
const ROLLOUT = 3 * 110 + 55;
const price = { input: 10, cachedInput: 1, output: 100 };
const dollars = (3 * (60 * 10 + 40 * 1 + 10 * 100)) / 1e6;

const target = (prices: { user?: Price; judge?: Price } = {}) => ({
  kind: 'process',
  command: [process.execPath, resolve(__dirname, '../../support/two-party.mjs')],
  cwd: '.',
  user: chatModelSchema.parse({ url: user!.url, model: 'owner', price: prices.user }),
  judge: chatModelSchema.parse({ url: judge!.url, model: 'judge', price: prices.judge }),
});
const storeIn = () => openFolderStore(join(home, 'artifacts'));

/** In a worker of its own, as after a restart. */
function worker() {
  const store = storeIn();
  const environments = new EnvironmentPool(store, registry.environments);
  pools.push(environments);
  return { store, environments };
}

interface Batch {
  attempts?: number;
  concurrency?: number;
  budget?: Budget;
  prices?: { user?: Price; judge?: Price };
}

async function baseRollouts({ prices, ...batch }: Batch = {}) {
  const { store, environments } = worker();
  const plan = await putPlan(store, ['train-0']);
  const client = { ...agent, reachable: async () => true } as unknown as PolicyClient;
  const { rollOut } = createRolloutActivities({ store, environments, kinds: registry, home, python: '', client });
  return run(rollOut, rollOutInput(plan, { environment: target(prices), maxSteps: 6, ...batch }));
}
const spent = (campaign = 'one') => spentOf({ store: storeIn(), campaign });
const requests = () => [user!.requests.length, judge!.requests.length];

test('a rollout is counted once, by role, in tokens and where there is a price in dollars', async () => {
  await baseRollouts({ prices: { user: price } });
  const step = 'base_rollouts';
  expect(await spent()).toEqual([
    { role: 'judge', step, requests: 1, promptTokens: 50, cachedTokens: 0, completionTokens: 5 },
    {
      ...{ role: 'user', step, requests: 3, promptTokens: 300, cachedTokens: 120, completionTokens: 30 },
      dollars: expect.closeTo(dollars, 12),
    },
  ]);
});

test('a price is in no key: the rollouts are the same ones', async () => {
  const { ref } = await baseRollouts();
  expect((await baseRollouts({ prices: { user: price, judge: price } })).ref).toEqual(ref);
  expect(requests()).toEqual([3, 1]);
});

test('where an endpoint does not say what it used, the texts tell', async () => {
  delete user!.usage;
  await baseRollouts();
  const [, ofUser] = await spent();
  expect(ofUser).toMatchObject({ role: 'user', requests: 3, cachedTokens: 0 });
  expect(ofUser!.promptTokens).toBeGreaterThan(30);
  expect(ofUser!.completionTokens).toBeGreaterThan(3);
});

test('a budget stops base rollouts; with a larger one they go on, and nothing is paid for again', async () => {
  const batch = { attempts: 6, budget: { tokens: 2 * ROLLOUT + 1 } };
  const stopped = {
    type: 'BudgetSpent',
    nonRetryable: true,
    message: expect.stringMatching(/^budget\.tokens is 771: campaign one has spent 770 tokens on 8 requests; raise/),
  };
  await expect(baseRollouts(batch)).rejects.toMatchObject(stopped);
  expect(requests()).toEqual([6, 2]);
  await expect(baseRollouts(batch)).rejects.toMatchObject(stopped);
  expect(requests()).toEqual([6, 2]);
  expect(await baseRollouts({ ...batch, budget: { tokens: 100 * ROLLOUT } })).toMatchObject({ scored: 6, reused: 2 });
  expect(requests()).toEqual([18, 6]);
  expect(await spent()).toMatchObject([
    { role: 'judge', requests: 6 },
    { role: 'user', requests: 18 },
  ]);
});

test('rollouts that are under way as it is spent go on to their ends', async () => {
  const batch = { attempts: 8, concurrency: 4 };
  await expect(baseRollouts({ ...batch, budget: { tokens: ROLLOUT } })).rejects.toMatchObject({ type: 'BudgetSpent' });
  expect(requests()).toEqual([12, 4]);
  expect(await baseRollouts(batch)).toMatchObject({ scored: 8, reused: 4 });
});

test('a judge whose answers can not be used ends the step after a bounded number of requests, each paid for', async () => {
  judge!.play = recorded(say(''));
  await expect(baseRollouts()).rejects.toMatchObject({ type: 'JudgeFailed', nonRetryable: true });
  const attempts = judge!.requests.length;
  expect(attempts).toBeLessThanOrEqual(3);
  expect(await spent()).toMatchObject([
    { role: 'judge', requests: attempts },
    { role: 'user', requests: user!.requests.length },
  ]);
});

test('a budget in dollars needs the price of both', async () => {
  const budget = { dollars: 1 };
  await expect(baseRollouts({ budget, prices: { user: price } })).rejects.toMatchObject({
    type: 'BadInput',
    message: expect.stringMatching(/target\.judge has no price to count dollars by; set target\.judge\.price/),
  });
  expect(requests()).toEqual([0, 0]);
  expect(await baseRollouts({ budget, prices: { user: price, judge: price } })).toMatchObject({ scored: 1 });
});

test('what a user says to read the test tasks is counted for the campaign that reads them first', async () => {
  const read = async (payer: PlayingFor) => {
    const { store, environments } = worker();
    const environment = await environments.paidBy(payer).get(target());
    return testTexts({ store, environment, progress: () => undefined });
  };
  const texts = await read({ campaign: 'one', budget: {}, step: TEST_TEXTS });
  expect(await read({ campaign: 'two', budget: {}, step: TEST_TEXTS })).toEqual(texts);
  expect(await spent()).toMatchObject([{ role: 'user', step: 'texts of the test tasks', requests: 2 }]);
  expect(await spent('two')).toEqual([]);
});
