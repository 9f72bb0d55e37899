/** Python and TypeScript read a router file in the same way (trainer/tests/router_contract.py). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kindOf } from '../../src/domain/kinds';
import { routers } from '../../src/routing';
import { fitSchema, type FitInput, type FittedRouter, type RouterContext } from '../../src/routing/router';
import { python } from '../support/embedded-server';
import { scriptedPolicy } from '../support/scripted-policy';

interface Case {
  text: string;
  predictions: Record<string, number>;
  option: string;
}
interface Contract {
  options: string[];
  router: { parameters: Record<string, unknown> };
  cases: Case[];
}

const fixture = join(__dirname, '..', '..', 'trainer', 'tests', 'fixtures', 'router_contract.json');
const { options, router: file, cases } = JSON.parse(readFileSync(fixture, 'utf8')) as Contract;
const context: RouterContext = {
  python,
  client: scriptedPolicy(() => {
    throw new Error('a learned router asks no policy');
  }),
};
const open = (given: object = {}) => kindOf(routers, { kind: 'learned' }).open({ kind: 'learned', ...given }, context);
const router = open();
const signal = new AbortController().signal;

/** Options in the order given; each is a policy of its own. */
const optionsOf = (names: string[]): FittedRouter['options'] =>
  names.map((name) => ({ name, policy: { base: 'b', adapters: [], prompt: { text: name, place: 'before' } } }));
const fittedOf = (file: unknown, names: string[]): FittedRouter => ({
  ...fitSchema.parse(file),
  maker: router.identity,
  options: optionsOf(names),
});
const choose = (text: string, from: FittedRouter) =>
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

const fitted = fittedOf(file, options);

test.each(cases)('routes "$text" as Python does', async ({ text, predictions, option }) => {
  const routed = await choose(text, fitted);
  expect(routed.chosen).toBe(option);
  expect(Object.keys(routed.probabilities).sort()).toEqual(Object.keys(predictions).sort());
  for (const [name, expected] of Object.entries(predictions))
    expect(routed.probabilities[name]).toBeCloseTo(Math.min(1, Math.max(0, expected)), 9);
});

test('the first of equals wins, even if the last digits differ', async () => {
  const tied = structuredClone(file);
  const [first, ...others] = tied.parameters['options'] as { name: string; intercept: number }[];
  const equal = others.map(({ name }, n) => ({ ...first!, name, intercept: first!.intercept + n * 1e-13 }));
  tied.parameters['options'] = [first, ...equal];
  expect((await choose('cancel', fittedOf(tied, options))).chosen).toBe('base');
});

test('parameters or options that do not match are an error, not a choice', async () => {
  const broken = structuredClone(file);
  (broken.parameters['options'] as { coef: number[] }[])[0]!.coef = [];
  await expect(choose(cases[0]!.text, fittedOf(broken, options))).rejects.toThrow(/router option "base"/);
  await expect(choose('cancel', fittedOf(file, ['base', 'other']))).rejects.toThrow(/can't choose among base, other/);
  const silent = router.choose({ fitted, messages: [{ role: 'system', content: 'x' }], tools: [], seed: 1, signal });
  await expect(silent).rejects.toThrow('without a user message');
  const unknown = { ...file, parameters: { form: 'another' } };
  await expect(choose('cancel', fittedOf(unknown, options))).rejects.toThrow(/form/);
  const slow = structuredClone(file);
  (slow.parameters['words'] as { tokenPattern: string }).tokenPattern = '(a+)+$';
  await expect(choose('cancel', fittedOf(slow, options))).rejects.toThrow(/tokenPattern/);
});

const wishes = ['cancel', 'return'];
const tasks: FitInput['tasks'] = Array.from({ length: 24 }, (_, n) => ({
  id: `t${n}`,
  messages: [
    { role: 'system', content: 'the same for all' },
    { role: 'user', content: `please ${wishes[n % 2]} item ${n}` },
  ],
  outcomes: { base: [0, 0], cancels: [1 - (n % 2), 1 - (n % 2)], returns: [n % 2, n % 2], 'cancels+returns': [0, 0] },
}));
/** Sums are options like others. */
const names = ['base', 'cancels', 'returns', 'cancels+returns'];
const fit = (options: object = {}, given = tasks) =>
  open(options).fit({
    options: optionsOf(names),
    tasks: given,
    seed: 1,
    signal,
    progress: () => undefined,
  });

test('TypeScript applies the router that Python fits', async () => {
  const found = await fit();
  expect(found.constant).toBeUndefined();
  expect(found.crossValidation).toMatchObject({
    helps: true,
    routed: { mean: 1, n: 24 },
    bestSingle: { option: 'cancels' },
  });
  expect(found.crossValidation.forms?.map(({ form }) => form)).toEqual(['constant', 'ridge']);
  const made = { ...found, maker: router.identity, options: optionsOf(names) };
  expect((await choose('please cancel item 77', made)).chosen).toBe('cancels');
  expect((await choose('please return item 77', made)).chosen).toBe('returns');
});

/** A base model that hears the wish, whatever example it is shown. */
const listening: RouterContext['client'] = {
  sample: context.client.sample,
  likeliest: async ({ messages }) => {
    const lines = messages[0]!.content.split('\n');
    const wish = /Request: please (\w+)/.exec(messages[0]!.content)![1]!;
    const shown = lines.filter((line) => /^[A-Z]: /.test(line));
    return shown.map((line) => ({ token: line[0]!, logprob: line.includes(`: ${wish}s`) ? -0.1 : -4 }));
  },
};

test('label_tokens: fitted and applied to answers of the base model', async () => {
  const spec = { kind: 'label_tokens' };
  const labelling = kindOf(routers, spec).open(spec, { ...context, client: listening });
  const found = await labelling.fit({
    options: optionsOf(names),
    tasks,
    seed: 1,
    signal,
    progress: () => undefined,
    definitions: { cancels: 'Cancels.', returns: 'Returns.' },
  });
  expect(found.constant).toBeUndefined();
  expect(found.crossValidation).toMatchObject({ form: 'labels', routed: { mean: 1, n: 24 } });
  const made = { ...found, maker: labelling.identity, options: optionsOf(names) };
  const messages = [{ role: 'user' as const, content: 'please return item 77' }];
  expect(await labelling.choose({ fitted: made, messages, tools: [], seed: 1, signal })).toMatchObject({
    chosen: 'returns',
  });
});
