/** A language model over HTTP: requests, replies, the reply cache, and the failure for each fault of an endpoint. */
import { languageModelSchema, type LanguageModelSpec } from '../../../src/domain/endpoints';
import { openLanguageModel, type Question } from '../../../src/llm/model';
import { say, startChatServer, type ChatServer, type Play } from '../../support/chat-server';
import { askingBy, memoryLedger, type MemoryLedger } from '../../support/memory-ledger';
import { answered, chunk, event, inOrder, page, streamed, usageOf, written } from '../../support/model-endpoint';
import { closedAfterwards } from '../../support/opened';

const KEY = 'sk-secret-1234567890';
let server: ChatServer;
let ledger: MemoryLedger;
beforeEach(async () => {
  process.env['TEST_MODEL_KEY'] = KEY;
  server = closedAfterwards(await startChatServer(streamed('hello there, this is the answer')));
  ledger = memoryLedger();
});

const spec = (over: object = {}): LanguageModelSpec =>
  languageModelSchema.parse({ url: server.url, model: 'm', apiKeyEnv: 'TEST_MODEL_KEY', ...over });
const question: Question = { messages: [{ role: 'user', content: 'what is lacking?' }], seed: 7 };
const ask = (over: object = {}, asked: Partial<Question> = {}, more = {}) =>
  openLanguageModel('analyst', spec(over)).ask({ ...question, ...asked }, askingBy(ledger, more));
const containing = (text: string) => expect.stringContaining(text) as string;
const silent: Play = () => new Promise<undefined>(() => undefined);
const half = event(chunk({ content: 'half' }));

