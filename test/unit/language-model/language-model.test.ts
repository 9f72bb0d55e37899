/** A language model over HTTP: what is sent, what a reply is, what is asked once; and everything that an endpoint may do badly. */
import { type AddressInfo, createServer } from 'node:net';
import { languageModelSchema, type LanguageModelSpec } from '../../../src/domain/endpoints';
import { openLanguageModel, type Question } from '../../../src/language-model/model';
import { say, startChatServer, type ChatServer, type Play } from '../../support/chat-server';
import { askingBy, memoryLedger, type MemoryLedger } from '../../support/memory-ledger';
import { answered, chunk, event, inOrder, page, streamed, usageOf, written } from '../../support/model-endpoint';

const KEY = 'sk-secret-1234567890';
let server: ChatServer;
let ledger: MemoryLedger;
beforeEach(async () => {
  process.env['TEST_MODEL_KEY'] = KEY;
  server = await startChatServer(streamed('hello there, this is the answer'));
  ledger = memoryLedger();
});
afterEach(() => server.close());

const spec = (over: object = {}): LanguageModelSpec =>
  languageModelSchema.parse({ url: server.url, model: 'm', apiKeyEnv: 'TEST_MODEL_KEY', ...over });
const question: Question = { messages: [{ role: 'user', content: 'what is lacking?' }], seed: 7 };
const ask = (over: object = {}, asked: Partial<Question> = {}, more = {}) =>
  openLanguageModel('analyst', spec(over)).ask({ ...question, ...asked }, askingBy(ledger, more));
const failure = (type: string, message: RegExp, more: object = {}) => ({
  type,
  message: expect.stringMatching(message),
  ...more,
});

