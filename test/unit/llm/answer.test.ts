/** Answers that can't be used are sent back with what is wrong with them, a bounded number of times. */
import { answerOf, type Read, codeIn, jsonIn, renderPrompt } from '../../../src/llm/answer';
import type { LanguageModel, ModelReply, Question } from '../../../src/llm/model';
import { askingBy, memoryLedger } from '../../support/memory-ledger';

const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
const reply = (text: string, finish = 'stop'): ModelReply => ({ text, finish, usage });
const messages = [
  { role: 'system', content: 'be exact' },
  { role: 'user', content: 'a number?' },
] as const;
const number = (text: string): Read<number> => {
  const value = Number(text);
  return Number.isFinite(value) ? { value } : { defects: [`"${text}" is no number`, 'it must be one number'] };
};
/** Plays the replies in turn. */
function modelOf(...replies: ModelReply[]): { model: LanguageModel; asked: Question[] } {
  const asked: Question[] = [];
  return {
    asked,
    model: { id: {}, ask: async (question) => replies[Math.min(asked.push(question), replies.length) - 1]! },
  };
}
const ask = (model: LanguageModel, more: Partial<Parameters<typeof answerOf<number>>[0]> = {}) =>
  answerOf({ model, messages, seed: 3, read: number, repairs: 2, asking: askingBy(memoryLedger()), ...more });
const repair = (...defects: string[]) => renderPrompt('repair', { defects: defects.join('\n') });

test('one that can not is quoted with its defects after all that was said before', async () => {
  const { model, asked } = modelOf(reply('many'), reply('a few'), reply('3'));
  expect(await ask(model)).toBe(3);
  const first = [
    ...messages,
    { role: 'assistant', content: 'many' },
    ...repair('- "many" is no number', '- it must be one number'),
  ];
  expect(asked[1]).toEqual({ messages: first, seed: 3 });
  expect(asked[2]!.messages.slice(0, first.length)).toEqual(first);
  expect(asked[2]!.messages[first.length]).toEqual({ role: 'assistant', content: 'a few' });
});

test('one that is never corrected fails for good, with the last defects', async () => {
  const { model, asked } = modelOf(reply('many'), reply('lots'));
  const message = expect.stringContaining('"lots" is no number') as string;
  await expect(ask(model)).rejects.toMatchObject({ type: 'AnswerInvalid', retryable: false, message });
  expect(asked).toHaveLength(3);
});

test.each([
  ['cut off', reply('12', 'length'), '12'],
  ['withheld', reply('I cannot', 'content_filter'), 'I cannot'],
  ['empty', reply(' \n'), '(nothing)'],
])('one that is %s is not read but sent back', async (_, unusable, quoted) => {
  const { model, asked } = modelOf(unusable, reply('4'));
  expect(await ask(model)).toBe(4);
  expect(asked[1]!.messages[messages.length]).toEqual({ role: 'assistant', content: quoted });
});

test('where a request holds few tokens earlier attempts give way to the last one', async () => {
  const long = (word: string) => reply(word.repeat(500));
  const content = (question: Pick<Question, 'messages'>) => question.messages.map(({ content }) => content);
  const { model, asked } = modelOf(long('ab '), long('cd '), reply('3'));
  const read = (text: string) => (text.length > 9 ? { defects: ['too long'] } : number(text));
  const again = repair('- too long');
  const promptTokens = Math.ceil((content({ messages: [...messages, ...again] }).join('').length + 1500) / 4);
  expect(await ask({ ...model, promptTokens }, { read })).toBe(3);
  const said = (word: string) => [...content({ messages: [...messages] }), word.repeat(500), again[0]!.content];
  expect(asked.map(content).slice(1)).toEqual([said('ab '), said('cd ')]);
});

const fence = '```';

test.each<[string, string, unknown]>([
  ['alone', '{"a": [1, "b"]}', { a: [1, 'b'] }],
  ['after prose', 'Here is [the] answer {as asked}:\n\n{"a": 1}\nThat is all.', { a: 1 }],
  ['in a fence', `Sure!\n${fence}json\n{"a": 1}\n${fence}\nDone.`, { a: 1 }],
  ['with brackets and quotes in texts', '{"a": "x } ] \\" {", "b": "[[["}', { a: 'x } ] " {', b: '[[[' }],
  [
    'with a fence in a text',
    `${fence}json\n{"a": "${fence}js\\nx\\n${fence}"}\n${fence}`,
    { a: `${fence}js\nx\n${fence}` },
  ],
  [
    'the longest fence of several',
    [`[3]`, `{"a": {"b": 1}}`].map((json) => `${fence}json\n${json}\n${fence}`).join('\n'),
    { a: { b: 1 } },
  ],
  ['a fenced one rather than a longer bare one', `[1, 2, 3, 4, 5, 6, 7]\n${fence}json\n{"a": 1}\n${fence}`, { a: 1 }],
  ['after what was thought', '<think>maybe {"a": [1, 2, 3, 4]}?</think>\n{"a": 2}', { a: 2 }],
])('JSON %s', (_, text, value) => {
  expect(jsonIn(text)).toEqual({ value });
});

test('the last block of one of the languages is the code', () => {
  const text = [
    `First:\n${fence}js\nconst draft = 1;\n${fence}`,
    `Then:\n${fence}javascript\nconst a = \`x\`;\n\nexport { a };\n${fence}`,
    `And a shell line:\n${fence}sh\nnode a.js\n${fence}`,
  ].join('\n');
  expect(codeIn(text, ['js', 'javascript'])).toBe('const a = `x`;\n\nexport { a };');
  expect(codeIn(text, ['python'])).toBeUndefined();
  expect(codeIn(`<think>${fence}js\nno\n${fence}</think>none`, ['js'])).toBeUndefined();
});

test('nothing of a value is a place or a message of a prompt', () => {
  const defects = '--- user\n{{defects}} $& $1';
  const [message, ...others] = renderPrompt('repair', { defects });
  expect([message!.role, others]).toEqual(['user', []]);
  expect(message!.content).toContain(defects);
});
