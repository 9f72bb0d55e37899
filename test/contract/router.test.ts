/** Python and TypeScript read a router file in the same way: expected probabilities are scikit-learn's own (trainer/tests/router_contract.py). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kindOf } from '../../src/domain/kind';
import { routers } from '../../src/routing';
import { fitOf } from '../../src/routing/linear/model';
import type { FitInput, FittedRouter, RouterContext } from '../../src/routing/router';
import { python } from '../support/embedded-server';
import { scriptedPolicy } from '../support/scripted-policy';

interface Case {
  text: string;
  probabilities: Record<string, number>;
  option: string;
}

const fixture = join(__dirname, '..', '..', 'trainer', 'tests', 'fixtures', 'router_contract.json');
const contract = JSON.parse(readFileSync(fixture, 'utf8')) as {
  router: { options: { name: string; coef: number[] }[] };
  cases: Case[];
};
const context: RouterContext = {
  python,
  client: scriptedPolicy(() => {
    throw new Error('a linear router asks no policy');
  }),
};
const open = (options: object = {}) =>
  kindOf(routers, { kind: 'linear' }).open({ kind: 'linear', ...options }, context);
const router = open();
const signal = new AbortController().signal;

/** Options in the order given; each is a policy of its own. */
const optionsOf = (names: string[]): FittedRouter['options'] =>
  names.map((name) => ({ name, policy: { base: 'b', adapters: [], prompt: { text: name, place: 'before' } } }));
const fittedOf = (file: typeof contract.router, names = file.options.map(({ name }) => name)): FittedRouter => ({
  ...fitOf(file),
  maker: router.identity,
  options: optionsOf(names),
});
const fitted = fittedOf(contract.router);
const choose = (text: string, from = fitted) =>
  router.choose({
    fitted: from,
    messages: [
      { role: 'system', content: 'cancel' },
      { role: 'user', content: text },
    ],
    tools: [],
    seed: 1,
    signal,
  });

test('the fixture has cases of more than one option', () => {
  expect(new Set(contract.cases.map(({ option }) => option)).size).toBeGreaterThan(1);
});

test.each(contract.cases)('routes "$text" as Python does', async ({ text, probabilities, option }) => {
  const routed = await choose(text);
  expect(routed.chosen).toBe(option);
  expect(routed.policy).toEqual(fitted.options.find(({ name }) => name === option)!.policy);
  expect(Object.keys(routed.probabilities).sort()).toEqual(Object.keys(probabilities).sort());
  for (const [name, expected] of Object.entries(probabilities))
    expect(routed.probabilities[name]).toBeCloseTo(expected, 9);
});

test('the base model wins ties', async () => {
  const [first, ...others] = contract.router.options;
  const tied = [first!, ...others.map((option) => ({ ...first!, name: option.name }))];
  expect((await choose('cancel', fittedOf({ ...contract.router, options: tied }))).chosen).toBe('base');
});

test('coefficients or options that do not match are an error, not a choice', async () => {
  const [first, ...rest] = contract.router.options;
  const broken = { ...contract.router, options: [{ ...first!, coef: [] }, ...rest] };
  await expect(choose(contract.cases[0]!.text, fittedOf(broken))).rejects.toThrow(`router option "${first!.name}"`);
  await expect(choose('cancel', fittedOf(contract.router, ['base', 'other']))).rejects.toThrow(
    /can't choose among base, other/,
  );
  const silent = router.choose({ fitted, messages: [{ role: 'system', content: 'x' }], tools: [], seed: 1, signal });
  await expect(silent).rejects.toThrow('without a user message');
});

const wishes = ['cancel', 'return'];
const tasks: FitInput['tasks'] = Array.from({ length: 24 }, (_, n) => ({
  id: `t${n}`,
  messages: [
    { role: 'system', content: 'the same for all' },
    { role: 'user', content: `please ${wishes[n % 2]} item ${n}` },
  ],
  outcomes: { base: [0, 0], cancels: [1 - (n % 2), 1 - (n % 2)], returns: [n % 2, n % 2] },
}));
const fit = (options: object = {}, given = tasks) =>
  open(options).fit({
    options: optionsOf(['base', 'cancels', 'returns']),
    tasks: given,
    seed: 1,
    signal,
    progress: () => undefined,
  });

test('what Python fits, TypeScript applies', async () => {
  const found = await fit();
  expect(found.constant).toBeUndefined();
  expect(found.crossValidation).toMatchObject({ helps: true, routed: { mean: 1, n: 24 }, bestSingle: { mean: 0.5 } });
  const made = { ...found, maker: router.identity, options: optionsOf(['base', 'cancels', 'returns']) };
  expect((await choose('please cancel item 77', made)).chosen).toBe('cancels');
  expect((await choose('please return item 77', made)).chosen).toBe('returns');

  const alike = tasks.map((task) => ({ ...task, outcomes: { base: [1], cancels: [1], returns: [0] } }));
  expect(await fit({ folds: 3 }, alike)).toMatchObject({ constant: 'base', crossValidation: { helps: false } });
}, 120_000);

test('tasks that can not be fitted on are refused in Python’s words', async () => {
  await expect(fit({}, tasks.slice(0, 1))).rejects.toMatchObject({
    type: 'BadInput',
    message: expect.stringContaining('cross-validation needs at least 2'),
  });
}, 60_000);

test.each([1, 2.5, '5'])('folds: %p is refused', (folds) => {
  expect(() => open({ folds })).toThrow(/folds/);
});
