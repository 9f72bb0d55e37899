/** Observations against schemas: the same answers that regular expressions give, without running what a module wrote. */
import { expressionOf, hasShape, recordShape, valuesIn, vocabularyOf } from '../../../src/sandbox/vocabulary';

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

  it('agree with the expressions of the same vocabularies', () => {
    const field = { type: 'string', pattern: '^(a|ab)[b-c]{2}-x$' };
    const expression = new RegExp(`^${expressionOf(vocabularyOf(field)!)}$`);
    for (const text of ['abb-x', 'abbb-x', 'abcc-x', 'ab-x', 'abbbb-x', 'acc-x', 'acd-x'])
      expect(hasShape(recordShape({ properties: { field } }), text)).toBe(expression.test(text));
  });
});

describe('values in a text', () => {
  it('are whole words of it, in order', () => {
    expect(valuesIn(schema.properties.id, 'i01 , xi02 i033 and i04 .')).toEqual(['i01', 'i04']);
    expect(valuesIn(schema.properties.name, 'the blue vase , a red lampshade , the red lamp')).toEqual([
      'blue vase',
      'red lamp',
    ]);
    expect(valuesIn(schema.properties.note, 'anything')).toEqual([]);
  });
});

describe('vocabularies', () => {
  it.each(['^[a-z]{65}$', '^[z-a]{2}$', `^${'a'.repeat(1_001)}$`, '^(a|b$', '^a+$', 'a'])('%s has none', (pattern) => {
    expect(vocabularyOf({ pattern })).toBeUndefined();
  });
});
