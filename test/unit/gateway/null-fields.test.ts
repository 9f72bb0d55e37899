/** Requests in OpenAI's form, to the gateway and to agents' endpoint: null, and what is empty, is what absent is, in every field that may be left out. */
import { bodyFor, contextIn, parseRequest, passedOf } from '../../../src/gateway/request';

const read = (body: unknown) => parseRequest(JSON.stringify(body));
const reads = (body: unknown): boolean => {
  try {
    return Boolean(read(body));
  } catch {
    return false;
  }
};
/** All that a body comes to: what the policy server is asked, and the conversation that a rollout holds. */
const meaning = (body: unknown) => {
  const request = read(body);
  const { stream, user, stream_options } = request;
  return JSON.parse(JSON.stringify([bodyFor(request), contextIn(request), stream, user, stream_options])) as unknown;
};

const call = (id: string, text: string) => ({ id, type: 'function', function: { name: 'look', arguments: text } });
/** Every field that clients of OpenAI send, and some that are made up. */
const FULL = {
  model: 'trace',
  messages: [
    { role: 'system', content: 'be brief', name: 'rules' },
    { role: 'developer', content: [{ type: 'text', text: 'so', annotations: [] }], name: 'x' },
    { role: 'user', content: 'a book', name: 'ann', weight: 1 },
    {
      role: 'assistant',
      content: 'I look',
      name: 'agent',
      refusal: 'no',
      audio: { id: 'a' },
      annotations: [{ type: 'url_citation' }],
      reasoning_content: 'hm',
      tool_calls: [call('call_0', '{}'), call('call_1', '{}')],
    },
    { role: 'tool', tool_call_id: 'call_0', content: 'seen', name: 'look', artifact: {} },
    { role: 'tool', tool_call_id: 'call_1', content: 'gone' },
    { role: 'user', content: 'on' },
  ],
  tools: [
    {
      type: 'function',
      function: { name: 'look', description: 'looks', parameters: { type: 'object' }, strict: true },
    },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  max_tokens: 5,
  max_completion_tokens: 5,
  temperature: 0.5,
  top_p: 0.5,
  top_k: 5,
  min_p: 0.1,
  repetition_penalty: 1.1,
  presence_penalty: 0.1,
  frequency_penalty: 0.1,
  seed: 1,
  stop: ['END'],
  response_format: { type: 'text' },
  modalities: ['text'],
  logprobs: true,
  top_logprobs: 1,
  n: 1,
  stream: true,
  stream_options: { include_usage: true, include_obfuscation: false },
  user: 'ann',
  metadata: { a: 'b' },
  store: false,
  service_tier: 'auto',
  reasoning_effort: 'low',
  verbosity: 'low',
  prediction: { type: 'content', content: 'x' },
  audio: { voice: 'x', format: 'wav' },
  web_search_options: {},
  safety_identifier: 'x',
  prompt_cache_key: 'x',
  extra_body: {},
};

type Path = (string | number)[];
/** Places of all fields of objects, but for those of a tool's own schema and of what is passed on as it is. */
const pathsIn = (value: unknown, path: Path = []): Path[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([name, one]) => {
        const at = [...path, Array.isArray(value) ? Number(name) : name];
        const isOpaque = ['parameters', 'response_format'].includes(name);
        return [...(Array.isArray(value) ? [] : [at]), ...(isOpaque ? [] : pathsIn(one, at))];
      });
function changed(path: Path, change: (object: Record<string, unknown>, name: string) => void): unknown {
  const body = structuredClone(FULL) as unknown;
  const object = path.slice(0, -1).reduce((at, name) => (at as Record<string, unknown>)[name], body);
  change(object as Record<string, unknown>, String(path.at(-1)));
  return body;
}
const without = (path: Path) => changed(path, (object, name) => delete object[name]);
const holding = (path: Path, value: unknown) => changed(path, (object, name) => void (object[name] = value));

const REQUIRED = ['model', 'messages', 'role', 'text', 'name', 'function', 'type'];
const all = pathsIn(FULL);
const paths = all.filter((path) => reads(without(path)));

test('the walk covers every field that is passed on, and leaves out only those that are required', () => {
  expect(Object.keys(passedOf(read(FULL))).filter((name) => !(name in FULL))).toEqual([]);
  const left = all.filter((path) => !paths.includes(path));
  expect(left.filter((path) => !REQUIRED.includes(String(path.at(-1))) && path.at(-1) !== 'content')).toEqual([]);
  expect(left.filter((path) => path.at(-1) === 'content').map(([, n]) => n)).toEqual([0, 1, 2, 6]);
});

test.each(paths.map((path) => [path.join('.'), path] as const))('null in %s is what absent is', (_, path) => {
  expect(meaning(holding(path, null))).toEqual(meaning(without(path)));
});

test('calls and results without ids are numbered through the conversation, and answer each other in order', () => {
  const bare = { function: { name: 'look', arguments: null } };
  const { messages } = read({
    model: 'x',
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { ...bare, id: null },
          { ...bare, id: '' },
        ],
      },
      { role: 'tool', tool_call_id: null, content: null },
      { role: 'tool', tool_call_id: 'call_1', content: 'b' },
      { role: 'assistant', tool_calls: [bare] },
      { role: 'tool', content: 'c' },
    ],
  });
  expect(messages).toMatchObject([
    {},
    {
      content: null,
      tool_calls: [
        { id: 'call_0', function: { arguments: '{}' } },
        { id: 'call_1', type: 'function' },
      ],
    },
    { tool_call_id: 'call_0', content: '' },
    { tool_call_id: 'call_1' },
    { tool_calls: [{ id: 'call_2' }] },
    { tool_call_id: 'call_2' },
  ]);
  const lost = {
    model: 'x',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'tool', content: 'b' },
    ],
  };
  expect(() => read(lost)).toThrow(
    expect.objectContaining({ status: 400, more: { param: 'messages.1.tool_call_id' } }),
  );
});

test('values are bounded in the body and in the arguments of its calls, and neither is parsed beyond', () => {
  const many = `[${'{},'.repeat(2e6)}{}]`;
  const asking = (text: string) => ({
    model: 'x',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', tool_calls: [call('a', text), call('b', text)] },
    ],
  });
  const half = `{"rows":[${'1,'.repeat(60_000)}1]}`;
  const bodies: [body: string, param: string | undefined][] = [
    [`{"model":"x","messages":${many}}`, 'messages'],
    [many, undefined],
    [JSON.stringify(asking(many)), 'messages.1.tool_calls'],
    [JSON.stringify(asking(half)), 'messages.1.tool_calls'],
  ];
  const parsed = jest.spyOn(JSON, 'parse');
  try {
    for (const [n, [body, param]] of bodies.entries()) {
      parsed.mockClear();
      expect(() => parseRequest(body)).toThrow(
        expect.objectContaining({ status: 400, more: { param: param ?? null } }),
      );
      expect(parsed).toHaveBeenCalledTimes(n < 2 ? 0 : 1);
    }
  } finally {
    parsed.mockRestore();
  }
});

it('names the field of a text that is not valid Unicode', () => {
  const half = { model: 'trace', messages: [{ role: 'user', content: 'cut \ud83d' }] };
  expect(() => read(half)).toThrow(/^messages\.0\.content holds half/);
  expect(reads({ ...half, messages: [{ role: 'user', content: 'whole \ud83d\ude00' }], unread: '\ud83d' })).toBe(true);
});
