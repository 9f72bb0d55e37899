/** Streams are passed on as the policy server sends them, in both forms; and what happens when one breaks, is refused, or is read by nobody any more. */
import Anthropic from '@anthropic-ai/sdk';
import { once } from 'node:events';
import OpenAI from 'openai';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ArtifactStore } from '../../../src/artifacts/store';
import { completion, type DialectServer, refuse, startDialectServer } from '../../support/dialect-server';
import { fitByWords, startGateway } from '../../support/gateway';
import { temporaryStore } from '../../support/temporary-store';

let store: ArtifactStore;
temporaryStore((opened) => (store = opened));
let server: DialectServer;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let openai: OpenAI;
let anthropic: Anthropic;

beforeEach(async () => {
  server = await startDialectServer();
  gateway = await startGateway({ store, router: await fitByWords(store), url: server.url });
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 });
});
afterEach(async () => {
  await gateway.close();
  await server.close();
});

const messages = [{ role: 'user' as const, content: 'a book' }];
const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason, ...more }],
});
const usage = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } };
/** Ends a policy server's answer in another way than with its last event. */
type End = 'nothing more' | 'broken' | 'open';

/** As vLLM streams; after each event it waits for `heard`. */
function stream(events: object[], { end, heard }: { end?: End; heard?: () => Promise<unknown> } = {}): void {
  server.complete = async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of [chunk({ role: 'assistant', content: '' }), ...events]) {
      response.write(`data: ${JSON.stringify(event)}\n\n`);
      await heard?.();
    }
    if (end === 'broken') response.destroy();
    else if (end === 'open') await once(response, 'close');
    else response.end(end === undefined ? 'data: [DONE]\n\n' : '');
  };
}

/** The texts that a client hears, in either form. */
const heardBy = {
  async *openai() {
    const asked = { model: 'trace', messages, stream: true as const };
    for await (const { choices } of await openai.chat.completions.create(asked))
      if (choices[0]?.delta.content) yield choices[0].delta.content;
  },
  async *anthropic() {
    const asked = { model: 'trace', messages, max_tokens: 9, stream: true as const };
    for await (const event of await anthropic.messages.create(asked))
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text;
  },
};
const forms = ['openai', 'anthropic'] as const;
const all = async (texts: AsyncIterable<string>) => {
  const found: string[] = [];
  for await (const text of texts) found.push(text);
  return found;
};

test.each(forms)('%s: each token is heard before the next one is sampled', async (form) => {
  let hear = (): void => undefined;
  let next = Promise.resolve();
  const words = ['to', 'be', 'or', 'not'];
  let sent = 0;
  // The first event has no words; each of the others waits until the client has its word.
  const heard = () => (++sent === 1 ? Promise.resolve() : next);
  const expectOne = () => (next = new Promise((resolve) => (hear = resolve)));
  expectOne();
  stream(words.map((content) => chunk({ content })).concat(chunk({}, 'stop')), {
    heard: () => (sent > words.length ? Promise.resolve() : heard()),
  });
  const found: string[] = [];
  for await (const word of heardBy[form]()) {
    found.push(word);
    expect(sent).toBe(found.length + 1);
    const go = hear;
    expectOne();
    go();
  }
  expect(found).toEqual(words);
});

