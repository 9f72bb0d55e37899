/** Logs of several dialects and of odd shapes: what was said or done is read, refused by name, or noted. */
import { readFileSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { mapLeaves } from '../../../src/conversations/json';
import { readConversations } from '../../../src/conversations/read';
import type { Message } from '../../../src/domain/messages';
import { fileOf } from '../../support/analyse-endpoint';

const read = (...lines: (object | string)[]) => readConversations({ files: [fileOf(lines)] });

async function readOne(messages: object[], line: object = {}): Promise<{ messages: Message[]; notes: string }> {
  const { conversations, notes } = await read({ messages, passed: true, ...line });
  return { messages: conversations[0]!.messages, notes: notes.join('\n') };
}
const user = { role: 'user', content: 'hello' };
const renew = { name: 'renew', arguments: { card: '7' } };

describe('one conversion reads', () => {
  it.each<[what: string, raw: object[], read: object[], note: string]>([
    [
      'calls and results of Anthropic, several in a message',
      [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 's' },
            { type: 'redacted_thinking', data: 'x' },
            { type: 'text', text: 'I look.' },
            { type: 'tool_use', id: 't1', name: 'renew', input: { card: '7' } },
            { type: 'tool_use', id: 't2', name: 'look', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 't2', is_error: true, content: 'no such card' },
            {
              type: 'tool_result',
              tool_use_id: 't1',
              content: [
                { type: 'text', text: 'renewed' },
                { type: 'image', source: {} },
              ],
            },
            { type: 'text', text: 'And now?' },
          ],
        },
      ],
      [
        {
          role: 'assistant',
          content: 'I look.',
          toolCalls: [
            { id: 't1', ...renew },
            { id: 't2', name: 'look', arguments: {} },
          ],
        },
        { role: 'tool', toolCallId: 't2', content: 'error: no such card' },
        { role: 'tool', toolCallId: 't1', content: 'renewed\n[image]' },
        { role: 'user', content: 'And now?' },
      ],
      'content of type thinking is left out (1)',
    ],
    [
      'one call in function_call and its result by name',
      [
        { role: 'assistant', content: null, function_call: { name: 'renew', arguments: '{"card":"7"}' } },
        { role: 'function', name: 'renew', content: 'no such card' },
      ],
      [
        { role: 'assistant', content: '', toolCalls: [{ id: expect.any(String), ...renew }] },
        { role: 'tool', toolCallId: expect.any(String), content: 'no such card' },
      ],
      '',
    ],
    [
      'refusals and what was said aloud',
      [
        { role: 'assistant', content: null, refusal: 'I may not.' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'Nor this.' }] },
        { role: 'assistant', content: null, audio: { id: 'a', transcript: 'Spoken.' } },
      ],
      ['I may not.', 'Nor this.', 'Spoken.'].map((content) => ({ role: 'assistant', content })),
      '',
    ],
    [
      'custom calls, free text in place of arguments, and calls that could not be parsed',
      [
        {
          role: 'assistant',
          tool_calls: [
            { id: 'a', type: 'custom', custom: { name: 'sh', input: 'ls' } },
            { id: 'b', function: 'sh', arguments: { n: 1 }, parse_error: 'no JSON: {"cmd' },
            { id: 'c', function: { name: 'sh', arguments: '[1]' } },
          ],
        },
      ],
      [
        {
          role: 'assistant',
          content: '',
          toolCalls: [
            { id: 'a', name: 'sh', arguments: { input: 'ls' } },
            { id: 'b', name: 'sh', arguments: { n: 1, 'parse error': 'no JSON: {"cmd' } },
            { id: 'c', name: 'sh', arguments: { 'not an object': '[1]' } },
          ],
        },
      ],
      'no JSON object',
    ],
    [
      'errors of tools beside and within results',
      [
        { role: 'assistant', tool_calls: [{ id: 'a', function: renew }] },
        { role: 'tool', tool_call_id: 'a', content: '', error: { type: 'timeout', message: 'too late' } },
        { role: 'tool', tool_call_id: 'a', content: 'half', error: 'broken pipe' },
        { role: 'tool', tool_call_id: 'a', content: 'too late', error: { type: 'timeout', message: 'too late' } },
      ],
      [
        { role: 'assistant', content: '', toolCalls: [{ id: 'a', ...renew }] },
        ...['error (timeout): too late', 'half\nerror: broken pipe', 'error (timeout): too late'].map((content) => ({
          ...{ role: 'tool', toolCallId: 'a', content },
        })),
      ],
      '',
    ],
    [
      'calls of a simulated user',
      [
        { role: 'user', content: '', tool_calls: [{ id: 'u', function: { name: 'toggle', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'u', content: 'on' },
      ],
      [
        { role: 'user', content: '', toolCalls: [{ id: 'u', name: 'toggle', arguments: {} }] },
        { role: 'tool', toolCallId: 'u', content: 'on', requestor: 'user' },
      ],
      '',
    ],
  ])('%s', async (_, raw, messages, note) => {
    const found = await readOne([user, ...raw, { role: 'assistant', content: 'end' }]);
    expect(found.messages.slice(1, -1)).toEqual(messages);
    expect(found.notes).toContain(note);
    if (note === '') expect(found.notes).toBe('');
  });

  it('ids that are the same in every turn as different calls', async () => {
    const turn = (name: string) => [
      { role: 'assistant', content: '', tool_calls: [{ id: 'call_0', function: { name, arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'call_0', content: `of ${name}` },
    ];
    const { messages } = await readOne([...turn('first'), ...turn('second')]);
    const named = new Map(
      messages.flatMap((one) => (one.role === 'assistant' ? one.toolCalls! : [])).map(({ id, name }) => [id, name]),
    );
    expect(messages.flatMap((one) => (one.role === 'tool' ? [[named.get(one.toolCallId), one.content]] : []))).toEqual([
      ['first', 'of first'],
      ['second', 'of second'],
    ]);
  });

  it.each([
    ['<think>hm</think>\n\nseven', 'seven'],
    ['hm</think>seven', 'seven'],
    ['<think signature="x">hm</think> a <think>hm</think>b', 'a b'],
    ['<thinking>hm</thinking>seven', 'seven'],
    ['<think>hm that never ends', ''],
    ['<think>hm</think><think>hm', ''],
    ['write <think> in front', 'write <think> in front'],
  ])('what is left of %j', async (content, left) => {
    const { messages, notes } = await readOne([user, { role: 'assistant', content }]);
    expect(messages[1]?.content).toBe(left);
    expect(notes.includes('reasoning is left out')).toBe(left !== content);
  });

  it("the system message and the tools of Anthropic's requests", async () => {
    const { conversations, notes } = await read({
      messages: [user, { role: 'assistant', content: 'hi' }],
      passed: true,
      system: [{ type: 'text', text: 'rules' }],
      tools: [{ name: 'renew', description: 'd', input_schema: { type: 'object', required: ['card'] } }],
    });
    expect(conversations[0]?.messages[0]).toEqual({ role: 'system', content: 'rules' });
    expect(conversations[0]?.tools?.[0]?.parameters).toEqual({ type: 'object', required: ['card'] });
    expect(notes.join()).toContain('system is read as the first message');
  });
});

describe('whatever shape it has', () => {
  /** Numbered afterwards, so that each can be looked for. */
  const TOKEN = 'TOKEN';
  const token = fc.constant(TOKEN);
  const field = (...values: fc.Arbitrary<unknown>[]) =>
    fc.option(fc.oneof(...values), { nil: null, freq: 4 }) as fc.Arbitrary<unknown>;
  const given = (record: Record<string, fc.Arbitrary<unknown>>) => fc.record(record, { requiredKeys: [] });
  const args = field(token, fc.constant(`{"a":"${TOKEN}"}`), fc.constant({ a: TOKEN, b: [TOKEN] }), fc.constant(3));
  const id = field(fc.constantFrom('a', 'b', ''));
  const part = fc.letrec<{ part: unknown; content: unknown }>((tie) => ({
    content: field(token, fc.array(tie('part'), { maxLength: 4 })),
    part: fc.oneof(
      { depthSize: 'small' },
      token,
      given({ type: fc.constantFrom('text', 'output_text', 'novelty'), text: field(token) }),
      given({ type: fc.constant('refusal'), refusal: field(token) }),
      fc.record({ type: fc.constantFrom('thinking', 'reasoning', 'image', 'video'), data: token }),
      fc.record({ type: fc.constantFrom('tool-call', 'function_call'), toolName: token, args: token }),
      fc.record({ type: fc.constant('tool_use'), id, name: field(token), input: args }),
      fc.record({ type: fc.constant('tool_use'), id, name: token, arguments: args, result: field(token), error: id }),
      fc.record({
        type: fc.constant('tool_result'),
        tool_use_id: id,
        content: tie('content'),
        is_error: field(fc.boolean()),
      }),
    ),
  }));
  const call = fc.oneof(
    given({ id, function: field(fc.record({ name: token, arguments: args })) }),
    fc.record({ id, function: token, arguments: args, parse_error: field(token) }),
    fc.record({ id, custom: fc.record({ name: token, input: token }) }),
  );
  const odd = { name: field(fc.constant('ann')), novelty: field(token), reasoning_content: field(token) };
  const message = fc.oneof(
    given({ role: fc.constantFrom('user', 'system', 'developer'), content: part.content, ...odd }),
    fc.record(
      {
        ...{ role: fc.constant('assistant'), content: part.content, ...odd },
        ...{ tool_calls: field(fc.array(call, { maxLength: 3 })), refusal: field(token) },
        ...{ function_call: field(fc.record({ name: token, arguments: args })) },
        audio: field(fc.record({ transcript: field(token) })),
      },
      { requiredKeys: ['role'] },
    ),
    fc.record(
      {
        ...{ role: fc.constantFrom('tool', 'function'), content: part.content, ...odd, tool_call_id: id },
        ...{ error: field(token, fc.record({ type: token, message: token })), is_error: field(fc.boolean()) },
      },
      { requiredKeys: ['role'] },
    ),
  );

  it('nothing of a log disappears without a word', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 6 }), async (shapes) => {
        let count = 0;
        const numbered = (text: string) => text.replaceAll(TOKEN, () => `W${count++}W`);
        const raw = mapLeaves([...shapes, { role: 'assistant', content: 'end' }], (leaf) =>
          typeof leaf === 'string' ? numbered(leaf) : leaf,
        ) as object[];
        const outcome = await readOne(raw).catch((error: Error) => error.message);
        if (typeof outcome === 'string') {
          expect(outcome).toMatch(/library\.jsonl:1 messages\.\d+\.[\w.]+: .*expected/);
          return;
        }
        const text = JSON.stringify(outcome.messages);
        const lost = (value: unknown, path: string[]): string[] => {
          if (typeof value === 'string') {
            const words = value.match(/W\d+W/g) ?? [];
            const isNoted = path.some((name) => outcome.notes.includes(name));
            return words.some((word) => !text.includes(word)) && !isNoted ? [path.join('.')] : [];
          }
          if (typeof value !== 'object' || value === null) return [];
          const { type } = value as { type?: string };
          const named = Object.entries(value).map(([key, one]) => [key, one] as const);
          return named.flatMap(([key, one]) =>
            lost(one, [
              ...path,
              ...(type ? [`type ${type}`] : []),
              ...(key === 'reasoning_content' ? ['type reasoning'] : []),
              key,
            ]),
          );
        };
        expect(lost(raw, [])).toEqual([]);
      }),
      { numRuns: 400 },
    );
  });
});

