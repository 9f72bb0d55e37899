import { createShop } from '../../src/environments/shop';
import { selfTest } from '../../src/sandbox/self-test';
import { generate } from '../fixtures/synthesis/generate';

jest.setTimeout(120_000);

let source: string;
beforeAll(async () => {
  ({ source } = await generate('refuse_forbidden_actions', await createShop().describe()));
});

describe('self-test', () => {
  const flawed = (from: string | RegExp, to: string): string => {
    const changed = source.replace(from, to);
    if (changed === source) throw new Error(`the module does not hold ${from}`);
    return changed;
  };

  it.each([
    ['too few twins', /"twins":[\d.]+/, '"twins":0.1', /shortcut "always" succeeds on/],
    ['no special case', /"twins":[\d.]+/, '"twins":1', /shortcut "never" succeeds on 100%/],
    [
      'a reward without a look-up',
      'right = state.done && looked',
      'right = state.done',
      /always saying "not allowed ."/,
    ],
    [
      'a reward for nothing',
      'reward: right ? 1 :',
      'reward: right || !state.done ? 1 :',
      /doing nothing succeeds on 100%/,
    ],
    [
      'a reference that fails',
      "parts.push('done .')",
      "parts.push('not allowed .')",
      /reference solutions score below 1/,
    ],
    ['a reward above 1', 'reward: right ? 1 :', 'reward: right ? 1.5 :', /the module fails: reward: result.reward/],
    ['a reward that is NaN', 'reward: right ? 1 :', 'reward: right ? NaN :', /the module fails: reward: result.reward/],
    [
      'one instance only',
      'randomOf(`${params.capability} ${seed} ${attempt}`)',
      "randomOf('x')",
      /distinct instances of 102/,
    ],
    ['unseeded randomness', 'randomOf(`${params.capability} ${seed} ${attempt}`)', 'Math.random', /the module fails/],
    ['another shape', "join(' ; ')", "join(', ')", /does not have the shape of its outputSchema/],
    ['an empty observation', 'return wording.done;', "return '';", /the module fails: step/],
    [
      'an endless loop',
      'function rewardOf(params, state) {',
      'function rewardOf(params, state) { for (;;) {}',
      /longer than its limit/,
    ],
    ['a missing function', 'reference, solve, shortcuts', 'reference, shortcuts', /does not export solve/],
    ['no module', /^/, '{', /the module fails.*SyntaxError/],
  ])('finds %s', async (_, from, to, finding) => {
    const { passed, findings } = await selfTest({ source: flawed(from, to) });
    expect(passed).toBe(false);
    expect(findings.join('\n')).toMatch(finding);
  });

  it('takes any text for a value that its schema does not list', async () => {
    const free = flawed(
      '"outputSchema":{"type":"object","properties":{',
      '"outputSchema":{"type":"object","properties":{"note":{"type":"string"},',
    );
    expect(await selfTest({ source: free })).toEqual({ passed: true, findings: [] });
  });

  /** Wrong in many ways, with long texts in all of them. */
  const verbose = (reward: number): string => `
    const long = 'x'.repeat(10_000);
    const outputSchema = { type: 'object', properties: { n: { type: 'string', enum: ['1'] } } };
    const tools = ['a', 'b', 'c'].map((name) => ({ name, description: '', parameters: {}, outputSchema }));
    export const describe = () => ({ policy: 'p', tools, maxSteps: 3 });
    export const make = (seed) => ({ seed });
    export const start = () => [{ role: 'user', content: 'u' }];
    export const step = (state, { toolCalls = [] }) => ({
      state, done: false, messages: toolCalls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: long })),
    });
    export const reward = () => ({ reward: ${reward}, breakdown: { [long]: 1 } });
    export const reference = () => ({ actions: [], tell: [] });
    export const solve = () => [
      { role: 'assistant', content: long, toolCalls: [{ id: 'call_0', name: 'a', arguments: {} }] },
    ];
    export const shortcuts = () => Object.fromEntries(Array.from({ length: 14 }, (_, n) => [n + long, []]));`;

  it('quotes no more than the beginning of a text, and lists the first findings', async () => {
    const { passed, findings } = await selfTest({ source: verbose(1) });
    expect(passed).toBe(false);
    expect(findings).toHaveLength(21);
    expect(findings.at(-1)).toBe('3 more findings are left out: mend these first');
    const beginnings = [/^step: seed 0: "x{300}…" of a does/, /always saying "x+… succeeds/, /shortcut "0x+… succeeds/];
    for (const beginning of beginnings) expect(findings).toContainEqual(expect.stringMatching(beginning));
    for (const finding of findings) expect(finding.length).toBeLessThan(600);
  });

  it('quotes no more than the beginning of a breakdown', async () => {
    const { findings } = await selfTest({ source: verbose(0) });
    expect(findings).toContainEqual(expect.stringMatching(/with 0 \({"x{298}…\): make solve and reward agree$/));
  });
});
