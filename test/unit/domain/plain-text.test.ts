/** Text of others, shown as one plain line: nothing in it moves a cursor, ends a line or begins Markdown. */
import fc from 'fast-check';
import { escapeMarkdown, findHalfCharacter, plainLine, plainText, toWellFormed } from '../../../src/domain/plain-text';

/** Whatever some reader takes for a line break, a control or half a character. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]/u;

test.each([
  ['a\u001b[31mred\u001b[0m', 'ared'],
  ['a\u009b2Jb', 'ab'],
  ['a\u001b]0;title\u0007b\u001b]8;;http://x\u001b\\c', 'abc'],
  // An introducer without an end hides nothing.
  ['a\u001b]0;words', 'a]0;words'],
  ['a\r\nb\u0085c\vd\fe\u2028f\u2029g\rh', 'a\\nb\\nc\\nd\\ne\\nf\\ng\\nh'],
  ['a\tb\u0000\u202ec\u2066d', 'a bcd'],
  ['caf\u00e9 \u{1F600}', 'caf\u00e9 \u{1F600}'],
])('of %j a line is %j', (text, line) => {
  expect(plainLine(text)).toBe(line);
});

test('a line holds no control of any text, and a text no other than line feeds', () => {
  const pieces = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\u001b[', '\u001b]', '\u009d', '\u0007', '\u001b\\', '\ud83d', '\n', '\u0085', 'm', ';'),
  );
  fc.assert(
    fc.property(fc.array(pieces), (parts) => {
      const text = parts.join('');
      expect(plainLine(text)).not.toMatch(FORBIDDEN);
      expect(plainText(text).replaceAll('\n', '')).not.toMatch(FORBIDDEN);
    }),
  );
});

test.each([
  ['a\n---\nlicense: x', 'a\\\\n---\\\\nlicense: x'],
  ['---', '\\---'],
  ['# head', '\\# head'],
  ['1. item', '1\\. item'],
  ['![x](http://h/y.png) <img onerror=1>', '\\!\\[x\\](http\\://h/y.png) \\<img onerror=1\\>'],
  ['[x](javascript:alert)', '\\[x\\](javascript:alert)'],
  ['`a` | *b* _c_ ~d~ www.x.org', '\\`a\\` \\| \\*b\\* \\_c\\_ \\~d\\~ www\\.x.org'],
  ['refuse_forbidden_actions: _x_', 'refuse_forbidden_actions: \\_x\\_'],
  ['The agent asks, then acts (once).', 'The agent asks, then acts (once).'],
])('%j is %j in Markdown', (text, escaped) => {
  expect(escapeMarkdown(text)).toBe(escaped);
});

test('half a character is found where it stands, in names too', () => {
  expect(findHalfCharacter({ a: [1, { b: 'x \ud83d y' }] })).toEqual(['a', 1, 'b']);
  expect(findHalfCharacter({ 'x\udc00': 1 })).toEqual(['x\uFFFD']);
  expect(findHalfCharacter(['\u{1F600}', null, 3])).toBeUndefined();
  expect(toWellFormed('\ud83d\ude00\ud83d')).toBe('\u{1F600}\uFFFD');
});
