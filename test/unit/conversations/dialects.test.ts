/** Logs of several dialects and of odd shapes: what was said or done is read, refused by name, or noted. */
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
      'refusals',
      [
        { role: 'assistant', content: null, refusal: 'I may not.' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'Nor this.' }] },
      ],
      ['I may not.', 'Nor this.'].map((content) => ({ role: 'assistant', content })),
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

  it('has whole characters alone: halves are U+FFFD', async () => {
    const text = line('"passed":true,"task":"\\ud83d!"').replace('hello', 'a \\uD83D \\ud83d\\ude00');
    const { conversations } = await read(text);
    expect(conversations[0]).toMatchObject({ task: '\uFFFD!', messages: [{ content: 'a \uFFFD \u{1F600}' }, {}] });
  });
});
