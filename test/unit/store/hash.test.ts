import fc from 'fast-check';
import { canonical, digest } from '../../../src/store/hash';

describe('hash', () => {
  test('canonical JSON ignores the order of fields and undefined ones', () => {
    expect(canonical({ b: [1, { d: 'x', c: null }], a: undefined })).toBe('{"b":[1,{"c":null,"d":"x"}]}');
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(digest(reversed)).toBe(digest(value));
        expect(digest(JSON.parse(canonical(value)))).toBe(digest(value));
      }),
    );
  });

  test('refuses what JSON would lose', () => {
    for (const value of [NaN, Infinity, [undefined], { f: () => 1 }, 1n])
      expect(() => canonical(value)).toThrow(TypeError);
  });
});