describe('a question', () => {
  test('is sent as a stream with the fields of the file, without those that are null', async () => {
    const parameters = { reasoning_effort: 'low', max_tokens: null, max_completion_tokens: 9 };
    await ask({ temperature: 0.5, maxTokens: 64, parameters });
    const body = {
      ...{ model: 'm', messages: question.messages, temperature: 0.5, seed: 7 },
      ...{ stream: true, stream_options: { include_usage: true } },
      ...{ reasoning_effort: 'low', max_completion_tokens: 9 },
    };
    expect(server.requests).toMatchObject([{ authorization: `Bearer ${KEY}`, body }]);
  });

  test('carries nothing of variables for other clients', async () => {
    const variables = { OPENAI_CUSTOM_HEADERS: 'authorization: Bearer other\nx-other: 1', OPENAI_ORG_ID: 'other' };
    Object.assign(process.env, variables);
    try {
      await ask();
    } finally {
      for (const name of Object.keys(variables)) delete process.env[name];
    }
    expect(server.requests[0]!.authorization).toBe(`Bearer ${KEY}`);
    expect(JSON.stringify(server.requests[0]!.headers)).not.toMatch(/other|stainless/i);
  });

  test('that was answered is not asked again; another seed, model or text is another question', async () => {
    const reply = await ask();
    server.play = streamed('something else');
    expect(await ask()).toEqual(reply);
    expect(await ask({ url: `${server.url}/`, concurrency: 2, timeoutSeconds: 9 })).toEqual(reply);
    expect(server.requests).toHaveLength(1);
    await ask({}, { seed: 8 });
    await ask({ model: 'other' });
    await ask({ temperature: 0 });
    await ask({}, { messages: [{ role: 'user', content: 'and now?' }] });
    expect(server.requests).toHaveLength(5);
    expect(ledger.kept.size).toBe(5);
  });

  test('of several is asked once, and again for the next one if it fails', async () => {
    server.play = inOrder(answered(500, 'broken'), streamed('one reply for all', { pauseMs: 5 }));
    const ended = await Promise.allSettled([1, 2, 3].map(() => ask()));
    expect(ended.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect(server.requests).toHaveLength(2);
    expect(ledger.steps).toEqual(['discovery']);
  });

  test('ends with its signal: under way, behind an equal one, or before its turn', async () => {
    const stop = new AbortController();
    server.play = async (body, response) => {
      await written(half, 'is silent')(body, response);
      server.play = streamed('free');
      stop.abort(new Error('stopped'));
      return undefined;
    };
    const over = { concurrency: 1, model: 'slow' };
    const asked = [7, 7, 8].map((seed) => ask(over, { seed }, { signal: stop.signal }));
    const other = ask(over, { seed: 9 });
    await Promise.all(asked.map((one) => expect(one).rejects.toThrow('stopped')));
    expect(await other).toMatchObject({ text: 'free' });
    expect(server.requests).toHaveLength(2);
  });

  test('needs a key when it is asked and not before', async () => {
    const model = openLanguageModel('synthesizer', spec());
    expect(model.id).toEqual({ model: 'm', temperature: 1, maxTokens: 32_000, parameters: {} });
    for (const key of [undefined, 'two words']) {
      if (key === undefined) delete process.env['TEST_MODEL_KEY'];
      else process.env['TEST_MODEL_KEY'] = key;
      await expect(model.ask(question, askingBy(ledger))).rejects.toMatchObject({
        type: 'LanguageModelRejected',
        message: containing('synthesizer.apiKeyEnv'),
      });
    }
    expect(server.requests).toEqual([]);
  });

  test('waits for its turn among all that ask the model', async () => {
    server.play = streamed('x', { pauseMs: 200 });
    await Promise.all([1, 2, 3, 4, 5, 6].map((seed) => ask({ concurrency: 3 }, { seed })));
    expect(server.atOnce).toBe(3);
  });
});

describe('a reply', () => {
  const thought = event(chunk({ reasoning_content: 'x'.repeat(40) }));
  const whole = { parameters: { stream: null, stream_options: null } };
  test.each<[string, Play, object, object?]>([
    [
      'pieces, with the usage of the endpoint',
      streamed('a \ud83d\ude00 b \ud83d c', { piece: 3, usage: usageOf(1000, 20, 900) }),
      {
        ...{ text: 'a \u{1F600} b \uFFFD c', finish: 'stop' },
        usage: { promptTokens: 1000, cachedTokens: 900, completionTokens: 20 },
      },
    ],
    ['one JSON completion', () => say('all at once'), { text: 'all at once', finish: 'stop' }, whole],
    [
      'a stream with comments, and without an end mark',
      written(`: waiting\n\n${event(chunk({ content: 'all' }))}${event(chunk({}, 'stop'))}`),
      { text: 'all', finish: 'stop' },
    ],
    [
      'without usage: it is estimated with the reasoning',
      written(`${thought}${event(chunk({ content: 'y'.repeat(8) }, 'stop'))}data: [DONE]\n\n`),
      { text: 'yyyyyyyy', usage: expect.objectContaining({ completionTokens: 12 }) as object },
    ],
    [
      'a refusal',
      written(event(chunk({ refusal: 'I cannot help' }, 'stop'))),
      { text: 'I cannot help', finish: 'content_filter' },
    ],
    [
      'complete, though the connection is left open',
      written(event(chunk({ content: 'whole' }, 'stop')), 'is silent'),
      { text: 'whole', finish: 'stop' },
      { timeoutSeconds: 1 },
    ],
    ['slow', streamed('slow but steady', { piece: 3, pauseMs: 400 }), { finish: 'stop' }, { timeoutSeconds: 1 }],
    ['with the key', streamed(`your key is ${KEY}`, { piece: 3 }), { text: 'your key is (key)' }],
  ])('may be %s', async (_, play, reply, ...[over]) => {
    server.play = play;
    expect(await ask(over)).toMatchObject(reply);
    expect(JSON.stringify([...ledger.kept])).not.toContain(KEY);
  });
});

describe('a failure', () => {
  const json = (error: object) => JSON.stringify({ error });
  const busy = json({ message: 'slow down' });
  const html = { 'content-type': 'text/html' };

  const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
  test.each<[string, Play, number | undefined]>([
    ['503 until a date', answered(503, busy, { 'retry-after': inAnHour }), expect.any(Number) as number],
    ['429 for 7 s', answered(429, busy, { 'retry-after': '7' }), 7000],
    ['500 with a page', answered(500, page, html), undefined],
    ['429 in the stream', written(event({ error: { code: 429, message: 'later' } })), undefined],
  ])('for now: %s', async (_, play, retryAfterMs) => {
    server.play = play;
    await expect(ask()).rejects.toMatchObject({ type: 'LanguageModelUnavailable', retryable: true, retryAfterMs });
    expect(server.requests).toHaveLength(1);
  });

  test('for now: no endpoint', async () => {
    await server.close();
    await expect(ask()).rejects.toMatchObject({
      type: 'LanguageModelUnavailable',
      message: containing('ECONNREFUSED'),
    });
  });

  test.each<[string, Play]>([
    ['a page with status 200', answered(200, page, html)],
    ['a malformed stream', written('data: {"choices": [{"del\n\ndata: x\n\n')],
    ['a stream without a reason for its end', written(half)],
    ['a broken connection', written(half, 'breaks off')],
    ['an error in the stream', written(event({ error: { message: 'overloaded' } }))],
    ['6 MB of words', written(event(chunk({ content: 'x'.repeat(3e6) })).repeat(2))],
    ['silence before the first word', silent],
    ['silence in the middle', written(half, 'is silent')],
  ])('that may be billed: %s', async (name, play) => {
    server.play = play;
    const isSilent = name.startsWith('silence');
    const failed = {
      type: 'LanguageModelFailed',
      retryable: true,
      ...(isSilent && { message: containing('no data') }),
    };
    await expect(ask({ timeoutSeconds: isSilent ? 1 : 300 })).rejects.toMatchObject(failed);
    expect(ledger.kept.size).toBe(0);
  });

  test.each<[number, object, string, object?, object?]>([
    [401, { message: `Incorrect API key: ${KEY}` }, 'TEST_MODEL_KEY'],
    [401, { message: 'no key' }, 'analyst.apiKeyEnv', { apiKeyEnv: undefined }],
    [404, { message: 'model m does not exist' }, 'analyst.model'],
    [307, { message: 'elsewhere' }, 'analyst.url', {}, { location: 'http://127.0.0.1:1/v1/chat/completions' }],
    [402, { message: 'no credit' }, 'credit'],
    [429, { message: 'quota', code: 'insufficient_quota' }, 'credit'],
    [400, { message: 'maximum context length is 8 tokens' }, 'analyst.contextTokens'],
    [400, { message: 'temperature must be 1' }, 'analyst.parameters'],
  ])('for good: %i %j names %s', async (status, error, fix, over = {}, headers = {}) => {
    server.play = answered(status, json(error), headers as Record<string, string>);
    const thrown = (await ask(over).catch((e: unknown) => e)) as Error;
    expect(thrown).toMatchObject({ type: 'LanguageModelRejected', retryable: false, message: containing(fix) });
    expect(JSON.stringify([thrown.message, thrown.stack, thrown.cause ?? ''])).not.toContain(KEY);
  });
});
