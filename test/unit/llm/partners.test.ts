import { type ChatModel, chatModelSchema } from '../../../src/domain/endpoints';
import type { Message, ToolSchema } from '../../../src/domain/messages';
import { type Judge, openPartners, type SimulatedUser } from '../../../src/llm/partners';
import { call, recorded, refuse, say, startChatServer, type ChatServer, type Play } from '../../support/chat-server';
import { closedAfterwards } from '../../support/opened';

let server: ChatServer;
beforeEach(async () => (server = closedAfterwards(await startChatServer())));

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
  const { name, description, parameters } = tools[0]!;
  expect(body).toEqual({
    ...{ model: 'big', max_tokens: 64, temperature: 0.5, top_p: 0.9, seed: 7 },
    messages: [
      ...messages.slice(0, 2),
      { role: 'assistant', content: '', tool_calls: [{ id: 'user_call_0', type: 'function', function: called }] },
      { role: 'tool', tool_call_id: 'user_call_0', content: 'none' },
    ],
    tools: [{ type: 'function', function: { name, description, parameters } }],
  });
});

/** Any answer, whole, with status 200. */
const answerWith =
  (body: string): Play =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(body) as undefined;
const cutOff = (message: object) => answerWith(JSON.stringify({ choices: [{ message, finish_reason: 'length' }] }));
const toggle = { id: 'a', function: { name: 'toggle_data', arguments: '{}' } };

test.each<[string, Play]>([
  ['nothing', recorded(say(' \n'))],
  ['a call that is not JSON', recorded(call('toggle_data', '{"on":'))],
  ['another shape', recorded({ role: 'assistant', content: 3 })],
  ['no JSON', answerWith('<html>')],
  ['what was cut off after a call', cutOff({ content: '', tool_calls: [toggle] })],
])('%s is no answer, for good', async (_, play) => {
  server.play = play;
  await expect(user().speak(turn)).rejects.toMatchObject({ type: 'UserSimulatorFailed', retryable: false });
  await expect(judge().answer([])).rejects.toMatchObject({ type: 'JudgeFailed', retryable: false });
});

test.each([
  [429, 'PartnerUnavailable', 'PartnerUnavailable', true],
  [500, 'PartnerUnavailable', 'PartnerUnavailable', true],
  [401, 'UserSimulatorRejected', 'JudgeRejected', false],
  [404, 'UserSimulatorRejected', 'JudgeRejected', false],
])('a %d is a %s or a %s', async (status, ofUser, ofJudge, retryable) => {
  server.play = refuse(status, 'oops');
  await expect(user().speak(turn)).rejects.toMatchObject({ type: ofUser, retryable });
  await expect(judge().answer([])).rejects.toMatchObject({ type: ofJudge, retryable });
  // One request each: retries are the caller's.
  expect(server.requests).toHaveLength(2);
});

test('an endpoint is reachable as long as it answers, without a request that is paid', async () => {
  const own = await startChatServer();
  const partner = user({ url: own.url });
  expect(await partner.reachable!()).toBe(true);
  await own.close();
  expect(await partner.reachable!()).toBe(false);
  expect(own.requests).toEqual([]);
});

test('a key that is missing is found before anything is asked', () => {
  expect(() => judge({ apiKeyEnv: 'PARTNERS_TEST_KEY' })).toThrow('target.judge.apiKeyEnv');
});

test('an endpoint that hangs up, is silent, says word after word without an end, or is not there', async () => {
  server.play = (_, response) => void response.destroy() as undefined;
  await expect(user().speak(turn)).rejects.toMatchObject({ type: 'PartnerUnavailable', retryable: true });
  server.play = () => undefined;
  const late = { type: 'PartnerTimeout', message: expect.stringContaining('target.user.timeoutSeconds') as string };
  await expect(user({ timeoutSeconds: 1 }).speak(turn)).rejects.toMatchObject(late);
  server.play = (_, response) => {
    const timer = setInterval(() => response.write(' '), 100);
    response.on('close', () => clearInterval(timer));
    return undefined;
  };
  await expect(user({ timeoutSeconds: 1 }).speak(turn)).rejects.toMatchObject(late);
  const gone = user();
  await server.close();
  await expect(gone.speak(turn)).rejects.toMatchObject({ type: 'PartnerUnavailable' });
});
