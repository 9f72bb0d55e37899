/** What a reply holds beside its words, whatever a model writes around it. */
import fc from 'fast-check';
import { codeIn, jsonIn } from '../../../src/language-model/answer';

const fence = '```';

test.each<[string, string, unknown]>([
  ['alone', '{"a": [1, "b"]}', { a: [1, 'b'] }],
  ['an array', '[{"a": 1}, {"b": 2}]', [{ a: 1 }, { b: 2 }]],
  ['after prose', 'Here is [the] answer {as asked}:\n\n{"a": 1}\nThat is all.', { a: 1 }],
  ['in a fence', `Sure!\n${fence}json\n{"a": 1}\n${fence}\nDone.`, { a: 1 }],
  ['in a fence without a language', `${fence}\n[1, 2]\n${fence}`, [1, 2]],
  ['in a fence whose language stands apart', `${fence}  json \n{"a": 1}\n${fence}`, { a: 1 }],
  ['in a fence that is not closed', `${fence}json\n{"a": 1}`, { a: 1 }],
  ['in a fence, with Windows line breaks', `${fence}JSON\r\n{"a": 1}\r\n${fence}\r\n`, { a: 1 }],
  ['with brackets and quotes in texts', '{"a": "x } ] \\" {", "b": "[[["}', { a: 'x } ] " {', b: '[[[' }],
  [
    'with a fence in a text',
    `${fence}json\n{"a": "${fence}js\\ncode\\n${fence}"}\n${fence}`,
    {
      a: `${fence}js\ncode\n${fence}`,
    },
  ],
  ['the longest where there are several', 'As [1] and [2] say: {"a": {"b": 1}} [3]', { a: { b: 1 } }],
  ['a fenced one rather than a longer bare one', `[1, 2, 3, 4, 5, 6, 7]\n${fence}json\n{"a": 1}\n${fence}`, { a: 1 }],
  ['after what was thought', '<think>maybe {"a": [1, 2, 3, 4]}?</think>\n{"a": 2}', { a: 2 }],
])('JSON %s', (_, text, value) => {
  expect(jsonIn(text)).toEqual({ value });
});

test.each<[string, string, RegExp]>([
  ['nothing', '', /^there is no JSON in it; give/],
  ['words', 'I can not do that { really }.', /^there is no JSON in it/],
  ['a bare value', '42', /^there is no JSON in it/],
  [
    'what breaks off',
    'So:\n{"a": [1, 2',
    /^its JSON can't be parsed: it breaks off before it is closed.*; give the whole/,
  ],
  ['what breaks off after blank lines', ' \n\n  {"a": 1', /^its JSON can't be parsed: it breaks off/],
  ['a missing comma', '{"a": 1 "b": 2}', /^its JSON can't be parsed: Expected ',' or '}'.*position/],
  ['a comma too many', `${fence}json\n{"a": 1,}\n${fence}`, /^its JSON can't be parsed: .*position 8/],
])('a defect for %s', (_, text, defect) => {
  expect(jsonIn(text)).toEqual({ defect: expect.stringMatching(defect) });
});

test('any JSON is found between any words', () => {
  const words = fc.string().filter((text) => !/[[{\]}"`<]/.test(text));
  const value = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()));
  fc.assert(
    fc.property(words, value, words, fc.boolean(), (before, made, after, pretty) => {
      const text = JSON.stringify(made, null, pretty ? 2 : 0);
      expect(jsonIn(`${before}\n${text}\n${after}`)).toEqual({ value: JSON.parse(text) as unknown });
    }),
  );
});

test.each([
  ['brackets', '[{'.repeat(200_000)],
  ['blank lines', '\n'.repeat(300_000)],
  ['spaces after a fence', `${fence}${' '.repeat(300_000)}\``],
])('a reply of %s alone takes no time', (_, text) => {
  const before = process.cpuUsage();
  expect(jsonIn(text)).toHaveProperty('defect');
  expect(process.cpuUsage(before).user).toBeLessThan(5e6);
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

test('a longer fence holds shorter ones, and the end of the reply closes one', () => {
  const inner = `/*\n${fence}js\nexample\n${fence}\n*/\nexport {};`;
  expect(codeIn(`\`${fence}js title="x"\n${inner}\n\`${fence}`, ['js'])).toBe(inner);
  expect(codeIn(`${fence}js\nexport const cut = [`, ['js'])).toBe('export const cut = [');
});
