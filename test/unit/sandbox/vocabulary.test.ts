/** Observations against schemas: the same answers that regular expressions give, without running what a module wrote. */
import { hasShape, recordShape } from '../../../src/sandbox/vocabulary';

const schema = {
  properties: {
    name: { pattern: '^(red|blue) (lamp|vase)$' },
    id: { type: 'string', pattern: '^i[0-9]{2}$' },
    note: { type: 'string' },
    price: { type: 'integer', minimum: 0, maximum: 100, multipleOf: 5 },
  },
};
const shape = recordShape(schema);

describe('records', () => {
  it.each([
    ['red lamp i01 as new 5', true],
    ['red lamp i01 x 5 ; blue vase i10 y 100', true],
    ['red lamp i01 a ; b 5', true],
    ['red lamp i01 x 5 ;', false],
    ['red lamp i1 x 5', false],
    ['red  lamp i01 x 5', false],
    ['red lamp i01 5', false],
    ['red lamp i01 x 7', false],
    ['', false],
  ])('%j: %s', (text, expected) => {
    expect(hasShape(shape, text)).toBe(expected);
  });

  it('give up on a text that takes too many steps', () => {
    const any = recordShape({ properties: { a: {}, b: {}, c: {}, d: {} } });
    expect(hasShape(any, 'x '.repeat(40_000))).toBe(true);
    expect(hasShape(any, `${'x '.repeat(40)}`)).toBe(true);
    const last = recordShape({ properties: { a: {}, b: {}, c: {}, d: { enum: ['no'] } } });
    expect(hasShape(last, 'x '.repeat(60_000))).toBe('unknown');
  });
});
