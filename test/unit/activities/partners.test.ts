/** Simulated users and judges over HTTP in the rollouts of a step: conversations, failures, and what the campaign that plays pays for them. */
import { join, resolve } from 'node:path';
import { EnvironmentPool } from '../../../src/activities/environments';
import { createRolloutActivities } from '../../../src/activities';
import type { RollOutInput } from '../../../src/activities/types';
import { openFolderStore } from '../../../src/store/open-store';
import { type ChatModel, chatModelSchema } from '../../../src/domain/endpoints';
import type { Message } from '../../../src/domain/messages';
import type { Rollout } from '../../../src/domain/rollout';
import { spentOf } from '../../../src/llm/spending';
import type { PolicyClient } from '../../../src/policy/client';
import { readRollouts } from '../../../src/rollout/read';
import { registry } from '../../support/kinds';
import { call, recorded, refuse, say, startChatServer, type ChatServer, type Play } from '../../support/chat-server';
import { putPlan, rollOutInput, run } from '../../support/activity-inputs';
import { usageOf } from '../../support/model-endpoint';
import { closedAfterwards } from '../../support/opened';
import { scriptedPolicy, turnOf } from '../../support/scripted-policy';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let home: string;
eachTemporaryFolder((made) => (home = made));
let [user, judge]: ChatServer[] = [];
beforeEach(async () => {
  user = closedAfterwards(await startChatServer(phoneOwner));
  judge = closedAfterwards(await startChatServer(recorded(say('yes'))));
  user.usage = usageOf(100, 10, 40);
  judge.usage = usageOf(50, 5);
});

/** Answers three times in a rollout: with the complaint, the phone and the good-bye. */
const phoneOwner: Play = ({ messages }) => {
  const last = messages.at(-1)!;
  if (last.role === 'tool') return say('it works . BYE');
  return last.content.includes('switch') ? call('toggle_data', {}) : say('no data');
};
/** Fails from the third conversation on; returns a function that counts the conversations. */
function failAfterTwo(failing: Play): () => number {
  let openings = 0;
  user!.play = (body, response) =>
    body.messages.length === 2 && ++openings > 2 ? failing(body, response) : phoneOwner(body, response);
  return () => openings;
}
const agent = scriptedPolicy(({ messages }) =>
  turnOf(messages) === 1
    ? { role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name: 'look_up', arguments: {} }] }
    : { role: 'assistant', content: 'switch it on .' },
);
/** Tokens of one rollout: three requests to the user, one to the judge. */
const ROLLOUT = 3 * 110 + 55;
const price = { input: 10, cachedInput: 1, output: 100 };
const dollars = (3 * (60 * 10 + 40 * 1 + 10 * 100)) / 1e6;

interface Models {
  user?: Partial<ChatModel>;
  judge?: Partial<ChatModel>;
}
const target = (over: Models = {}) => ({
  kind: 'process',
  command: [process.execPath, resolve(__dirname, '../../support/two-party.mjs')],
  cwd: '.',
  user: chatModelSchema.parse({ url: user!.url, model: 'owner', ...over.user }),
  judge: chatModelSchema.parse({ url: judge!.url, model: 'judge', ...over.judge }),
});
const storeIn = () => openFolderStore(join(home, 'artifacts'));

/** Opens a worker of its own, as after a restart. */
function worker() {
  const store = storeIn();
  return { store, environments: closedAfterwards(new EnvironmentPool(store, registry.environments)) };
}
async function play(batch: Partial<RollOutInput> = {}, models: Models = {}) {
  const { store, environments } = worker();
  const plan = await putPlan(store, ['train-0']);
  const client = { ...agent, reachable: async () => true } as unknown as PolicyClient;
  const { rollOut } = createRolloutActivities({ store, environments, kinds: registry, home, python: '', client });
  return run(
    rollOut,
    rollOutInput(plan, { store: await store.id(), environment: target(models), maxSteps: 6, maxAttempts: 2, ...batch }),
  );
}
async function recordsOf({ ref }: Awaited<ReturnType<typeof play>>): Promise<Rollout[]> {
  const records: Rollout[] = [];
  for await (const record of readRollouts({ store: storeIn(), ref })) records.push(record);
  return records;
}
const spent = (campaign = 'one') => spentOf({ store: storeIn(), campaign });
const requests = () => [user!.requests.length, judge!.requests.length];

