import { type ChatModel, chatModelSchema } from '../../../src/domain/endpoints';
import type { Message, ToolSchema } from '../../../src/domain/messages';
import { type Judge, openPartners, type SimulatedUser } from '../../../src/partners/partners';
import { call, recorded, refuse, say, startChatServer, type ChatServer } from '../../support/chat-server';

let server: ChatServer;
beforeEach(async () => (server = await startChatServer()));
afterEach(() => server.close());

const spec = (over: Partial<ChatModel> = {}) => chatModelSchema.parse({ url: server.url, model: 'm', ...over });
const user = (over?: Partial<ChatModel>): SimulatedUser => openPartners({ user: spec(over) }).user!;
const judge = (over?: Partial<ChatModel>): Judge => openPartners({ judge: spec(over) }).judge!;

const tools: ToolSchema[] = [
  { name: 'toggle_data', description: 'switches mobile data', parameters: { type: 'object', properties: {} } },
];
const messages: Message[] = [
  { role: 'system', content: 'you have no signal' },
  { role: 'user', content: 'how can i help ?' },
  { role: 'assistant', content: '', toolCalls: [{ id: 'user_call_0', name: 'look', arguments: { at: 'bar' } }] },
  { role: 'tool', toolCallId: 'user_call_0', content: 'none', requestor: 'user' },
];
const turn = { messages, tools, seed: 7 };

test('asks with the file’s sampling, and answers in words', async () => {
  server.play = recorded(say('no signal at all'));
  const said = await user({ model: 'big', temperature: 0.5, topP: 0.9, maxTokens: 64 }).speak(turn);
  expect(said).toEqual({ role: 'user', content: 'no signal at all' });
  const { authorization, body } = server.requests[0]!;
  expect(authorization).toBe('Bearer none');
  const called = { name: 'look', arguments: '{"at":"bar"}' };
  expect(body).toEqual({
    model: 'big',
    messages: [
      { role: 'system', content: 'you have no signal' },
      { role: 'user', content: 'how can i help ?' },
      { role: 'assistant', content: '', tool_calls: [{ id: 'user_call_0', type: 'function', function: called }] },
      { role: 'tool', tool_call_id: 'user_call_0', content: 'none' },
    ],
    tools: [
      {
        type: 'function',
        function: { name: 'toggle_data', description: 'switches mobile data', parameters: tools[0]!.parameters },
      },
    ],
    max_tokens: 64,
    temperature: 0.5,
    top_p: 0.9,
    seed: 7,
  });
});

test('calls are numbered through the conversation, apart from the agent’s', async () => {
  server.play = recorded(call('toggle_data', { on: true }));
  expect(await user().speak(turn)).toEqual({
    role: 'user',
    content: '',
    toolCalls: [{ id: 'user_call_1', name: 'toggle_data', arguments: { on: true } }],
  });
});

test('a judge answers in words, with the same seed every time', async () => {
  server.play = recorded(say('{"met": true}'));
  expect(await judge().answer([{ role: 'user', content: 'is it met ?' }])).toBe('{"met": true}');
  expect(server.requests[0]!.body).toMatchObject({ seed: 0, temperature: 0, messages: [{ content: 'is it met ?' }] });
  expect(server.requests[0]!.body).not.toHaveProperty('tools');
});

test.each([
  ['nothing', say(' \n'), 'no words and no calls'],
  ['no content', { role: 'assistant', content: null }, 'no words and no calls'],
  ['a call that is not JSON', call('toggle_data', '{"on":'), 'no JSON object'],
  ['an answer of another shape', { role: 'assistant', content: 3 }, 'choices.0.message.content'],
])('%s is no answer of a user', async (_, reply, problem) => {
  server.play = recorded(reply);
  await expect(user().speak(turn)).rejects.toMatchObject({
    type: 'UserSimulatorFailed',
    retryable: true,
    message: expect.stringContaining(problem),
  });
});

test.each([
  ['before the first word', { content: '' }],
  ['in the middle of a text', { content: 'I would rather not' }],
  ['after a call', { content: '', tool_calls: [{ id: 'a', function: { name: 'toggle_data', arguments: '{}' } }] }],
])('what was cut off %s is no answer, and says which field to raise', async (_, message) => {
  server.play = (_, response) =>
    void response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ choices: [{ message, finish_reason: 'length' }] })) as undefined;
  await expect(user().speak(turn)).rejects.toMatchObject({
    type: 'UserSimulatorFailed',
    message: expect.stringContaining('an answer cut off at 1024 tokens: raise target.user.maxTokens'),
  });
  await expect(judge({ maxTokens: 9 }).answer([])).rejects.toMatchObject({
    type: 'JudgeFailed',
    message: expect.stringContaining('an answer cut off at 9 tokens: raise target.judge.maxTokens'),
  });
});

