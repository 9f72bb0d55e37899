/** Requests in OpenAI's form, to the gateway and to agents' endpoint: null, and what is empty, is what absent is, in every field that may be left out. */
import { bodyFor, parseRequest } from '../../../src/gateway/request';

const read = (body: unknown) => parseRequest(JSON.stringify(body));
/** What the policy server is asked for a body, and the conversation that a rollout holds. */
const meaning = (body: unknown) => {
  const request = read(body);
  const { messages, tools, stream, user, stream_options } = request;
  return JSON.parse(JSON.stringify([bodyFor(request), messages, tools, stream, user, stream_options])) as unknown;
};
const user = { role: 'user', content: 'a book' };
const body = { model: 'trace', messages: [user] };

/** Fields that the server reads or refuses, and some that it does not know. */
const OPTIONAL = [
  ...['tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call', 'response_format'],
  ...['max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'seed', 'stop', 'n'],
  ...['repetition_penalty', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'top_logprobs'],
  ...['stream', 'stream_options', 'user', 'metadata', 'store', 'audio', 'reasoning_effort', 'extra_body'],
];
test.each(OPTIONAL)('null in %s, and what is empty, is what absent is', (name) => {
  for (const value of [null, '', [], {}]) expect(meaning({ ...body, [name]: value })).toEqual(meaning(body));
});

test('null in fields of messages and tools is what absent is', () => {
  const answer = { role: 'assistant', content: 'I look' };
  const nulls = { refusal: null, tool_calls: null, function_call: null, audio: null, name: null };
  const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
  const asked = (message: object, more: object) => ({
    ...{ model: 'trace', messages: [user, { ...answer, ...message }, user] },
    tools: [{ ...tool, function: { ...tool.function, ...more } }],
  });
  expect(meaning(asked(nulls, { description: null, annotations: null }))).toEqual(meaning(asked({}, {})));
});

it('asks for the ids of calls and results', () => {
  const call = { function: { name: 'look', arguments: null } };
  const messagesOf = (...more: object[]) => ({ model: 'x', messages: [user, ...more] });
  expect(() => read(messagesOf({ role: 'tool', content: 'b' }))).toThrow(
    expect.objectContaining({ status: 400, more: { param: 'messages.1.tool_call_id' } }),
  );
  expect(() => read(messagesOf({ role: 'assistant', tool_calls: [call] }))).toThrow(
    expect.objectContaining({ status: 400, more: { param: 'messages.1.tool_calls.0.id' } }),
  );
  const { messages } = read(messagesOf({ role: 'assistant', tool_calls: [{ ...call, id: 'a' }] }));
  expect(messages[1]).toMatchObject({ toolCalls: [{ id: 'a', arguments: {} }] });
});

it('names the field of a text that is not valid Unicode', () => {
  const half = { model: 'trace', messages: [{ role: 'user', content: 'cut \ud83d' }] };
  expect(() => read(half)).toThrow(/^messages\.0\.content holds half/);
  expect(() => read({ ...body, unread: '\ud83d' })).not.toThrow();
});