const outline = (message: Message) =>
  [message.role, message.content, ...('toolCalls' in message ? (message.toolCalls ?? []).map(({ id }) => id) : [])]
    .filter(Boolean)
    .join(' ');

test('a rollout of two parties and a judge is counted once, by role, in tokens and at its price', async () => {
  const [rollout] = await recordsOf(await play({}, { user: { price } }));
  expect(rollout).toMatchObject({ status: 'scored', reward: 1, breakdown: { data: 1, kind: 1 }, steps: 2 });
  expect(rollout?.status === 'scored' && rollout.messages.map(outline)).toEqual([
    'system be kind',
    'assistant how can i help ?',
    'user no data',
    'assistant call_0',
    'tool line u17',
    'assistant switch it on .',
    'user user_call_0',
    'tool data is on',
    'user it works . BYE',
  ]);
  // The user does not see the calls of the agent.
  expect(user!.requests.at(-1)!.body.messages.map(({ role }) => role)).toEqual(
    'system user assistant user assistant tool'.split(' '),
  );
  const step = 'base_rollouts';
  expect(await spent()).toEqual([
    { role: 'judge', step, requests: 1, promptTokens: 50, cachedTokens: 0, completionTokens: 5 },
    {
      ...{ role: 'user', step, requests: 3, promptTokens: 300, cachedTokens: 120, completionTokens: 30 },
      dollars: expect.closeTo(dollars, 12),
    },
  ]);
});

test('attempts of one task meet the same user; another user makes other rollouts, another price does not', async () => {
  const first = await play({ attempts: 2 });
  const openings = user!.requests.filter(({ body }) => body.messages.length === 2).map(({ body }) => body['seed']);
  expect([openings.length, new Set(openings).size]).toEqual([2, 1]);
  expect((await play({ attempts: 2 }, { user: { timeoutSeconds: 7, price } })).ref).toEqual(first.ref);
  const keys = new Set((await recordsOf(first)).map(({ key }) => key));
  for (const models of [{ user: { temperature: 1 } }, { user: { model: 'other' } }, { judge: { model: 'other' } }]) {
    const records = await recordsOf(await play({ attempts: 2 }, models));
    expect(records.filter(({ key }) => keys.has(key))).toEqual([]);
  }
});

test('an endpoint that goes away stops the batch, which later continues from what was scored', async () => {
  failAfterTwo(refuse(503, 'oops'));
  await expect(play({ attempts: 4 })).rejects.toMatchObject({ type: 'PartnerUnavailable', nonRetryable: false });
  user!.play = phoneOwner;
  expect(await play({ attempts: 4 })).toMatchObject({ scored: 4, broken: 0 });
});

test('an unusable answer fails its rollout at once, without a reward; the others stand', async () => {
  const openings = failAfterTwo(recorded(say('')));
  const batch = await play({ attempts: 4 });
  expect(batch).toMatchObject({ scored: 2, broken: 2, meanReward: 1 });
  for (const broken of (await recordsOf(batch)).filter(({ status }) => status === 'broken')) {
    expect(broken).toMatchObject({ error: { type: 'UserSimulatorFailed' } });
    expect(broken).not.toHaveProperty('reward');
  }
  expect(openings()).toBe(4);
});

test('a budget stops base rollouts; with a larger one they continue, and nothing is paid for again', async () => {
  const batch = { attempts: 6, budget: { tokens: 2 * ROLLOUT + 1 } };
  for (let n = 0; n < 2; n++) {
    await expect(play(batch)).rejects.toMatchObject({ type: 'BudgetSpent', nonRetryable: true });
    expect(requests()).toEqual([6, 2]);
  }
  expect(await play({ ...batch, budget: { tokens: 100 * ROLLOUT } })).toMatchObject({ scored: 6, reused: 2 });
  expect(requests()).toEqual([18, 6]);
  expect(await spent()).toMatchObject([
    { role: 'judge', requests: 6 },
    { role: 'user', requests: 18 },
  ]);
});
