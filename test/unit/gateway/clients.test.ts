/** OpenAI's official client against the gateway: which policy plays, and that it stays; whole and streamed answers, tools, errors; streams that break, are refused, or are read by nobody any more. */
import OpenAI from 'openai';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { servedBy } from '../../../src/gateway/served';
import { routers } from '../../../src/routing';
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
const metrics = async () => (await fetch(`${gateway.url}/metrics`)).text();

/** Yields the texts of a stream as they come. */
async function* streamed() {
  for await (const { choices } of await openai.chat.completions.create({ ...chatOf(), stream: true }))
    if (choices[0]?.delta.content) yield choices[0].delta.content;
}
const all = async (texts: AsyncIterable<string>) => {
  const found: string[] = [];
  for await (const text of texts) found.push(text);
  return found;
};

const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason, ...more }],
});
/** Ends a policy server's answer in another way than with its last event. */
type End = 'nothing more' | 'broken' | 'open';

/** As vLLM streams; each event waits for what is before it. */
const streaming =
  (events: object[], { end, before }: { end?: End; before?: (n: number) => Promise<void> } = {}) =>
  async (_: unknown, response: Parameters<DialectServer['complete']>[1]): Promise<void> => {
    const write = (event: object) => response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    write(chunk({ role: 'assistant', content: '' }));
    for (const [n, event] of events.entries()) {
      await before?.(n);
      write(event);
    }
    if (end === 'broken') response.destroy();
    else if (end === 'open') await once(response, 'close');
    else response.end(end === undefined ? 'data: [DONE]\n\n' : '');
  };

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
    expect(await metrics()).toMatch(/gateway_routed_total\{policy="books"\} 1/);
    expect(await metrics()).toMatch(/gateway_requests_total\{model="trace",status="200"\} 3/);
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
    expect(await metrics()).toMatch(/gateway_conversations 3/);
  });

  test('of a newer campaign takes what begins; what has begun keeps its own', async () => {
    expect(await policyOf({ messages: [user('a book')] })).toBe('books');
    gateway.reload(await servedBy({ store, routers, name: 'demo', router: await fitByWords(store, { version: '4' }) }));
    expect(await policyOf({ messages: [user('a book'), answer, user('on')] })).toBe('books');
    // By another version of the router's kind: it can't be applied here.
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

  test('holds log-probs where they are asked for, whole and streamed', async () => {
    const [he, alone] = [
      { token: 'he', logprob: -0.5 },
      { token: 'y', logprob: -1 },
    ];
    const logprobs = { content: [{ ...he, top_logprobs: [he] }, alone] };
    server.complete = (body, response) =>
      body['stream']
        ? streaming([chunk({ content: 'he' }, null, { logprobs }), chunk({}, 'stop')])(body, response)
        : { choices: [{ message: { content: 'he' }, finish_reason: 'stop', token_ids: [1], logprobs }] };
    const more = { logprobs: true, top_logprobs: 1 };
    expect((await chat()).choices[0]!.logprobs).toBeNull();
    for (const told of [await chat(more), await openai.chat.completions.stream(chatOf(more)).finalChatCompletion()])
      expect(told.choices[0]!.logprobs?.content).toMatchObject([
        { ...he, bytes: null, top_logprobs: [{ ...he, bytes: null }] },
        { ...alone, top_logprobs: [] },
      ]);
    expect(asked()).toMatchObject(more);
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
    [' <thin', ' <thin'],
    ['<b>done</b>', '<b>done</b>'],
  ])('holds nothing of what was thought, whole or in pieces: %j', async (text, told) => {
    server.complete = (body, response) =>
      body['stream']
        ? streaming([...[...text].map((content) => chunk({ content })), chunk({}, 'stop')])(body, response)
        : completion({ content: text });
    expect((await chat()).choices[0]!.message.content).toBe(told);
    expect((await all(streamed())).join('')).toBe(told);
  });
});

