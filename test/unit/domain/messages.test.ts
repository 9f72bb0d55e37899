import { argumentsOf, type Message, openingOf, readArguments } from '../../../src/domain/messages';

const said = (...roles: ('system' | 'user' | 'assistant')[]): Message[] =>
  roles.map((role, n) => ({ role, content: `${n}` }));

test.each([
  ['ends before the first answer', said('system', 'user', 'assistant', 'user', 'assistant'), 2],
  ['holds a greeting', said('assistant', 'user', 'assistant', 'user'), 2],
  ['holds all that the user said first', said('system', 'user', 'user', 'assistant'), 3],
  ['is everything where nothing was answered', said('assistant', 'user'), 2],
])('the opening %s', (_, messages, length) => {
  expect(openingOf(messages)).toEqual(messages.slice(0, length));
});

describe('arguments of a call', () => {
  test.each([
    ['{"id":12345678901234567890}', { id: 12345678901234567000 }],
    ['{"price":2.0}', { price: 2 }],
    ['{"2":"b","1":"a"}', { 2: 'b', 1: 'a' }],
  ])('of which the text is kept: %s', (text, values) => {
    expect(readArguments(text)).toEqual({ arguments: values, argumentsText: text });
    expect(argumentsOf(readArguments(text)!)).toBe(text);
  });

  test.each(['', '{"a":', '[1]', '{"a":NaN}', `{"a":${'['.repeat(6000)}${']'.repeat(6000)}}`])(
    'that are none: %s',
    (text) => {
      expect(readArguments(text)).toBeUndefined();
    },
  );
});
