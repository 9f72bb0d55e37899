/** Python and TypeScript read a router file in the same way: expected probabilities are scikit-learn's own (trainer/tests/router_contract.py). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { route, routerSchema } from '../../src/routing/router';

interface Case {
  text: string;
  probabilities: Record<string, number>;
  option: string;
}

const fixture = join(__dirname, '..', '..', 'trainer', 'tests', 'fixtures', 'router_contract.json');
const contract = JSON.parse(readFileSync(fixture, 'utf8')) as { router: unknown; cases: Case[] };
const router = routerSchema.parse(contract.router);

test('the fixture has cases of more than one option', () => {
  expect(new Set(contract.cases.map(({ option }) => option)).size).toBeGreaterThan(1);
});

test.each(contract.cases)('routes "$text" as Python does', ({ text, probabilities, option }) => {
  const routed = route(router, text);
  expect(routed.option).toBe(option);
  expect(Object.keys(routed.probabilities).sort()).toEqual(Object.keys(probabilities).sort());
  for (const [name, expected] of Object.entries(probabilities))
    expect(routed.probabilities[name]).toBeCloseTo(expected, 9);
});

test('coefficients that do not match the vocabulary are an error, not a choice', () => {
  const [first, ...rest] = router.options;
  const broken = { ...router, options: [{ ...first!, coef: [] }, ...rest] };
  expect(() => route(broken, contract.cases[0]!.text)).toThrow(`router option "${first!.name}"`);
});

test('a constant router gives every conversation its option', () => {
  const constant = { ...router, constant: 'base' };
  expect(contract.cases.map(({ text }) => route(constant, text).option)).toEqual(contract.cases.map(() => 'base'));
});