describe('JSON as other programs write it', () => {
  const messages = [user, { role: 'assistant', content: 'hi' }];
  const line = (more: string) => `{"messages":${JSON.stringify(messages)},${more}}`;

  it('is read with NaN and infinities where nothing reads them', async () => {
    const { conversations } = await read(line('"passed":true,"cost":NaN,"x":[-Infinity,"NaN"]'));
    expect(conversations).toHaveLength(1);
    const shown = await readOne([{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: {} } }] }]);
    expect(shown.messages[0]).toMatchObject({ toolCalls: [{ arguments: {} }] });
    const { conversations: called } = await read(
      '{"passed":true,"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"n":NaN}}}]}]}',
    );
    expect(called[0]?.messages[0]).toMatchObject({ toolCalls: [{ arguments: { n: 'NaN' } }] });
  });

  it.each([
    ['"reward":NaN', /nothing of how it ended .*NaN is none/],
    ['"reward":Infinity', /reward: .* received Infinity/],
    ['"passed":NaN', /passed: expected true or false .* received NaN/],
    ['"success":1', /success: .*"reward".* received 1/],
    ['"reward":true', /reward: .*"passed".* received true/],
  ])('names what %s is', async (outcome, problem) => {
    await expect(read(line(outcome))).rejects.toThrow(problem);
  });

  it('has whole characters alone: halves are U+FFFD, with a note', async () => {
    const { conversations, notes } = await read(
      line('"passed":true,"task":"\\ud83d!"').replace('hello', 'a \\uD83D b'),
    );
    expect(conversations[0]).toMatchObject({ task: '\uFFFD!', messages: [{ content: 'a \uFFFD b' }, {}] });
    expect(notes.join()).toContain('U+FFFD');
    const whole = await read(line('"passed":true').replace('hello', '\\ud83d\\ude00'));
    expect(whole.conversations[0]?.messages[0]?.content).toBe('\u{1F600}');
    expect(whole.notes).toEqual([]);
  });

  it('says that bytes are no UTF-8', async () => {
    const file = fileOf([line('"passed":true').replace('hello', 'caf\u00e9')]);
    writeFileSync(file, readFileSync(file, 'utf8'), 'latin1');
    const { conversations, notes } = await readConversations({ files: [file] });
    expect(conversations[0]?.messages[0]?.content).toBe('caf\uFFFD');
    expect(notes.join()).toContain('not UTF-8');
  });

  it('may hold long texts beside NaN, and is refused where it is nested without end', async () => {
    const long = 'x'.repeat(9 * 2 ** 20);
    const { conversations } = await read(line('"passed":true,"cost":NaN').replace('hello', long));
    expect(conversations[0]?.messages[0]?.content).toBe(long);
    const escapes = JSON.stringify({ text: '"\n'.repeat(3e6) });
    const call = { role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: escapes } }] };
    expect((await readOne([call])).messages[0]).toMatchObject({ toolCalls: [{ arguments: JSON.parse(escapes) }] });
    await expect(readConversations({ files: [fileOf(['['.repeat(5e6)], 'deep.json')] })).rejects.toThrow(
      /nested deeper/,
    );
  });
});

describe('files that are refused by design', () => {
  it.each<[string, object]>([
    ['verifiers', { example_id: 1, prompt: [user], completion: [{ role: 'assistant', content: 'a' }], reward: 1 }],
    [
      'Responses',
      { passed: true, messages: [user, { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }] },
    ],
    ['Responses', { passed: true, input: [user], output: [{ type: 'message', role: 'assistant', content: [] }] }],
    ['Claude Code', { type: 'user', sessionId: 's', message: user }],
    ['Who&When', { question: 'q', history: [{ role: 'assistant', content: 'a' }], is_correct: false }],
  ])('say how they are converted: %s', async (name, line) => {
    await expect(read(line)).rejects.toThrow(new RegExp(`library\\.jsonl:1 is .*${name}.*convert it with jq .* FILE`));
    await expect(readConversations({ files: [fileOf([JSON.stringify(line)], 'x.json')] })).rejects.toThrow(name);
  });
});
