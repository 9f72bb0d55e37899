/** Anthropic's official client against the gateway: whole and streamed answers, tools, system prompts, stop reasons, keys, errors, and what can't be carried. */
import Anthropic from '@anthropic-ai/sdk';
import type { ArtifactStore } from '../../../src/artifacts/store';
import { completion, type DialectServer, refuse, startDialectServer } from '../../support/dialect-server';
import { fitByWords, PROMPT, startGateway } from '../../support/gateway';
import { temporaryStore } from '../../support/temporary-store';

let store: ArtifactStore;
temporaryStore((opened) => (store = opened));
let server: DialectServer;
let gateway: Awaited<ReturnType<typeof startGateway>>;

beforeEach(async () => {
  server = await startDialectServer();
  gateway = await startGateway({ store, router: await fitByWords(store), url: server.url, apiKey: 'right' });
});
afterEach(async () => {
  await gateway.close();
  await server.close();
});

const client = (o: ConstructorParameters<typeof Anthropic>[0] = { apiKey: 'right' }) =>
  new Anthropic({ baseURL: gateway.url, maxRetries: 0, authToken: null, apiKey: null, ...o });
const user = (content: Anthropic.MessageParam['content']) => ({ role: 'user' as const, content });
const asking = (
  more: Partial<Anthropic.MessageCreateParamsNonStreaming> & { temperature?: number; top_k?: number } = {},
) => ({
  model: 'trace',
  max_tokens: 7,
  messages: [user('a book')],
  ...more,
});
const asked = () => server.requests.filter(({ call }) => call.includes('chat')).at(-1)!.body;
const tools = [{ name: 'look', description: 'looks', input_schema: { type: 'object' as const } }];
const call = (text: string) => ({ id: 'x', type: 'function' as const, function: { name: 'look', arguments: text } });
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

test('a whole answer, routed, asked for as it would be in OpenAI’s form', async () => {
  server.complete = () => ({ ...completion({ content: 'hello' }), usage });
  const system = [{ type: 'text' as const, text: 'the rules', cache_control: { type: 'ephemeral' as const } }];
  const body = asking({ system, temperature: 0.5, top_k: 20, stop_sequences: ['x'], metadata: { user_id: 'u' } });
  const { data, response } = await client().messages.create(body).withResponse();
  expect(data).toMatchObject({ type: 'message', role: 'assistant', model: 'trace', stop_reason: 'end_turn' });
  expect(data.id).toMatch(/^msg_/);
  expect(data.content).toEqual([{ type: 'text', text: 'hello', citations: null }]);
  expect(data.usage).toMatchObject({ input_tokens: 3, output_tokens: 2 });
  expect(response.headers.get('x-campaign-policy')).toBe('books');
  expect(asked()).toMatchObject({ max_tokens: 7, temperature: 0.5, top_p: 1, top_k: 20, stop: ['x'] });
  expect(asked()['messages']).toEqual([{ role: 'system', content: 'the rules' }, user('a book')]);
});

test('a conversation with tools: calls and their results go back as they came, and it keeps its policy', async () => {
  server.complete = () => completion({ content: null, tool_calls: [call('{"at": 2}'), call('{}')] }, 'tool_calls');
  const choice = { type: 'any' as const, disable_parallel_tool_use: true };
  const first = await client().messages.create(asking({ tools, tool_choice: choice }));
  expect(first.stop_reason).toBe('tool_use');
  expect(first.content).toEqual([
    { type: 'tool_use', id: 'call_0', name: 'look', input: { at: 2 }, caller: { type: 'direct' } },
    { type: 'tool_use', id: 'call_1', name: 'look', input: {}, caller: { type: 'direct' } },
  ]);
  expect(asked()).toMatchObject({
    tool_choice: 'required',
    parallel_tool_calls: false,
    tools: [{ type: 'function', function: { name: 'look', description: 'looks', parameters: { type: 'object' } } }],
  });
  const results = [
    { type: 'tool_result' as const, tool_use_id: 'call_0', content: [{ type: 'text' as const, text: 'seen' }] },
    { type: 'tool_result' as const, tool_use_id: 'call_1', content: 'no', is_error: true },
    { type: 'text' as const, text: 'a ship' },
  ];
  const messages = [user('a book'), { role: 'assistant' as const, content: first.content }, user(results)];
  const second = client().messages.create(asking({ messages, tools }));
  expect((await second.withResponse()).response.headers.get('x-campaign-policy')).toBe('books');
  expect((await second).content).toMatchObject([{ id: 'call_2' }, { id: 'call_3' }]);
  expect(asked()['messages']).toEqual([
    user('a book'),
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { ...call('{"at":2}'), id: 'call_0' },
        { ...call('{}'), id: 'call_1' },
      ],
    },
    { role: 'tool', tool_call_id: 'call_0', content: 'seen' },
    { role: 'tool', tool_call_id: 'call_1', content: 'no' },
    user('a ship'),
  ]);
});

test('tokens are counted by the policy server, as the policy that plays the conversation is asked', async () => {
  server.complete = () => ({ ...completion({ content: 'x' }, 'length'), usage });
  const about = { model: 'trace', messages: [user('brief')], system: 'the rules', tools };
  expect(await client().messages.countTokens(about)).toEqual({ input_tokens: 3 });
  expect(asked()).toMatchObject({ max_tokens: 1, tools: [{ function: { name: 'look' } }] });
  expect(asked()['messages']).toEqual([{ role: 'system', content: `${PROMPT.text}\n\nthe rules` }, user('brief')]);
  const failure = client().messages.countTokens({ ...about, output_config: { effort: 'low' } });
  await expect(failure).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('output_config') as string,
  });
});

