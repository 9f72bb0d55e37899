/** OpenAI's official client against the gateway: which policy plays, and that it stays; whole and streamed answers, tools, errors. */
import OpenAI from 'openai';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { completion, type DialectServer, refuse, startDialectServer } from '../../support/dialect-server';
import { fitByWords, PROMPT, startGateway } from '../../support/gateway';
import { temporaryFolder } from '../../support/temporary-folder';

const store = openFolderStore(temporaryFolder());
let router: ArtifactRef;
beforeAll(async () => void (router = await fitByWords(store)));
let server: DialectServer;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let openai: OpenAI;

beforeEach(async () => {
  server = await startDialectServer();
  gateway = await startGateway({ store, router, url: server.url, apiKey: 'right', limits: { bodyBytes: 8_000_000 } });
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'right', maxRetries: 0 });
});
afterEach(async () => {
  await gateway.close();
  await server.close();
});

const user = <Content = string>(content: Content) => ({ role: 'user' as const, content });
const answer = { role: 'assistant' as const, content: 'done' };
const call = (text: string) => ({ id: 'x', type: 'function' as const, function: { name: 'look', arguments: text } });
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const looking = { name: 'look', description: 'looks' };
const tools = [{ type: 'function' as const, function: { ...looking, parameters: { type: 'object' } } }];

type Chat = Partial<Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>>;
const chatOf = (more: Chat = {}) => ({ model: 'trace', messages: [user('a book')], ...more });
const chat = (more?: Chat, headers: Record<string, string> = {}) =>
  openai.chat.completions.create(chatOf(more), { headers });
/** The policy that played, by the answer's header. */
const policyOf = async (more: Chat, headers?: Record<string, string>) =>
  (await chat(more, headers).withResponse()).response.headers.get('x-campaign-policy');
const completions = () => server.requests.filter(({ call }) => call.includes('chat')).map(({ body }) => body);
const asked = () => completions().at(-1)!;

describe('the policy', () => {
  test('is a model: the routed one, then the options of the router', async () => {
    const names = (await openai.models.list()).data.map(({ id }) => id);
    expect(names).toEqual(['trace', 'base', 'books', 'ships', 'prompted', 'books+ships']);
    expect((await openai.models.retrieve('books')).owned_by).toBe('demo');
  });

  test('is routed by the first user message, and a fixed model is not', async () => {
    expect(await policyOf({ messages: [user('a Book')] })).toBe('books');
    expect(await policyOf({ messages: [{ role: 'developer', content: 'ship' }, user('what?')] })).toBe('base');
    expect(await policyOf({ messages: [user('ship it')] })).toBe('ships');
    expect(await policyOf({ model: 'ships', messages: [user('a book')] })).toBe('ships');
  });

  test('that is prompted is given its prompt in the opening, the same at every turn', async () => {
    const system = { role: 'system' as const, content: 'the rules' };
    const shown = { role: 'system', content: `${PROMPT.text}\n\nthe rules` };
    await chat({ messages: [system, user('brief')] });
    expect(asked()['messages']).toEqual([shown, user('brief')]);
    expect(await policyOf({ messages: [system, user('brief'), answer, user('a book')] })).toBe('prompted');
    expect(asked()['messages']).toEqual([shown, user('brief'), answer, user('a book')]);
  });

  test('of a conversation stays: by the header, by `user`, else by how its messages begin', async () => {
    const id = { 'x-conversation-id': 'c-1' };
    expect(await policyOf({ messages: [user('a book')] }, id)).toBe('books');
    // Its beginning was compacted away.
    expect(await policyOf({ messages: [user('a ship'), answer, user('go on')] }, id)).toBe('books');
    // Another one that names neither.
    expect(await policyOf({ messages: [user('a ship'), answer, user('book')] })).toBe('ships');
    expect(await policyOf({ messages: [user('a ship'), answer, user('book')], user: 'u-1' })).toBe('ships');
  });

  test('that cannot be chosen is an error of the gateway, and its log says why', async () => {
    // By another version of the router's kind: it can't be applied here.
    const other = await fitByWords(store, { version: '4' });
    await gateway.close();
    gateway = await startGateway({ store, router: other, url: server.url, apiKey: 'right' });
    openai.baseURL = `${gateway.url}/v1`;
    await expect(policyOf({ messages: [user('another book')] })).rejects.toMatchObject({
      status: 500,
      error: { code: 'not_routed', type: 'server_error' },
    });
    expect(gateway.logged.join()).toMatch(/fitted by learned 4/);
  });
});