test.each([
  [500, 'UserSimulatorFailed', 'JudgeFailed', true, 'oops'],
  [503, 'PartnerUnavailable', 'PartnerUnavailable', true, 'oops'],
  [401, 'UserSimulatorRejected', 'JudgeRejected', false, 'apiKeyEnv'],
  [404, 'UserSimulatorRejected', 'JudgeRejected', false, '.model or target.'],
])('a %d is a %s or a %s', async (status, ofUser, ofJudge, retryable, words) => {
  server.play = refuse(status, 'oops');
  const message = expect.stringContaining(words) as string;
  await expect(user().speak(turn)).rejects.toMatchObject({ type: ofUser, retryable, message });
  await expect(judge().answer([])).rejects.toMatchObject({ type: ofJudge, retryable, message });
  // One request each: retries are the caller's.
  expect(server.requests).toHaveLength(2);
});

describe('keys', () => {
  const variable = 'PARTNERS_TEST_KEY';
  afterEach(() => delete process.env[variable]);

  test('are sent, and never shown', async () => {
    process.env[variable] = 'secret-1';
    server.play = refuse(401, 'Incorrect API key provided: secret-1');
    const failure = await user({ apiKeyEnv: variable })
      .speak(turn)
      .catch((error: Error) => error);
    expect(server.requests[0]!.authorization).toBe('Bearer secret-1');
    expect(failure).toMatchObject({ message: expect.stringContaining(`provided: (key); put a key`) });
  });

  test('that are missing are found before anything is asked', () => {
    expect(() => judge({ apiKeyEnv: variable })).toThrow(
      `target.judge.apiKeyEnv is ${variable}, and this variable is not set`,
    );
    expect(server.requests).toEqual([]);
  });
});

test('no endpoint, one that hangs up, one that is silent', async () => {
  server.play = (_, response) => void response.destroy() as undefined;
  await expect(user().speak(turn)).rejects.toMatchObject({ type: 'PartnerUnavailable', retryable: true });
  server.play = () => undefined;
  await expect(user({ timeoutSeconds: 1 }).speak(turn)).rejects.toMatchObject({
    type: 'UserSimulatorFailed',
    message: expect.stringContaining('target.user.timeoutSeconds'),
  });
  const gone = user();
  await server.close();
  await expect(gone.speak(turn)).rejects.toMatchObject({ type: 'PartnerUnavailable' });
});

test('no more requests at once than the file allows, and waiting for a turn is not on the clock', async () => {
  server.play = () => new Promise((answer) => setTimeout(() => answer(say('late')), 400));
  const busy = user({ concurrency: 2, timeoutSeconds: 1 });
  const said = await Promise.all(Array.from({ length: 8 }, () => busy.speak(turn)));
  expect(said).toHaveLength(8);
  expect(server.atOnce).toBe(2);
});

test('what is not JSON is no answer', async () => {
  server.play = (_, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end('<html>') as undefined;
  await expect(user().speak(turn)).rejects.toMatchObject({ type: 'UserSimulatorFailed' });
});

test('an abort ends what is asked and what waits to be asked', async () => {
  const abort = new AbortController();
  server.play = () => undefined;
  const one = user({ concurrency: 1 });
  const turns = [1, 2].map((seed) => one.speak({ ...turn, seed, signal: abort.signal }));
  setTimeout(() => abort.abort(new Error('paused')), 100);
  for (const { status, reason } of (await Promise.allSettled(turns)) as PromiseRejectedResult[]) {
    expect([status, String(reason)]).toEqual(['rejected', 'Error: paused']);
  }
  expect(server.requests).toHaveLength(1);
});

test('the id tells what determines the answers, and not where they come from', () => {
  expect(user().id).toBe('m (temperature 0, top-p 1, 1024 tokens)');
  expect(user({ url: 'http://127.0.0.1:2/v1', concurrency: 3, timeoutSeconds: 9 }).id).toBe(user().id);
  for (const over of [{ model: 'n' }, { temperature: 1 }, { topP: 0.5 }, { maxTokens: 9 }])
    expect(user(over).id).not.toBe(user().id);
});
