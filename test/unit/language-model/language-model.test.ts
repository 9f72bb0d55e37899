/** A language model over HTTP: what is sent, what a reply is, what is asked once; and everything that an endpoint may do badly. */
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
    const body = {
      ...{ model: 'm', messages: question.messages, temperature: 0.5, seed: 7 },
      ...{ stream: true, stream_options: { include_usage: true } },
      ...{ reasoning_effort: 'low', max_completion_tokens: 9 },
    };
    expect(server.requests).toEqual([{ authorization: `Bearer ${KEY}`, body }]);
  });

  test('has a reply of whole characters, also where pieces of the stream end within one', async () => {
    server.play = streamed('a \ud83d\ude00 b \ud83d c', { piece: 3 });
    expect((await ask()).text).toBe('a \u{1F600} b \uFFFD c');
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
  const thought = event(chunk({ reasoning_content: 'x'.repeat(40) }));
  const usage = { promptTokens: 100, cachedTokens: 0, completionTokens: 10 };
  /** The prompt has 16 characters. */
  const estimated = (completionTokens: number) => ({ promptTokens: 4, cachedTokens: 0, completionTokens });

  test.each<[string, Play, object]>([
    [
      'pieces, with what the endpoint counts',
      streamed('all at once', { usage: usageOf(1000, 20, 900) }),
      { text: 'all at once', finish: 'stop', usage: { promptTokens: 1000, cachedTokens: 900, completionTokens: 20 } },
    ],
    ['one JSON completion', () => say('all at once'), { text: 'all at once', finish: 'stop' }],
    [
      'a completion of text parts',
      () => ({ role: 'assistant', content: [{ type: 'text', text: 'all at once' }] }),
      { text: 'all at once', finish: 'stop' },
    ],
    [
      'a stream that is called plain text',
      answered(200, event(chunk({ content: 'all at once' }, 'stop'))),
      { text: 'all at once', finish: 'stop' },
    ],
    [
      'a stream with comments, and no limit line at its end',
      written(`: waiting\n\n${event(chunk({ content: 'all at once' }))}${event(chunk({}, 'stop'))}`),
      { text: 'all at once', finish: 'stop' },
    ],
    [
      'not counted: it is estimated by its characters, what was thought before it included',
      written(`${thought}${event(chunk({ content: 'y'.repeat(8) }, 'stop'))}data: [DONE]\n\n`),
      { text: 'yyyyyyyy', finish: 'stop', usage: estimated(12) },
    ],
    ['cut off', streamed('half of', { finish: 'length' }), { text: 'half of', finish: 'length', usage }],
    [
      'a refusal',
      written(event(chunk({ refusal: 'I cannot help' }, 'stop'))),
      { text: 'I cannot help', finish: 'content_filter' },
    ],
  ])('may be %s', async (_, play, reply) => {
    server.play = play;
    expect(await ask()).toMatchObject(reply);
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
  const json = (error: object) => JSON.stringify({ error });
  const html = { 'content-type': 'text/html' };
  const busy = { message: 'slow down' };

  test.each<[string, Play, RegExp, number | undefined]>([
    ['429, for 7 s', answered(429, json(busy), { 'retry-after': '7' }), /429 slow down$/, 7000],
    [
      '429, for 2.5 s',
      answered(429, json(busy), { 'retry-after-ms': '2500', 'retry-after': '3' }),
      /429 slow down$/,
      2500,
    ],
    ['429', answered(429, json(busy)), /429 slow down$/, undefined],
    ['429, until "soon"', answered(429, json(busy), { 'retry-after': 'soon' }), /429 slow down$/, undefined],
    ['408', answered(408, page, html), /408 (?![^]*<html)/, undefined],
    ['504', answered(504, page, html), /504 (?![^]*<html)/, undefined],
    ['by the code in its body', answered(200, json({ code: 429, message: 'try later' })), /.*try later/, undefined],
  ])('for now: %s', async (_, play, message, retryAfterMs) => {
    server.play = play;
    const told = new RegExp(`^analyst \\(m at http.*\\): ${message.source}`);
    await expect(ask()).rejects.toMatchObject(
      failure('LanguageModelUnavailable', told, { retryable: true, retryAfterMs }),
    );
  });

  test('until a date', async () => {
    const at = new Date(Date.now() + 3_600_000);
    server.play = answered(503, 'later', { 'retry-after': at.toUTCString() });
    const error = (await ask().catch((e: unknown) => e)) as { retryAfterMs: number };
    expect(error).toMatchObject(failure('LanguageModelUnavailable', /503 /, { retryable: true }));
    expect(error.retryAfterMs / 3_600_000).toBeCloseTo(1, 1);
  });

  test('that is not there', async () => {
    await server.close();
    await expect(ask()).rejects.toMatchObject(failure('LanguageModelUnavailable', /ECONNREFUSED/));
  });

  const half = event(chunk({ content: 'half' }));
  const silence = /no word of a reply for 1 s \(analyst\.timeoutSeconds\)/;
  test.each<[string, Play, RegExp]>([
    ['500', answered(500, json({ message: 'oops' })), /500 oops$/],
    [
      'a page of a proxy with status 200',
      answered(200, page, html),
      /an HTML page \("Sign in"\) and no chat completion; .* correct analyst\.url/,
    ],
    ['JSON that is no completion', answered(200, '{"ok":true}'), /no chat completion: choices/],
    ['nothing', answered(200, ''), /the answer is empty/],
    ['a stream of other things', written('data: {"choices": "none"}\n\n'), /no chat completion: choices/],
    ['a malformed stream', written('data: {"choices": [{"del\n\ndata: x\n\n'), /JSON/],
    ['an empty stream', written('data: [DONE]\n\n'), /broke off after 0 characters/],
    ['a stream without an end', written(half), /broke off after 4 characters/],
    ['a connection that breaks', written(half, 'breaks off'), /other side closed|broke off/],
    ['an error in the stream', written(event({ error: { message: 'overloaded' } })), /overloaded/],
    ['going on for ever', streamed('z'.repeat(150_000), { piece: 9000 }), /longer than 2 tokens can be/],
    ['silence before the first word', () => new Promise<undefined>(() => undefined), silence],
    ['silence in the middle', written(half, 'is silent'), silence],
  ])('by %s', async (_, play, message) => {
    server.play = play;
    const lost = failure('LanguageModelFailed', message, { retryable: true });
    const timeoutSeconds = message === silence ? 1 : 300;
    await expect(ask({ maxTokens: 2, timeoutSeconds })).rejects.toMatchObject(lost);
    expect(ledger.kept.size).toBe(0);
  });

  test('is not silent as long as it says something', async () => {
    server.play = streamed('slow but steady', { piece: 3, pauseMs: 400 });
    expect(await ask({ timeoutSeconds: 1 })).toMatchObject({ text: 'slow but steady' });
  });

  const unsupported = "Unsupported parameter: 'max_tokens' is not supported with this model";
  const keyless = { apiKeyEnv: undefined };
  test.each<[number, object, object, RegExp]>([
    [401, { message: `Incorrect API key: ${KEY}` }, {}, /put a key that is valid there into TEST_MODEL_KEY$/],
    [401, { message: 'no key' }, keyless, /name the variable that holds its key in analyst\.apiKeyEnv$/],
    [404, { message: 'model m does not exist' }, {}, /correct analyst\.model or analyst\.url$/],
    [402, { message: 'no credit' }, {}, /add credit to its account$/],
    [429, { message: 'quota', code: 'insufficient_quota' }, {}, /add credit to its account$/],
    [400, { message: 'maximum context length is 8 tokens' }, {}, /lower analyst\.contextTokens \(128000\)/],
    [400, { message: unsupported }, {}, /set analyst\.parameters: \{max_tokens: null, max_completion_tokens: N\}$/],
    [400, { message: 'temperature must be 1' }, {}, /set analyst\.parameters: \{temperature: null\}$/],
    [422, { message: 'what?' }, {}, /correct analyst\.model or analyst\.parameters$/],
  ])('for good, with %i %j', async (status, error, over, message) => {
    server.play = answered(status, json(error));
    const thrown = (await ask(over).catch((e: unknown) => e)) as Error;
    expect(thrown).toMatchObject(failure('LanguageModelRejected', message, { retryable: false }));
    expect(JSON.stringify([thrown.message, thrown.stack, thrown.cause ?? ''])).not.toContain(KEY);
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
