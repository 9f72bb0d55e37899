/** The official client against the gateway: whole and streamed answers, tools, log-probs, errors; which policy plays, and that it stays. */
import OpenAI from 'openai';
import type { ArtifactStore } from '../../../src/artifacts/store';
import { servedBy } from '../../../src/gateway/served';
import { completion, type DialectServer, refuse, startDialectServer } from '../../support/dialect-server';
import { fitByWords, PROMPT, startGateway } from '../../support/gateway';
import { temporaryStore } from '../../support/temporary-store';

let store: ArtifactStore;
temporaryStore((opened) => (store = opened));
let server: DialectServer;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let openai: OpenAI;

beforeEach(async () => {
  server = await startDialectServer();
  gateway = await startGateway({ store, router: await fitByWords(store), url: server.url });
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterEach(async () => {
  await gateway.close();
  await server.close();
});

const user = (content: string) => ({ role: 'user' as const, content });
const answer = { role: 'assistant' as const, content: 'done' };
const tools = [
  { type: 'function' as const, function: { name: 'look', description: 'looks', parameters: { type: 'object' } } },
];
/** The policy that played, by the answer's header. */
const policyOf = async (
  body: Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'model'>,
  headers: Record<string, string> = {},
) => {
  const asked = openai.chat.completions.create({ model: 'trace', ...body }, { headers });
  return (await asked.withResponse()).response.headers.get('x-campaign-policy');
};
const completions = () => server.requests.filter(({ call }) => call.includes('chat'));
const asked = () => completions().at(-1)!.body;

test('the models are the routed policy, then the options of the router', async () => {
  const names: string[] = [];
  for await (const { id } of openai.models.list()) names.push(id);
  expect(names).toEqual(['trace', 'base', 'books', 'ships', 'prompted', 'books+ships']);
  expect((await openai.models.retrieve('books')).owned_by).toBe('demo');
});

test('a whole answer is the policy server’s, asked for the distribution as it is', async () => {
  server.complete = () => ({
    ...completion({ role: 'assistant', content: 'hello' }),
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  });
  const said = await openai.chat.completions.create({ model: 'trace', messages: [user('a book')], max_tokens: 7 });
  expect(said).toMatchObject({
    object: 'chat.completion',
    model: 'trace',
    choices: [{ index: 0, finish_reason: 'stop', logprobs: null, message: { role: 'assistant', content: 'hello' } }],
    usage: { total_tokens: 5 },
  });
  expect(said.system_fingerprint).toMatch(/^demo@[0-9a-f]{12}$/);
  expect(asked()).toMatchObject({ temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 7 });
  expect(String(asked()['model'])).toMatch(/^a-[0-9a-f]{64}$/);
});

test('log-probs come where they are asked for', async () => {
  const logprobs = { content: [{ token: 'he', logprob: -0.5, top_logprobs: [{ token: 'he', logprob: -0.5 }] }] };
  server.complete = () => ({
    choices: [{ message: { content: 'he' }, finish_reason: 'stop', token_ids: [1], logprobs }],
  });
  const body = { model: 'base', messages: [user('hi')] };
  const [without, told] = [
    await openai.chat.completions.create(body),
    await openai.chat.completions.create({ ...body, logprobs: true, top_logprobs: 1 }),
  ];
  expect(without.choices[0]!.logprobs).toBeNull();
  expect(told.choices[0]!.logprobs?.content?.[0]).toMatchObject({ token: 'he', logprob: -0.5, bytes: null });
  expect(asked()).toMatchObject({ logprobs: true, top_logprobs: 1 });
});

test('a stream holds the text, the calls with their ids, the reason and the usage', async () => {
  const call = { id: 'x', type: 'function', function: { name: 'look', arguments: '{"at":1}' } };
  server.complete = () => ({
    ...completion({ content: 'I look', tool_calls: [call, call] }, 'tool_calls'),
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  });
  const stream = openai.chat.completions.stream({
    model: 'trace',
    messages: [user('a ship')],
    tools,
    stream_options: { include_usage: true },
  });
  const said = await stream.finalChatCompletion();
  expect(said.choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: {
      content: 'I look',
      tool_calls: [{ id: 'call_0' }, { id: 'call_1', function: { arguments: '{"at":1}' } }],
    },
  });
  expect(said.usage?.total_tokens).toBe(5);
});

test('a conversation with tools: calls are numbered through it, and go back as they came', async () => {
  const tool_calls = [{ id: 'x', type: 'function' as const, function: { name: 'look', arguments: '{"at": 2.0}' } }];
  server.complete = () => completion({ content: null, tool_calls }, 'tool_calls');
  const first = await openai.chat.completions.create({ model: 'trace', messages: [user('a book')], tools });
  const message = first.choices[0]!.message;
  const messages = [user('a book'), message, { role: 'tool' as const, tool_call_id: 'call_0', content: 'seen' }];
  const second = await openai.chat.completions.create({ model: 'trace', messages, tools });
  expect(second.choices[0]!.message.tool_calls).toMatchObject([{ id: 'call_1' }]);
  expect(asked()['tools']).toMatchObject([{ function: { name: 'look' } }]);
  expect(asked()['messages']).toEqual([
    user('a book'),
    { role: 'assistant', content: null, tool_calls: [{ ...tool_calls[0], id: 'call_0' }] },
    messages[2],
  ]);
});

test('each conversation is routed by its first user message, and a fixed model is not', async () => {
  expect(await policyOf({ messages: [user('a Book')] })).toBe('books');
  expect(await policyOf({ messages: [{ role: 'developer', content: 'ship' }, user('what?')] })).toBe('base');
  expect(await policyOf({ messages: [user('ship it')] })).toBe('ships');
  const fixed = openai.chat.completions.create({ model: 'ships', messages: [user('a book')] }).withResponse();
  expect((await fixed).response.headers.get('x-campaign-policy')).toBe('ships');
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(text).toMatch(/gateway_routed_total\{policy="books"\} 1/);
  expect(text).toMatch(/gateway_requests_total\{model="trace",status="200"\} 3/);
});

test('a prompted policy is given its prompt in the opening, the same at every turn', async () => {
  const system = { role: 'system' as const, content: 'the rules' };
  const shown = { role: 'system', content: `${PROMPT.text}\n\nthe rules` };
  await policyOf({ messages: [system, user('brief')] });
  expect(asked()['messages']).toEqual([shown, user('brief')]);
  expect(await policyOf({ messages: [system, user('brief'), answer, user('a book')] })).toBe('prompted');
  expect(asked()['messages']).toEqual([shown, user('brief'), answer, user('a book')]);
});

test('a conversation keeps its policy: by the header, by `user`, else by how its messages begin', async () => {
  const [id] = [{ 'x-conversation-id': 'c-1' }];
  expect(await policyOf({ messages: [user('a book')] }, id)).toBe('books');
  // Its beginning was compacted away.
  expect(await policyOf({ messages: [user('a ship'), answer, user('go on')] }, id)).toBe('books');
  expect(await policyOf({ messages: [user('a ship')], user: 'u-1' })).toBe('ships');
  expect(await policyOf({ messages: [user('summary: a book'), answer, user('go on')], user: 'u-1' })).toBe('ships');
  // Another conversation of the same user, and one that names neither.
  expect(await policyOf({ messages: [user('a book')], user: 'u-1' })).toBe('books');
  expect(await policyOf({ messages: [user('a ship'), answer, user('book')] })).toBe('ships');
});

test('a newer campaign takes what begins; what has begun keeps its policy', async () => {
  expect(await policyOf({ messages: [user('a book')] })).toBe('books');
  gateway.reload(await servedBy({ store, name: 'demo', router: await fitByWords(store, { version: '4' }) }));
  expect(await policyOf({ messages: [user('a book'), answer, user('on')] })).toBe('books');
  // By another version of the router's kind: it can't be applied here.
  await expect(policyOf({ messages: [user('another book')] })).rejects.toMatchObject({
    status: 500,
    error: { code: 'not_routed', type: 'server_error' },
  });
  expect(gateway.logged.join()).toMatch(/fitted by learned 4/);
});

test.each([
  [
    'an unknown model',
    { model: 'gpt-4' },
    404,
    { code: 'model_not_found', param: 'model', message: /"gpt-4".*trace, base/ },
  ],
  [
    'no user message',
    { messages: [{ role: 'system', content: 'x' }] },
    400,
    { param: 'messages', message: /first user message/ },
  ],
  [
    'a picture',
    { messages: [user([{ type: 'image_url' }] as never)] },
    400,
    { param: 'messages.0.content.0.type', message: /only text can be read/ },
  ],
  ['two choices', { n: 2 }, 400, { param: 'n', message: /leave n out/ }],
  ['no messages', { messages: [] }, 400, { param: 'messages', message: /./ }],
])('%s is an error in OpenAI’s shape', async (_, body, status, { message, ...error }) => {
  const asking = openai.chat.completions.create({ model: 'trace', messages: [user('hi')], ...body } as never);
  const failure = (await asking.catch((thrown: unknown) => thrown)) as InstanceType<typeof OpenAI.APIError>;
  expect(failure).toMatchObject({ status, error: { type: 'invalid_request_error', ...error } });
  expect(failure.message).toMatch(message);
});

test('what the policy server refuses is told in its words; where it is, is not', async () => {
  server.complete = refuse(400, { message: 'stop: not supported', code: null });
  await expect(policyOf({ messages: [user('hi')], stop: 'x' })).rejects.toMatchObject({
    status: 400,
    message: '400 stop: not supported',
  });
  server.complete = refuse(400, { message: 'messages: too many', code: 'context_length_exceeded' });
  await expect(policyOf({ messages: [user('hi')] })).rejects.toMatchObject({ code: 'context_length_exceeded' });
  server.complete = refuse(500, { message: 'broken at 10.0.0.1' });
  await expect(policyOf({ messages: [user('hi')] })).rejects.toMatchObject({
    status: 502,
    message: expect.not.stringContaining('10.0.0.1') as string,
  });
});

test('a policy server that went away is an error, and the gateway serves again when it is back', async () => {
  const { port } = new URL(server.url);
  await policyOf({ messages: [user('a book')] });
  await server.close();
  await expect(policyOf({ messages: [user('a book')] })).rejects.toMatchObject({ status: 503 });
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(503);
  server = await startDialectServer({ port: Number(port) });
  expect(await policyOf({ messages: [user('a book')] })).toBe('books');
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
});
