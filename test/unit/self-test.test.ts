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
});