describe('a stream', () => {
  test('is heard token by token, each before the next one is sampled', async () => {
    const words = ['to', 'be', 'or', 'not'];
    const found: string[] = [];
    server.complete = streaming([...words.map((content) => chunk({ content })), chunk({}, 'stop')], {
      before: async (n) => {
        while (found.length < n) await sleep(1);
      },
    });
    for await (const word of streamed()) found.push(word);
    expect(found).toEqual(words);
  });

  const part = (index: number, name: string | undefined, text: string) =>
    chunk({ tool_calls: [{ index, ...(name && { id: 'x', type: 'function' }), function: { name, arguments: text } }] });
  const inParts = streaming([
    chunk({ content: 'I look' }),
    ...[part(0, 'look', ''), part(0, undefined, '{"at"'), part(0, undefined, ':1}'), part(1, 'look', '{}')],
    ...[chunk({}, 'tool_calls'), { choices: [], usage }],
  ]);
  const tool_calls = [call('{"at":1}'), call('{}')];
  const whole = { ...completion({ content: 'I look', tool_calls }, 'tool_calls'), usage };
  const refused = refuse(400, { message: 'stream True: must be False', param: 'stream' });

  test.each<[string, DialectServer['complete'], unknown[]]>([
    ['in parts', inParts, [undefined, true, true]],
    ['whole all the same', () => whole, [undefined, true, true]],
    ['by no streams, and is found out once', refused, [undefined, true, undefined, undefined]],
  ])('that the policy server answers %s says what the whole answer does', async (_, play, kinds) => {
    server.complete = (body, response) => (body['stream'] ? play(body, response) : whole);
    const earlier = { role: 'assistant' as const, tool_calls: [{ ...call('{"at": 2.0}'), id: 'call_0' }] };
    const result = { role: 'tool' as const, tool_call_id: 'call_0', content: 'seen' };
    const more = { messages: [user('a book'), earlier, result], tools };
    const options = { include_usage: true };
    const stream = () =>
      openai.chat.completions.stream({ ...chatOf(more), stream_options: options }).finalChatCompletion();
    for (const told of [await chat(more), await stream(), await stream()]) {
      const [choice] = told.choices;
      expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: 'I look' } });
      // Numbered through the conversation.
      const calls = [{ id: 'call_1', function: { name: 'look', arguments: '{"at":1}' } }, { id: 'call_2' }];
      expect(choice!.message.tool_calls).toMatchObject(calls);
      expect(told.usage).toMatchObject({ total_tokens: 5 });
      expect(asked()).toMatchObject({ messages: [user('a book'), { ...earlier, content: null }, result], tools });
    }
    expect(completions().map(({ stream: kind }) => kind)).toEqual(kinds);
    expect(await metrics()).toMatch(/gateway_tokens_total\{policy="books",kind="completion"\} 6/);
  });

  const failing: [string, object[], End | undefined][] = [
    ['breaks', [chunk({ content: 'so' })], 'broken'],
    ['ends without a reason', [chunk({ content: 'so' })], 'nothing more'],
    ['is given up', [chunk({ content: 'so' }), chunk({}, 'abort')], undefined],
    ['ends with an error', [chunk({ content: 'so' }), { error: { message: 'lost 10.0.0.1', code: 500 } }], undefined],
  ];
  test.each(failing)('that %s is an error to its client, without where the server is', async (_, events, end) => {
    server.complete = streaming(events, end && { end });
    const found: string[] = [];
    const reading = (async () => {
      for await (const text of streamed()) found.push(text);
    })();
    await expect(reading).rejects.toThrow(/the policy server does not answer/);
    // What came just before a connection broke may be lost with it.
    if (end !== 'broken') expect(found).toEqual(['so']);
    server.complete = streaming([chunk({ content: 'again' }), chunk({}, 'stop')]);
    expect(await all(streamed())).toEqual(['again']);
    expect(await metrics()).toMatch(/status="50[23]"\} 1/);
    expect(await metrics()).toMatch(/gateway_running 0/);
  });

  test('whose client leaves ends at the policy server', async () => {
    let ended: Promise<unknown> | undefined;
    server.complete = (body, response) => {
      ended = once(response, 'close');
      return streaming([chunk({ content: 'so' })], { end: 'open' })(body, response);
    };
    for await (const text of streamed()) {
      expect(text).toBe('so');
      break;
    }
    await ended;
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
    ['more to route by than can be read', { messages: [user('a'.repeat(1e6 + 1))] }, 400, 'messages'],
    ['too many values', { stop: Array(1e5).fill('x') }, 400, 'stop'],
    ['what is too deep', { response_format: deepOf(129) }, 400, 'response_format'],
    ['weights of ids', { logit_bias: { 5: 1 } }, 400, 'logit_bias'],
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
  ])('of the policy server, %d %j, is told without where it is, before a stream too', async (at, said, ...o) => {
    const [status, code] = o;
    server.complete = refuse(at, said);
    for (const asking of [chat(), all(streamed())]) {
      const failure = (await asking.catch((thrown: unknown) => thrown)) as InstanceType<typeof OpenAI.APIError>;
      expect(failure).toMatchObject({ status, code });
      expect(failure.message).not.toContain('10.0.0.1');
      if (status === 400) expect(failure.message).toBe(`400 ${said.message}`);
      if ('param' in said) expect(failure.param).toBe(said.param);
    }
    // It has said of none that there are no streams.
    expect(completions().map(({ stream }) => stream)).toEqual([undefined, true]);
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