describe('a question', () => {
  test('is sent as the file says, without what is null there, as a stream, with its seed and key', async () => {
    const parameters = { reasoning_effort: 'low', max_tokens: null, max_completion_tokens: 9 };
    await ask({ temperature: 0.5, maxTokens: 64, parameters });
    expect(server.requests).toEqual([
      {
        authorization: `Bearer ${KEY}`,
        body: {
          model: 'm',
          messages: question.messages,
          temperature: 0.5,
          seed: 7,
          stream: true,
          stream_options: { include_usage: true },
          reasoning_effort: 'low',
          max_completion_tokens: 9,
        },
      },
    ]);
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

  test('that several have at once is asked once', async () => {
    server.play = streamed('one reply for all of them', { pauseMs: 5 });
    const replies = await Promise.all([1, 2, 3].map(() => ask()));
    expect(server.requests).toHaveLength(1);
    expect(new Set(replies.map(({ text }) => text))).toEqual(new Set(['one reply for all of them']));
    expect(ledger.steps).toEqual(['discovery']);
  });

  test('that failed for one who had it is asked by the next who waited', async () => {
    server.play = inOrder(answered(500, 'broken'), streamed('better'));
    const ended = await Promise.allSettled([ask(), ask()]);
    expect(ended.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(server.requests).toHaveLength(2);
  });

  test('whose asker is stopped stops, also while it waits for another one', async () => {
    server.play = written(event(chunk({ content: 'so far' })), 'is silent');
    const stops = [new AbortController(), new AbortController()];
    const asked = stops.map(({ signal }) => ask({}, {}, { signal }));
    const ended = Promise.allSettled(asked);
    setTimeout(() => stops[1]!.abort(new Error('stop two')), 50);
    setTimeout(() => stops[0]!.abort(new Error('stop one')), 100);
    expect((await ended).map((one) => (one as PromiseRejectedResult).reason.message)).toEqual(['stop one', 'stop two']);
    expect(ledger.kept.size).toBe(0);
  });

  test('needs a key when it is asked and not before', async () => {
    delete process.env['TEST_MODEL_KEY'];
    const model = openLanguageModel('synthesizer', spec());
    expect(model.id).toEqual({ model: 'm', temperature: 1, maxTokens: 32_000, parameters: {} });
    await expect(model.ask(question, askingBy(ledger))).rejects.toMatchObject(
      failure(
        'LanguageModelRejected',
        /^synthesizer \(m at http.*\): synthesizer\.apiKeyEnv is TEST_MODEL_KEY, and this variable is not set; set it/,
      ),
    );
    process.env['TEST_MODEL_KEY'] = 'two words';
    await expect(ask()).rejects.toMatchObject(failure('LanguageModelRejected', /holds characters that no key has/));
    expect(server.requests).toEqual([]);
  });
});

describe('a reply', () => {
  test('is put together from its pieces, with what the endpoint counts', async () => {
    server.play = streamed('hello there', { usage: usageOf(1000, 20, 900) });
    const usage = { promptTokens: 1000, cachedTokens: 900, completionTokens: 20 };
    expect(await ask()).toEqual({ text: 'hello there', finish: 'stop', usage });
  });

  test.each<[string, Play]>([
    ['one JSON completion', () => say('all at once')],
    ['a completion of text parts', () => ({ role: 'assistant', content: [{ type: 'text', text: 'all at once' }] })],
    ['a stream that is called plain text', answered(200, event(chunk({ content: 'all at once' }, 'stop')))],
    [
      'a stream with comments, and no limit line at its end',
      written(`: waiting\n\n${event(chunk({ content: 'all at once' }))}${event(chunk({}, 'stop'))}`),
    ],
  ])('may be %s', async (_, play) => {
    server.play = play;
    expect(await ask()).toMatchObject({ text: 'all at once', finish: 'stop' });
  });

  test('that is whole counts, though the connection is left open', async () => {
    server.play = written(event(chunk({ content: 'whole' }, 'stop')), 'is silent');
    expect(await ask({ timeoutSeconds: 1 })).toMatchObject({ text: 'whole', finish: 'stop' });
  });

  test('never holds the key, nor does anything that is kept', async () => {
    server.play = streamed(`your key is ${KEY}`, { piece: 3 });
    expect((await ask()).text).toBe('your key is (key)');
    expect(JSON.stringify([...ledger.kept])).not.toContain(KEY);
  });

  test('that is not counted is estimated by its characters, what was thought before it included', async () => {
    const thought = event(chunk({ reasoning_content: 'x'.repeat(40) }));
    server.play = written(`${thought}${event(chunk({ content: 'y'.repeat(8) }, 'stop'))}data: [DONE]\n\n`);
    const usage = { promptTokens: 4, cachedTokens: 0, completionTokens: 12 };
    expect(await ask()).toEqual({ text: 'yyyyyyyy', finish: 'stop', usage });
  });

  test('that was cut off or refused says so', async () => {
    server.play = streamed('half of', { finish: 'length' });
    expect(await ask()).toMatchObject({ text: 'half of', finish: 'length' });
    server.play = written(event(chunk({ refusal: 'I cannot help' }, 'stop')));
    expect(await ask({}, { seed: 1 })).toMatchObject({ text: 'I cannot help', finish: 'content_filter' });
  });
});

describe('a question whose reply always breaks off', () => {
  const half = written(event(chunk({ content: 'half' })));
  const asking = async (times: number) => {
    const failures: unknown[] = [];
    for (let n = 0; n < times; n++) failures.push(await ask().catch((error: unknown) => error));
    return failures;
  };
  const again = { type: 'LanguageModelFailed', retryable: true };
  const noMore = failure('RepliesLost', /broke off.*; 5 times in a row.*raise analyst\.timeoutSeconds \(300\)/, {
    retryable: false,
  });

  test('is asked five times, and then no more until somebody begins anew', async () => {
    server.play = half;
    expect(await asking(6)).toMatchObject([again, again, again, again, noMore, again]);
  });

  test('is not mistaken for an endpoint that is down', async () => {
    server.play = answered(500, 'no');
    for (const one of await asking(7)) expect(one).toMatchObject(again);
  });

  test('may break off again once there was a reply', async () => {
    server.play = inOrder(half, half, half, half, streamed('whole'), half, half);
    expect(await asking(5)).toMatchObject([again, again, again, again, { text: 'whole' }]);
    ledger.kept.clear();
    expect(await asking(2)).toMatchObject([again, again]);
  });
});

describe('an endpoint that fails', () => {
  const unavailable = (status: number, more: object = {}) =>
    failure('LanguageModelUnavailable', new RegExp(`^analyst \\(m at http.*\\): ${status} `), {
      retryable: true,
      ...more,
    });

  test.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after-ms': '2500', 'retry-after': '3' }, 2500],
    [{}, undefined],
    [{ 'retry-after': 'soon' }, undefined],
  ])('for want of capacity, told %j', async (headers, retryAfterMs) => {
    server.play = answered(429, JSON.stringify({ error: { message: 'slow down' } }), headers as Record<string, string>);
    await expect(ask()).rejects.toMatchObject(unavailable(429, { retryAfterMs }));
  });

  test.each([408, 504])('with %i, for now', async (status) => {
    server.play = answered(status, page, { 'content-type': 'text/html' });
    await expect(ask()).rejects.toMatchObject(unavailable(status));
    await expect(ask()).rejects.not.toMatchObject({ message: expect.stringContaining('<html') });
  });

  test('that is not there', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    await expect(ask({ url: `http://127.0.0.1:${port}/v1` })).rejects.toMatchObject(
      failure('LanguageModelUnavailable', /ECONNREFUSED/),
    );
  });

  test.each<[string, Play, RegExp]>([
    ['with 500', answered(500, JSON.stringify({ error: { message: 'oops' } })), /500 oops$/],
    [
      'by a page of a proxy with status 200',
      answered(200, page, { 'content-type': 'text/html' }),
      /an HTML page \("Sign in"\) and no chat completion; .* correct analyst\.url/,
    ],
    ['by JSON that is no completion', answered(200, '{"ok":true}'), /no chat completion: choices/],
    ['by nothing', answered(200, ''), /the answer is empty/],
    ['by a stream of other things', written('data: {"choices": "none"}\n\n'), /no chat completion: choices/],
    ['by a malformed stream', written('data: {"choices": [{"del\n\ndata: x\n\n'), /JSON/],
    ['by an empty stream', written('data: [DONE]\n\n'), /broke off after 0 characters/],
    ['by a stream without an end', written(event(chunk({ content: 'half' }))), /broke off after 4 characters/],
    [
      'by a connection that breaks',
      written(event(chunk({ content: 'half' })), 'breaks off'),
      /other side closed|broke off/,
    ],
    ['by an error in the stream', written(event({ error: { message: 'overloaded' } })), /overloaded/],
    ['by going on for ever', streamed('z'.repeat(150_000), { piece: 9000 }), /longer than 2 tokens can be/],
  ])('%s', async (_, play, message) => {
    server.play = play;
    await expect(ask({ maxTokens: 2 })).rejects.toMatchObject(
      failure('LanguageModelFailed', message, { retryable: true }),
    );
    expect(ledger.kept.size).toBe(0);
  });

  test('and says in its body what its status does not', async () => {
    server.play = answered(200, JSON.stringify({ error: { code: 429, message: 'try later' } }));
    await expect(ask()).rejects.toMatchObject(failure('LanguageModelUnavailable', /try later/));
  });

  test.each<[string, Play]>([
    ['before the first word', () => new Promise<undefined>(() => undefined)],
    ['in the middle', written(event(chunk({ content: 'half' })), 'is silent')],
  ])('by silence %s', async (_, play) => {
    server.play = play;
    await expect(ask({ timeoutSeconds: 1 })).rejects.toMatchObject(
      failure('LanguageModelFailed', /no word of a reply for 1 s \(analyst\.timeoutSeconds\)/),
    );
  });

  test('is not silent as long as it says something', async () => {
    server.play = streamed('slow but steady', { piece: 3, pauseMs: 400 });
    expect(await ask({ timeoutSeconds: 1 })).toMatchObject({ text: 'slow but steady' });
  }, 15_000);

  test.each<[number, object, object, RegExp]>([
    [401, { message: `Incorrect API key: ${KEY}` }, {}, /put a key that is valid there into TEST_MODEL_KEY$/],
    [
      401,
      { message: 'no key' },
      { apiKeyEnv: undefined },
      /name the variable that holds its key in analyst\.apiKeyEnv$/,
    ],
    [404, { message: 'model m does not exist' }, {}, /correct analyst\.model or analyst\.url$/],
    [402, { message: 'no credit' }, {}, /add credit to its account$/],
    [429, { message: 'quota', code: 'insufficient_quota' }, {}, /add credit to its account$/],
    [400, { message: 'maximum context length is 8 tokens' }, {}, /lower analyst\.contextTokens \(128000\)/],
    [
      400,
      { message: "Unsupported parameter: 'max_tokens' is not supported with this model" },
      {},
      /set analyst\.parameters: \{max_tokens: null, max_completion_tokens: N\}$/,
    ],
    [400, { message: 'temperature must be 1' }, {}, /set analyst\.parameters: \{temperature: null\}$/],
    [422, { message: 'what?' }, {}, /correct analyst\.model or analyst\.parameters$/],
  ])('for good, with %i %j', async (status, error, over, message) => {
    server.play = answered(status, JSON.stringify({ error }));
    const thrown = (await ask(over).catch((e: unknown) => e)) as Error;
    expect(thrown).toMatchObject(failure('LanguageModelRejected', message, { retryable: false }));
    expect(JSON.stringify([thrown.message, thrown.stack, thrown.cause ?? ''])).not.toContain(KEY);
  });

  test('for want of capacity until a date', async () => {
    const at = new Date(Date.now() + 3_600_000);
    server.play = answered(503, 'later', { 'retry-after': at.toUTCString() });
    const error = (await ask().catch((e: unknown) => e)) as { retryAfterMs: number };
    expect(error).toMatchObject(unavailable(503));
    expect(error.retryAfterMs / 3_600_000).toBeCloseTo(1, 1);
  });
});

