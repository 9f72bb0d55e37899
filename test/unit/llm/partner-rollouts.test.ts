/** A simulated user and a judge over HTTP, in whole rollouts. */
import { resolve } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import type { ArtifactStore } from '../../../src/artifacts/store';
import { chatModelSchema, type ChatModel } from '../../../src/domain/endpoints';
import type { Environment } from '../../../src/domain/environment';
import type { Message } from '../../../src/domain/messages';
import { openProcessEnvironment } from '../../../src/environments/process';
import { openPartners } from '../../../src/llm/partners';
import { played } from '../../support/played';
import { call, refuse, recorded, say, startChatServer, type ChatServer, type Play } from '../../support/chat-server';
import { scriptedPolicy, turnOf } from '../../support/scripted-policy';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let store: ArtifactStore;
let [user, judge]: ChatServer[] = [];
const opened: Environment[] = [];
eachTemporaryFolder((root) => (store = openFolderStore(root)));
beforeEach(async () => {
  [user, judge] = [await startChatServer(phoneOwner), await startChatServer(recorded(say('yes')))];
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((environment) => environment.close()));
  await Promise.all([user!.close(), judge!.close()]);
});

/** Complains, does what the agent says with the phone, says good-bye. */
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

function phone(over: { user?: Partial<ChatModel>; judge?: Partial<ChatModel> } = {}): Environment {
  const partners = openPartners({
    user: chatModelSchema.parse({ url: user!.url, model: 'owner', ...over.user }),
    judge: chatModelSchema.parse({ url: judge!.url, model: 'judge', ...over.judge }),
  });
  const command = [process.execPath, resolve(__dirname, '../../support/two-party.mjs')];
  const environment = openProcessEnvironment({ command, ...partners });
  opened.push(environment);
  return environment;
}

async function play(environment = phone(), over: { attempts?: number; signal?: AbortSignal } = {}) {
  const { summary: batch, records: rollouts } = await played({
    environment,
    store,
    client: agent,
    policy: { base: 'base', adapters: [] },
    seed: 3,
    concurrency: 4,
    tasks: ['train-0'],
    attempts: 1,
    maxAttempts: 2,
    purpose: 'test',
    title: 'two parties',
    sampling: { temperature: 0, topP: 1, maxTokens: 16 },
    ...over,
  });
  return { batch, rollouts };
}

const outline = (message: Message) =>
  [message.role, message.content, ...('toolCalls' in message ? (message.toolCalls ?? []).map(({ id }) => id) : [])]
    .filter(Boolean)
    .join(' ');

test('a rollout of two parties and a judge', async () => {
  const { rollouts } = await play();
  expect(rollouts).toMatchObject([{ status: 'scored', reward: 1, breakdown: { data: 1, kind: 1 }, steps: 2 }]);
  const [rollout] = rollouts;
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
  // From where the user stands: the agent's calls are not heard.
  expect(user!.requests.at(-1)!.body.messages.map(({ role }) => role)).toEqual(
    'system user assistant user assistant tool'.split(' '),
  );
});

test('attempts of one task meet the same user; another user makes other rollouts', async () => {
  const first = await play(phone(), { attempts: 2 });
  const opening = user!.requests.filter(({ body }) => body.messages.length === 2).map(({ body }) => body['seed']);
  expect(opening).toHaveLength(2);
  expect(new Set(opening).size).toBe(1);
  expect((await play(phone({ user: { timeoutSeconds: 7 } }), { attempts: 2 })).batch.ref).toEqual(first.batch.ref);
  const keys = new Set(first.rollouts.map(({ key }) => key));
  for (const over of [{ user: { temperature: 1 } }, { user: { model: 'other' } }, { judge: { model: 'other' } }]) {
    const { rollouts } = await play(phone(over), { attempts: 2 });
    expect(rollouts.filter(({ key }) => keys.has(key))).toEqual([]);
  }
});

/** From the third conversation on the user does not begin. How often it was asked to. */
function failingAfterTwo(failing: Play): () => number {
  let openings = 0;
  user!.play = (body, response) =>
    body.messages.length === 2 && ++openings > 2 ? failing(body, response) : phoneOwner(body, response);
  return () => openings;
}

test('an endpoint that goes away stops the batch; it goes on from what was scored', async () => {
  failingAfterTwo(refuse(503, 'oops'));
  await expect(play(phone(), { attempts: 4 })).rejects.toMatchObject({ type: 'PartnerUnavailable', retryable: true });
  user!.play = phoneOwner;
  const { batch } = await play(phone(), { attempts: 4 });
  expect(batch).toMatchObject({ scored: 4, broken: 0 });
});

test.each<['user' | 'judge', string, Play, string]>([
  ['user', 'nothing', recorded(say('')), 'UserSimulatorFailed'],
  ['user', '401', refuse(401, 'no key'), 'UserSimulatorRejected'],
  ['judge', 'silence', recorded(say('')), 'JudgeFailed'],
])('a batch whose %s only gives %s ends without a score', async (of, _, reply, type) => {
  (of === 'user' ? user! : judge!).play = reply;
  await expect(play()).rejects.toMatchObject({ type, message: expect.stringContaining('none of the first 1') });
});

test('a user that fails now and then: what is broken has no reward, the rest stands', async () => {
  const openings = failingAfterTwo(recorded(say('')));
  const { batch, rollouts } = await play(phone(), { attempts: 4 });
  expect(batch).toMatchObject({ scored: 2, broken: 2, meanReward: 1 });
  for (const broken of rollouts.filter(({ status }) => status === 'broken')) {
    expect(broken).toMatchObject({ error: { type: 'UserSimulatorFailed' } });
    expect(broken).not.toHaveProperty('reward');
  }
  // It is not asked again.
  expect(openings()).toBe(2 + 2);
});

test('an abort does not wait for the user', async () => {
  const abort = new AbortController();
  user!.play = () => abort.abort(new Error('paused')) as undefined;
  await expect(play(phone(), { signal: abort.signal })).rejects.toThrow('paused');
});

test('an environment that asks for a user or a judge that is not named', async () => {
  const command = [process.execPath, resolve(__dirname, '../../support/two-party.mjs')];
  const alone = openProcessEnvironment({ command });
  opened.push(alone);
  await expect(play(alone)).rejects.toMatchObject({
    type: 'BadEnvironment',
    message: expect.stringContaining('target.user names none'),
  });
});
