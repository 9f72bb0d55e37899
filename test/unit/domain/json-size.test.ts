/** Bounds on JSON texts are found without parsing them. */
import { measureJson } from '../../../src/domain/json-size';

const NONE = { values: Infinity, levels: Infinity };
const counted = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Object.values(value).reduce<number>((n, one) => n + counted(one), 1)
    : 1;

test.each([
  '1',
  '{}',
  '[]',
  '[{},{},{}]',
  '{"a":[1,2,{"b":null}],"c":{"d":[],"e":""}}',
  JSON.stringify(['a,b', '{[', '"', '\\', ['\\"],{}'], { 'k"': '\\\\"' }]),
])('the values of %s are counted', (text) => {
  expect(measureJson(text, NONE)).toEqual({ values: counted(JSON.parse(text)) });
});

test('the first bound that is exceeded is named, with the field', () => {
  expect(measureJson('{"a":1,"b":[1,2,3,4],"c":1}', { values: 5, levels: 2 })).toMatchObject({
    exceeded: 'values',
    field: 'b',
  });
  expect(measureJson('{"a":1,"b":{"c":[{}]},"d":1}', { values: 99, levels: 3 })).toMatchObject({
    exceeded: 'levels',
    field: 'b',
  });
  expect(measureJson('['.repeat(1e6), { values: 1e5, levels: 1e5 })).toMatchObject({ exceeded: 'values' });
});
