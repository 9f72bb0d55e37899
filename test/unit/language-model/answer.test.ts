/** Answers that can't be used are sent back with what is wrong with them, a bounded number of times. */
import { answerOf, type Read } from '../../../src/language-model/answer';
import { openPrompts } from '../../../src/language-model/prompts';
import type { LanguageModel, ModelReply, Question } from '../../../src/language-model/types';
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
const repair = (...defects: string[]) => openPrompts().render('repair', { defects: defects.join('\n') });

test('an answer that can be used is asked for once', async () => {
  const { model, asked } = modelOf(reply('7'));
  expect(await ask(model)).toBe(7);
  expect(asked).toEqual([{ messages: [...messages], seed: 3 }]);
});

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

test('one that is never mended fails for good, with the last defects', async () => {
  const { model, asked } = modelOf(reply('many'), reply('lots'));
  await expect(ask(model)).rejects.toMatchObject({
    type: 'AnswerInvalid',
    retryable: false,
    message: expect.stringMatching(
      /^discovery: no answer that can be used, after 2 repairs; raise .*:\n- "lots" is no number\n- it/,
    ),
  });
  expect(asked).toHaveLength(3);
  await expect(ask(modelOf(reply('x')).model, { repairs: 0 })).rejects.toMatchObject({ type: 'AnswerInvalid' });
});

test.each([
  ['cut off', reply('12', 'length'), /- it was cut off because it is too long; give a shorter one/, '12'],
  ['withheld', reply('I cannot', 'content_filter'), /- it was withheld, as a refusal/, 'I cannot'],
  ['empty', reply(' \n'), /- it is empty; write the answer itself/, '(nothing)'],
])('one that is %s is not read, and is told so', async (_, unusable, defect, quoted) => {
  const { model, asked } = modelOf(unusable, reply('4'));
  expect(await ask(model)).toBe(4);
  const [said, told] = asked[1]!.messages.slice(messages.length);
  expect(said).toEqual({ role: 'assistant', content: quoted });
  expect(told!.content).toMatch(defect);
});

test('one that was cut off after many words is quoted by its beginning', async () => {
  const { model, asked } = modelOf(reply('12'.repeat(50_000), 'length'), reply('4'));
  expect(await ask(model)).toBe(4);
  const { content } = asked[1]!.messages[messages.length]!;
  expect(content.length).toBeLessThan(4200);
  expect(content).toMatch(/^(12){2000}\n\n\[cut here: 96000 more characters\]$/);
});

describe('where a request holds few tokens', () => {
  const long = (word: string) => reply(word.repeat(500));
  const content = (question: Question) => question.messages.map(({ content }) => content);
  const size = (question: Question) => content(question).join('').length / 4;

  test('earlier attempts give way to the last one', async () => {
    const { model, asked } = modelOf(long('ab '), long('cd '), reply('3'));
    const read = (text: string) => (text.length > 9 ? { defects: ['too long'] } : number(text));
    const first = size({ messages: [...messages, ...repair('- too long')], seed: 3 });
    const promptTokens = Math.ceil(first + 1500 / 4);
    expect(await ask({ ...model, promptTokens }, { read })).toBe(3);
    const said = (word: string) => [
      ...content({ messages, seed: 3 }),
      word.repeat(500),
      repair('- too long')[0]!.content,
    ];
    expect(asked.map(content).slice(1)).toEqual([said('ab '), said('cd ')]);
  });

  test('an answer that is too long for it is quoted by its beginning', async () => {
    const { model, asked } = modelOf(long('abcdefgh'), reply('3'));
    const read = (text: string) => (text.length > 9 ? { defects: ['too long'] } : number(text));
    expect(await ask({ ...model, promptTokens: 700 }, { read })).toBe(3);
    expect(size(asked[1]!)).toBeLessThanOrEqual(700);
    expect(asked[1]!.messages[messages.length]!.content).toMatch(
      /^abcdefgh[^]{1000,}\[cut here: \d+ more characters\]$/,
    );
  });
});

test('what reads an answer may take its time, and may give up', async () => {
  const { model, asked } = modelOf(reply('1'), reply('2'));
  const slowly = async (text: string): Promise<Read<number>> =>
    text === '2' ? { value: 2 } : { defects: ['not that'] };
  expect(await ask(model, { read: slowly })).toBe(2);
  const giveUp = () => Promise.reject(new Error('stop'));
  await expect(ask(model, { read: giveUp })).rejects.toThrow('stop');
  expect(asked).toHaveLength(3);
});

test('the user’s own words ask for the repair', async () => {
  const { model, asked } = modelOf(reply('many'), reply('3'));
  const own = { digest: () => '', render: () => [{ role: 'user' as const, content: 'again!' }] };
  await ask(model, { prompts: own });
  expect(asked[1]!.messages.at(-1)).toEqual({ role: 'user', content: 'again!' });
});