test('a stream holds the text, the calls, the reason and the usage', async () => {
  server.complete = () => ({
    ...completion({ content: 'I look', tool_calls: [call('{"at":1}'), call('{}')] }, 'tool_calls'),
    usage,
  });
  const events: string[] = [];
  const stream = client().messages.stream(asking({ tools }));
  stream.on('streamEvent', ({ type }) => events.push(type));
  const said = await stream.finalMessage();
  expect(said).toMatchObject({
    stop_reason: 'tool_use',
    content: [
      { type: 'text', text: 'I look' },
      { type: 'tool_use', id: 'call_0', name: 'look', input: { at: 1 } },
      { type: 'tool_use', id: 'call_1', input: {} },
    ],
    usage: { input_tokens: 3, output_tokens: 2 },
  });
  expect(events[0]).toBe('message_start');
  expect(events.slice(-2)).toEqual(['message_delta', 'message_stop']);
});

test.each([
  ['the end', completion({ content: 'x' }), { stop_reason: 'end_turn', stop_sequence: null }],
  ['the limit', completion({ content: 'x' }, 'length'), { stop_reason: 'max_tokens' }],
  ['a filter', completion({ content: 'x' }, 'content_filter'), { stop_reason: 'refusal' }],
  [
    'a stop sequence',
    { choices: [{ message: { content: 'x' }, finish_reason: 'stop', stop_reason: 'END' }] },
    { stop_reason: 'stop_sequence', stop_sequence: 'END' },
  ],
  [
    'a call that can’t be read',
    completion({ content: 'so', tool_calls: [call('{')] }, 'tool_calls'),
    { stop_reason: 'end_turn', content: [{ type: 'text', text: 'so\nlook({)' }] },
  ],
])('why an answer ended: %s, whole and streamed', async (_, answer, expected) => {
  server.complete = () => answer;
  expect(await client().messages.create(asking())).toMatchObject(expected);
  expect(await client().messages.stream(asking()).finalMessage()).toMatchObject(expected);
});

test('the key comes as x-api-key or as a bearer token', async () => {
  server.complete = () => completion({ content: 'hello' });
  await client({ authToken: 'right' }).messages.create(asking());
  for (const wrong of [{ apiKey: 'wrong' }, { authToken: 'wrong' }])
    await expect(client(wrong).messages.create(asking())).rejects.toMatchObject({
      status: 401,
      error: { type: 'error', error: { type: 'authentication_error' } },
    });
});

const thought = { type: 'thinking', thinking: 'hm', signature: 's' };
test.each([
  [
    'a picture',
    { messages: [user([{ type: 'image' } as never])] },
    /^messages\.0\.content\.0.*"image" can't be carried/,
  ],
  [
    'what was thought',
    { messages: [user('a'), { role: 'assistant', content: [thought] }, user('b')] },
    /^messages\.1\.content\.0.*"thinking"/,
  ],
  [
    'a document in a result',
    { messages: [user([{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'document' }] } as never])] },
    /content\.0\.content\.0.*"document"/,
  ],
  ['thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }, /^thinking.*leave it out/],
  ['tools of servers', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, /^tools\.0\.type/],
  ['a shape of the answer', { output_config: { effort: 'low' } }, /output_config can't be carried/],
  ['a beginning', { messages: [user('a'), { role: 'assistant', content: 'so' }] }, /a user message be the last/],
  [
    'text before results',
    {
      messages: [
        user([
          { type: 'text', text: 'a' },
          { type: 'tool_result', tool_use_id: 'a' },
        ]),
      ],
    },
    /^messages\.0\.content: tool_result blocks come first/,
  ],
  ['no limit', { max_tokens: undefined }, /^max_tokens/],
])('%s can’t be carried, and the field is named', async (_, body, message) => {
  const failure = await client()
    .messages.create(asking(body as never))
    .catch((thrown: unknown) => thrown);
  const apiMessage = expect.stringMatching(message) as string;
  expect(failure).toMatchObject({ status: 400, type: 'invalid_request_error', apiMessage });
  expect(server.requests.filter(({ call }) => call.includes('chat'))).toEqual([]);
});

test('other errors are in Anthropic’s shape too', async () => {
  const failing = (body = asking(), o = {}) => client().messages.create(body, o);
  await expect(failing(asking({ model: 'claude' }))).rejects.toMatchObject({ status: 404, type: 'not_found_error' });
  await expect(failing(asking(), { headers: { 'anthropic-version': '2019-01-01' } })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('send 2023-06-01') as string,
  });
  server.complete = refuse(429, { message: 'busy at 10.0.0.1' });
  await expect(failing()).rejects.toMatchObject({ status: 429, type: 'rate_limit_error' });
  server.complete = refuse(500, { message: 'broken at 10.0.0.1' });
  await expect(failing()).rejects.toMatchObject({
    ...{ status: 502, type: 'api_error' },
    message: expect.not.stringContaining('10.0.0.1') as string,
  });
});