describe('an answer', () => {
  test('to OpenAI’s client is the policy server’s, asked for the distribution as it is', async () => {
    server.complete = () => ({ ...completion({ role: 'assistant', content: 'hello' }), usage });
    const said = await chat({ max_tokens: 7, ...{ min_p: 0.1 } });
    expect(said).toMatchObject({
      object: 'chat.completion',
      model: 'trace',
      choices: [{ index: 0, finish_reason: 'stop', logprobs: null, message: { role: 'assistant', content: 'hello' } }],
      usage: { total_tokens: 5 },
    });
    expect(said.system_fingerprint).toMatch(/^demo@[0-9a-f]{12}$/);
    expect(asked()).toMatchObject({ temperature: 1, top_p: 1, top_k: -1, min_p: 0.1, max_tokens: 7 });
    expect(String(asked()['model'])).toMatch(/^a-[0-9a-f]{64}$/);
  });

  test('that is sent back with calls that can’t be read goes on: they are text, as in rollouts', async () => {
    const deep = `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    const calls = [call('{'), call(deep), call('{"at": 2}')];
    await chat({ messages: [user('a book'), { ...answer, tool_calls: calls }, user('on')] });
    expect(asked()['messages']).toEqual([
      user('a book'),
      { ...answer, content: `done\nlook({)\nlook(${deep})`, tool_calls: [call('{"at":2}')] },
      user('on'),
    ]);
    await chat({ messages: [user('a book'), { role: 'assistant', tool_calls: [call('{')] }, user('on')] });
    expect(asked()['messages']).toContainEqual({ role: 'assistant', content: 'look({)' });
  });

  test.each([
    ['<think>hm</think>\n\ndone', 'done'],
    ['\n<think>so < so</think>', ''],
    ['<think>cut off', ''],
    ['<b>done</b>', '<b>done</b>'],
  ])('holds nothing of what was thought: %j', async (text, told) => {
    server.complete = () => completion({ content: text });
    expect((await chat()).choices[0]!.message.content).toBe(told);
  });

  test('says the same whole and as a stream, with calls numbered through the conversation', async () => {
    const tool_calls = [call('{"at":1}'), call('{}')];
    server.complete = () => ({ ...completion({ content: 'I look', tool_calls }, 'tool_calls'), usage });
    const earlier = { role: 'assistant' as const, tool_calls: [{ ...call('{"at": 2.0}'), id: 'call_0' }] };
    const result = { role: 'tool' as const, tool_call_id: 'call_0', content: 'seen' };
    const more = { messages: [user('a book'), earlier, result], tools };
    const options = { include_usage: true };
    const stream = openai.chat.completions.stream({ ...chatOf(more), stream_options: options });
    for (const told of [await chat(more), await stream.finalChatCompletion()]) {
      const [choice] = told.choices;
      expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: 'I look' } });
      const calls = [{ id: 'call_1', function: { name: 'look', arguments: '{"at":1}' } }, { id: 'call_2' }];
      expect(choice!.message.tool_calls).toMatchObject(calls);
      expect(told.usage).toMatchObject({ total_tokens: 5 });
      const sent = { ...earlier, content: '', tool_calls: [{ ...call('{"at":2.0}'), id: 'call_0' }] };
      expect(asked()).toMatchObject({ messages: [user('a book'), sent, result], tools });
      expect(asked()['stream']).toBeUndefined();
    }
  });
});

describe('an error', () => {
  const picture = user([{ type: 'image_url' }]);
  const deepOf = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  test.each<[string, object, number, string]>([
    ['an unknown model', { model: 'gpt-4' }, 404, 'model'],
    ['no model', { model: undefined }, 400, 'model'],
    ['no user message', { messages: [{ role: 'system', content: 'x' }] }, 400, 'messages'],
    ['a picture', { messages: [picture] }, 400, 'messages.0.content.0.type'],
    ['two choices', { n: 2 }, 400, 'n'],
    ['no messages', { messages: [] }, 400, 'messages'],
    ['too many values', { stop: Array(1e5).fill('x') }, 400, 'stop'],
    ['what is too deep', { response_format: deepOf(129) }, 400, 'response_format'],
    ['weights of ids', { logit_bias: { 5: 1 } }, 400, 'logit_bias'],
    ['log-probs', { logprobs: true }, 400, 'logprobs'],
    ['tools of old', { functions: [looking] }, 400, 'functions'],
  ])('for %s is in OpenAI’s shape', async (_, body, status, param) => {
    const failure = await chat(body).catch((thrown: unknown) => thrown);
    const code = status === 404 ? 'model_not_found' : null;
    expect(failure).toMatchObject({ status, error: { type: 'invalid_request_error', param, code } });
    expect(completions()).toEqual([]);
  });

  const tooLong = { message: 'messages: too many', code: 'context_length_exceeded' };
  test.each([
    [400, { message: 'stop: not supported', code: null }, 400, null],
    [400, { message: 'stop: not in a stream', param: 'stop' }, 400, null],
    [400, tooLong, 400, 'context_length_exceeded'],
    [429, { message: 'busy at 10.0.0.1' }, 429, 'rate_limit_exceeded'],
    [500, { message: 'broken at 10.0.0.1' }, 502, null],
  ])('of the policy server, %d %j, is told without where it is', async (at, said, ...o) => {
    const [status, code] = o;
    server.complete = refuse(at, said);
    const failure = (await chat().catch((thrown: unknown) => thrown)) as InstanceType<typeof OpenAI.APIError>;
    expect(failure).toMatchObject({ status, code });
    expect(failure.message).not.toContain('10.0.0.1');
    if (status === 400) expect(failure.message).toBe(`400 ${said.message}`);
    if ('param' in said) expect(failure.param).toBe(said.param);
  });

  test('of a policy server that went away; the gateway serves again when it is back', async () => {
    const { port } = new URL(server.url);
    const named = { 'x-conversation-id': 'c-1' };
    await chat({}, named);
    await server.close();
    await expect(chat({}, named)).rejects.toMatchObject({ status: 503 });
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(503);
    server = await startDialectServer({ port: Number(port) });
    expect(await policyOf({}, named)).toBe('books');
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  });
});
