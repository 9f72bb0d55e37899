/** What commands print: nothing of others moves the cursor, and JSON stays what it was. */
import fc from 'fast-check';
import { note, print, printable } from '../../src/terminal';

const HOSTILE = 'a\u001b[2J\u001b]0;owned\u0007\u009b31m\u0085\u2028\u202eb\rc\u0000';
const MOVING = /[^\P{Cc}\n]|\p{Bidi_Control}|[\u2028\u2029]/u;

afterEach(() => jest.restoreAllMocks());

it('prints no control characters on either stream', () => {
  const printed: string[] = [];
  jest.spyOn(console, 'log').mockImplementation((text) => void printed.push(String(text)));
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
  print(HOSTILE);
  note(HOSTILE);
  for (const text of printed) expect(text).not.toMatch(MOVING);
  expect(printed[0]).toContain('bc');
  expect(printed[0]).not.toContain('owned');
});

it('prints JSON that reads as it did', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const text = printable(JSON.stringify([value, HOSTILE], null, 2));
      expect(text).not.toMatch(MOVING);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify([value, HOSTILE])));
    }),
  );
});
