import fc from 'fast-check';
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
    ['{"id":12345678901234567890}', { id: '12345678901234567890' }],
    ['{"id":-9007199254740993}', { id: '-9007199254740993' }],
    ['{"id":1000000000000000000000}', { id: 1e21 }],
    ['{"x":1e400,"y":[-1e400]}', { x: '1e400', y: ['-1e400'] }],
    ['{"price":2.0}', { price: 2 }],
    ['{"n":1e3,"m":1E-2}', { n: 1000, m: 0.01 }],
    ['{"n":-0}', { n: -0 }],
    ['{"n":0.1234567890123456789}', { n: 0.12345678901234568 }],
    ['{"2":"b","1":"a"}', { 2: 'b', 1: 'a' }],
    ['{"a":1,"a":2}', { a: 2 }],
  ])('of which the text is kept: %s', (text, values) => {
    expect(readArguments(text)).toEqual({ arguments: values, argumentsText: text });
    expect(argumentsOf(readArguments(text)!)).toBe(text);
  });

  test.each([
    '',
    '{"a":',
    '[1]',
    '2.0',
    'null',
    '{"a":NaN}',
    '{"a":01}',
    `{"a":${'['.repeat(6000)}${']'.repeat(6000)}}`,
  ])('that are none: %s', (text) => {
    expect(readArguments(text)).toBeUndefined();
  });

  test('of any JSON: what goes back says the same as what came', () => {
    const written = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.stringMatching(/^-?(0|[1-9]\d{0,24})(\.\d{1,20})?([eE][+-]?\d{1,3})?$/),
        fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
        fc.constantFrom('true', 'false', 'null', '{}', '[]'),
        fc.array(tie('value')).map((items) => `[${items.join(' , ')}]`),
        fc
          .array(fc.tuple(fc.string(), tie('value')))
          .map((all) => `{${all.map(([k, v]) => `${JSON.stringify(k)}: ${v}`).join(',\n')}}`),
      ),
    })).value;
    const tight = (text: string) =>
      text.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g, (_, string?: string) => string ?? '');
    fc.assert(
      fc.property(written, (value) => {
        const text = `{"a": ${value}}`;
        expect(argumentsOf(readArguments(text)!)).toBe(tight(text));
      }),
    );
  });
});