describe('the way to an endpoint', () => {
  const askMany = (n: number, over: object) =>
    Promise.all(Array.from({ length: n }, (_, seed) => ask(over, { seed: 100 + seed })));

  test('is one for all that ask there, however often they are opened', async () => {
    server.play = streamed('x', { pauseMs: 20 });
    await askMany(8, { concurrency: 3 });
    expect(server.requests).toHaveLength(8);
    expect(server.atOnce).toBe(3);
  });

  test('lets so many requests begin within a minute', async () => {
    const stop = new AbortController();
    const more = { signal: stop.signal };
    const asked = [1, 2, 3].map((seed) => ask({ model: 'limited', requestsPerMinute: 2 }, { seed }, more));
    const ended = Promise.allSettled(asked);
    await Promise.all(asked.slice(0, 2));
    stop.abort(new Error('enough'));
    expect((await ended).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(server.requests).toHaveLength(2);
  });

  test('is narrower while the endpoint says that it is too much', async () => {
    const busy = JSON.stringify({ error: { message: 'busy' } });
    server.play = inOrder(answered(429, busy, { 'retry-after-ms': '300' }), streamed('x', { pauseMs: 20 }));
    await expect(ask({ concurrency: 4 })).rejects.toMatchObject({ retryAfterMs: 300 });
    await askMany(4, { concurrency: 4 });
    expect(server.atOnce).toBeLessThan(4);
  });

  test('is left alone for as long as the endpoint says: nobody waits for that in silence', async () => {
    server.play = answered(429, 'later', { 'retry-after': '120' });
    await expect(ask()).rejects.toMatchObject({ retryAfterMs: 120_000 });
    const second = (await ask({}, { seed: 8 }).catch((e: unknown) => e)) as { retryAfterMs: number };
    expect(second).toMatchObject(failure('LanguageModelUnavailable', /asked to be left alone for another 1\d\d s$/));
    expect(second.retryAfterMs).toBeLessThanOrEqual(120_000);
    expect(server.requests).toHaveLength(1);
  });
});