test('calls come in parts, are numbered through the conversation, and usage is told', async () => {
  const call = (index: number, name: string | undefined, text: string) =>
    chunk({ tool_calls: [{ index, ...(name && { id: 'x', type: 'function' }), function: { name, arguments: text } }] });
  stream([
    chunk({ content: 'I look' }),
    ...[call(0, 'look', ''), call(0, undefined, '{"at"'), call(0, undefined, ':1}'), call(1, 'look', '{}')],
    ...[chunk({}, 'tool_calls'), usage],
  ]);
  const before = [
    ...messages,
    {
      role: 'assistant' as const,
      tool_calls: [{ id: 'call_0', type: 'function' as const, function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool' as const, tool_call_id: 'call_0', content: 'seen' },
  ];
  const asked = { model: 'trace', messages: before, stream_options: { include_usage: true } };
  const said = await openai.chat.completions.stream(asked).finalChatCompletion();
  expect(said).toMatchObject({
    choices: [
      {
        finish_reason: 'tool_calls',
        message: {
          content: 'I look',
          tool_calls: [{ id: 'call_1', function: { name: 'look', arguments: '{"at":1}' } }, { id: 'call_2' }],
        },
      },
    ],
    usage: { total_tokens: 5 },
  });
  const told = await anthropic.messages.stream({ model: 'trace', messages, max_tokens: 9 }).finalMessage();
  expect(told).toMatchObject({
    content: [{ text: 'I look' }, { type: 'tool_use', id: 'call_0', input: { at: 1 } }, { id: 'call_1', input: {} }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 3, output_tokens: 2 },
  });
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toMatch(/gateway_tokens_total\{policy="books",kind="completion"\} 4/);
});

test.each(forms)('%s: a call that can’t be read, log-probs, and a reason to stop', async (form) => {
  stream([
    chunk({ content: 'so' }, null, { logprobs: { content: [{ token: 'so', logprob: -1 }] } }),
    chunk({ tool_calls: [{ index: 0, id: 'x', function: { name: 'look', arguments: '{' } }] }),
    chunk({}, 'stop', { stop_reason: 'END' }),
  ]);
  if (form === 'openai') {
    const asked = { model: 'trace', messages, logprobs: true };
    const { choices } = await openai.chat.completions.stream(asked).finalChatCompletion();
    expect(choices[0]).toMatchObject({ logprobs: { content: [{ token: 'so', logprob: -1 }] }, finish_reason: 'stop' });
    expect(choices[0]!.message.tool_calls).toMatchObject([{ function: { arguments: '{' } }]);
  } else {
    const told = await anthropic.messages.stream({ model: 'trace', messages, max_tokens: 9 }).finalMessage();
    expect(told).toMatchObject({
      content: [{ type: 'text', text: 'so\nlook({)' }],
      ...{ stop_reason: 'stop_sequence', stop_sequence: 'END' },
    });
  }
});

const failing: [string, object[], End | undefined][] = [
  ['breaks', [chunk({ content: 'so' })], 'broken'],
  ['ends without a reason', [chunk({ content: 'so' })], 'nothing more'],
  ['is given up', [chunk({ content: 'so' }), chunk({}, 'abort')], undefined],
  ['ends with an error', [chunk({ content: 'so' }), { error: { message: 'lost 10.0.0.1', code: 500 } }], undefined],
];
test.each(forms.flatMap((form) => failing.map((one) => [form, ...one] as const)))(
  '%s: a stream that %s is an error to its client, without where the server is',
  async (form, _, events, end) => {
    stream(events, end ? { end } : {});
    const found: string[] = [];
    const reading = (async () => {
      for await (const text of heardBy[form]()) found.push(text);
    })();
    await expect(reading).rejects.toThrow(/the policy server does not answer/);
    // What came just before a connection broke may be lost with it.
    if (end !== 'broken') expect(found).toEqual(['so']);
    stream([chunk({ content: 'again' }), chunk({}, 'stop')]);
    expect(await all(heardBy[form]())).toEqual(['again']);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/status="50[23]"\} 1/);
    expect(metrics).toMatch(/gateway_running 0/);
  },
);

test('what is wrong before the first event has its own status', async () => {
  server.complete = refuse(400, { message: 'messages: too many', code: 'context_length_exceeded' });
  await expect(all(heardBy.openai())).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' });
  await expect(all(heardBy.anthropic())).rejects.toMatchObject({ status: 400, type: 'invalid_request_error' });
});

test('streams that end in a packet of its own, as vLLM’s do, leave their connection to the next one', async () => {
  server.complete = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: ${JSON.stringify(chunk({ content: 'so' }, 'stop'))}\n\n`);
    response.write('data: [DONE]\n\n');
    setTimeout(() => response.end(), 5);
  };
  for (let n = 0; n < 10; n++) {
    expect(await all(heardBy.openai())).toEqual(['so']);
    await sleep(50); // until its end has come
  }
  expect(server.connections()).toBeLessThan(5);
});

test('a client that leaves ends the stream at the policy server', async () => {
  let ended: Promise<unknown> | undefined;
  stream([chunk({ content: 'so' })], { end: 'open' });
  const { complete } = server;
  server.complete = (body, response) => {
    ended = once(response, 'close');
    return complete(body, response);
  };
  for await (const text of heardBy.openai()) {
    expect(text).toBe('so');
    break;
  }
  await ended;
});

test('a policy server that has no streams is asked for whole answers, and found out once', async () => {
  const asked: unknown[] = [];
  server.complete = (body, response) => {
    asked.push(body['stream']);
    return body['stream']
      ? refuse(400, { message: 'stream True: must be False', param: 'stream' })(body, response)
      : completion({ content: 'whole' });
  };
  for (const form of forms) expect(await all(heardBy[form]())).toEqual(['whole']);
  expect(asked).toEqual([true, undefined, undefined]);
});
