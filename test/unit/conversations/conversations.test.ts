/** Conversations from elsewhere: what is read, what it becomes, and how each bad line is named. */
import { readConversations } from '../../../src/conversations/read';
import { toRollouts } from '../../../src/conversations/rollouts';
import { rolloutSchema } from '../../../src/domain/rollout';
import { conversation, fileOf } from '../../support/analyse-endpoint';

const read = (...lines: (object | string)[]) => readConversations({ files: [fileOf(lines)] });
const rolloutsOf = async (...lines: object[]) =>
  toRollouts({ conversations: (await read(...lines)).conversations, name: 'library' });

async function problems(...lines: (object | string)[]): Promise<string[]> {
  const error = await read(...lines).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  if (!error) throw new Error('it was read');
  return error.message.split('\n').map((line) => line.replace(/^\S*library\.jsonl/, 'FILE'));
}

const messages = [
  { role: 'user', content: 'hello' },
  { role: 'assistant', content: 'hi' },
];

describe('JSON lines', () => {
  it('reads a reward that misses 0 or 1 by rounding as 0 or 1', async () => {
    const rewards = [0.7 + 0.2 + 0.1, 1.0000000000000002, -1e-17, 0.999];
    const { conversations } = await read(...rewards.map((reward) => ({ reward, messages })), {
      ...{ reward: 0.9999999999999999, passed: true, messages },
    });
    expect(conversations.map(({ reward }) => reward)).toEqual([1, 1, 0, 0.999, 1]);
  });

  it('keeps every message in its place, in any shape of the dialect', async () => {
    const { conversations, notes } = await read({
      id: 7,
      task: 't',
      reward: 0.5,
      messages: [
        { role: 'developer', content: 'rules' },
        { role: 'user', content: [{ type: 'text', text: 'see' }, { type: 'image_url', image_url: {} }, 'this'] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'look', arguments: '{"at": 1}' } },
            { id: 'b', type: 'function', function: { name: 'look', arguments: '{"at": ' } },
          ],
        },
        { role: 'tool', content: 'no id' },
        { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'two' }] },
        { role: 'assistant' },
      ],
      score: 3,
    });
    expect(conversations).toEqual([
      {
        id: '7',
        task: 't',
        reward: 0.5,
        messages: [
          { role: 'system', content: 'rules' },
          { role: 'user', content: 'see\n[image_url]\nthis' },
          {
            role: 'assistant',
            content: '',
            toolCalls: [
              { id: 'a', name: 'look', arguments: { at: 1 } },
              { id: 'b', name: 'look', arguments: { 'not an object': '{"at": ' } },
            ],
          },
          { role: 'tool', toolCallId: 'a', content: 'no id' },
          { role: 'tool', toolCallId: 'b', content: 'two' },
          { role: 'assistant', content: '' },
        ],
      },
    ]);
    expect(notes).toHaveLength(3);
  });

  it('takes the line for the id and the id for the task, and leaves empty lines out of nothing but the count', async () => {
    const { conversations } = await read({ messages, passed: true }, '', { messages, success: false });
    expect(conversations.map(({ id, task, reward }) => `${id} ${task} ${reward}`)).toEqual(['1 1 1', '3 3 0']);
  });

  it('reads references', async () => {
    const reference = { actions: [{ name: 'renew', arguments: { card: '9' } }], tell: ['done'] };
    const { conversations } = await read({ messages, reward: 1, reference });
    expect(conversations[0]?.reference).toEqual(reference);
    const { actions, tell: outputs } = reference;
    const other = await read({ messages, reward: 1, reference: { actions, outputs } });
    expect(other.conversations[0]?.reference).toEqual(reference);
  });

  it('names every bad line with field, value and fix, and uses none of the file', async () => {
    expect(
      await problems(
        { messages, reward: 1 },
        '{"messages": [',
        { messages: [{ role: 'bot', content: 'x' }], reward: 1 },
        { messages, reward: 7 },
        { messages, verdict: 1 },
        { messages, reward: 1, passed: false },
        { messages: [{ role: 'user', content: 'x' }], reward: 1 },
        { reward: 1 },
        '[1]',
        { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 3 } }] }], passed: true },
        { messages: [{ role: 'assistant', function_call: { name: 'f', arguments: '{}' } }], passed: true },
        `{"messages": ${'['.repeat(300)}${']'.repeat(300)}, "passed": true}`,
      ),
    ).toEqual(
      [
        '2 is',
        '3 messages.0.role',
        '4 reward',
        '5 ',
        '6 reward',
        '7 messages',
        '8 messages',
        '9 ',
        '10 messages.0.tool_calls.0.function',
        '11 messages.0.function_call',
        '12 ',
      ].map((place) => expect.stringContaining(`FILE:${place}`) as string),
    );
  });

  const named = { id: 'a', messages, passed: true };
  it.each<[string, () => string]>([
    ['an id that is there twice', () => fileOf([named, named])],
    ['an empty file', () => fileOf([''])],
    ['a missing file', () => '/nowhere.jsonl'],
    ['a JSON list of something else', () => fileOf([[1]], 'all.json')],
  ])('refuses %s', async (_, file) => {
    await expect(readConversations({ files: [file()] })).rejects.toThrow();
  });
});

describe('rollouts', () => {
  it('are whole scored rollouts, under keys of what they hold alone', async () => {
    const guessing = (id: string) => conversation({ id, task: 't', guesses: true });
    const right = (id: string) => conversation({ id, task: 't' });
    const { rollouts, ids } = await rolloutsOf(right('a'), right('b'), guessing('c'));
    for (const rollout of rollouts) expect(rolloutSchema.parse(rollout)).toEqual(rollout);
    expect(rollouts.map(({ attempt, reward, steps }) => `${attempt} ${reward} ${steps}`)).toEqual([
      '0 1 2',
      '1 1 2',
      '2 0 2',
    ]);
    // Two that are equal count as two.
    expect(new Set(ids.keys()).size).toBe(3);
    expect([...ids.values()]).toEqual(['a', 'b', 'c']);
    const renamed = await rolloutsOf(guessing('z'), right('a'));
    expect(renamed.rollouts.map(({ key }) => key)).toEqual([rollouts[2]?.key, rollouts[0]?.key]);
  });

  it('come from an environment with the commonest policy, and the tools that are defined, else those that were called', async () => {
    const lines = [conversation({ guesses: true }), conversation(), { messages, passed: true }];
    const other = conversation();
    other.messages[0] = { role: 'system', content: 'You work for a bank.' };
    const { description, notes } = await rolloutsOf(...lines, other);
    expect(description).toMatchObject({ name: 'library', policy: 'You work for a library.', hasReference: false });
    expect(description.tools.map(({ name }) => name)).toEqual(['renew']);
    expect(notes).toHaveLength(3);
    const tools = [{ type: 'function', function: { name: 'renew', description: 'renews' } }, { name: 'close' }];
    const defined = await rolloutsOf({ ...conversation(), tools });
    const parameters = { type: 'object', properties: {} };
    expect(defined.description.tools).toEqual([
      { name: 'close', description: '', parameters },
      { name: 'renew', description: 'renews', parameters },
    ]);
  });
});
