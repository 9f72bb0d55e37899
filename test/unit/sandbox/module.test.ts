/** The interface of a module, held against what it says at the sandbox's border, and a module as an environment. */
import { sandboxEnvironment, openModule, type EnvironmentModule } from '../../../src/sandbox/module';
import { MOST_STEPS, MOST_TOOLS, TEXT_CHARS } from '../../../src/sandbox/limits';
import { SandboxError } from '../../../src/sandbox/sandbox';
import { closedAfterwards } from '../../support/opened';

/** Counts steps, ends at "end", scores a quarter a step. */
const parts = {
  describe: `({ policy: 'count .', tools: [{ name: 'look', description: '', parameters: {} }], maxSteps: 3 })`,
  make: '({ seed: state, count: 0 })',
  start: `[{ role: 'system', content: 'count .' }, { role: 'user', content: 'to ' + state.seed }]`,
  step: `({
    state: { ...state, count: state.count + 1 }, messages: [{ role: 'user', content: message.content }], done: message.content === 'end',
  })`,
  reward: '({ reward: state.count / 4, breakdown: {} })',
  reference: '({ actions: [], tell: [] })',
  solve: `[{ role: 'assistant', content: 'end' }]`,
  shortcuts: '({})',
};
type Changes = Partial<typeof parts>;
const moduleOf = (changes: Changes = {}): EnvironmentModule => {
  const functions = Object.entries({ ...parts, ...changes }).map(
    ([name, body]) => `export const ${name} = (state, message) => ${body};`,
  );
  return closedAfterwards(openModule({ source: functions.join('\n') }));
};
const environmentOf = (changes?: Changes) => sandboxEnvironment({ module: moduleOf(changes), version: 'f'.repeat(64) });
const say = (content: string) => ({ role: 'assistant' as const, content });
const use = { ...say(''), toolCalls: [{ id: 'call_0', name: 'look', arguments: {} }] };

describe('the interface', () => {
  const described = (m: EnvironmentModule) => m.describe();
  const spoken = (m: EnvironmentModule) => m.step({}, say('x'));
  const called = (m: EnvironmentModule) => m.step({}, use);
  const rewarded = (m: EnvironmentModule) => m.reward({});
  const answer = (messages: string, done = false): Changes => ({
    step: `({ state, done: ${done}, messages: ${messages} })`,
  });
  const said = (text: string) => answer(`[{ role: 'user', content: ${text} }]`);
  const toolAnswer = (id: string) => `{ role: 'tool', toolCallId: '${id}', content: 'x' }`;
  const describing = (from: string | RegExp, to: string) => ({ describe: parts.describe.replace(from, to) });
  const tool = (more: string) => describing('parameters: {}', `parameters: {}, ${more}`);
  const rewarding = (reward: string) => ({ reward: `({ reward: ${reward}, breakdown: {} })` });
  const manyTools = `({ policy: 'p', maxSteps: 5, tools: Array(${MOST_TOOLS + 1}).fill({}) })`;
  const manyShortcuts = 'Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, []]))';
  const longSolution = `Array(${MOST_STEPS + 1}).fill({ role: 'assistant', content: 'x' })`;
  const longKey = `({ reward: 1, breakdown: { ['z'.repeat(900000)]: 1 } })`;

  it.each<[string, Changes, (m: EnvironmentModule) => Promise<unknown>, RegExp]>([
    ['a silent step', answer('[]'), spoken, /^step: nothing is said and the episode continues/],
    ['an unanswered call', said(`'x'`), called, /call_0" is not answered/],
    ['an answer to nobody', answer(`[${toolAnswer('z')}]`), called, /"z", which is no open call/],
    ['a second answer', answer(`Array(2).fill(${toolAnswer('call_0')})`), called, /no open call/],
    ['a blank text', said(`' \\n'`), spoken, /^step: result\.messages\.0\.content: it is blank/],
    ['control characters', said(`'a\\u001b[2J'`), spoken, /control characters/],
    ['half a pair', said(`'\\ud800 x'`), spoken, /surrogate/],
    ['a long text', said(`'x'.repeat(${TEXT_CHARS + 1})`), spoken, /content: Too big/],
    ['many messages', answer(`Array(17).fill({ role: 'user', content: 'x' })`), spoken, /17 messages answer one/],
    ['a crowd of messages', answer('Array(300000).fill(0)'), spoken, /result\.messages: more than 1000/],
    ['a state of null', { step: '({ state: null, done: true, messages: [] })' }, spoken, /state: a state is needed/],
    ['endless steps', describing('maxSteps: 3', 'maxSteps: 201'), described, /maxSteps: Too big/],
    ['a crowd of tools', { describe: manyTools }, described, /result\.tools: more than 64/],
    ['a tool twice', describing(/tools: \[(.*)\]/, 'tools: [$1, $1]'), described, /the same name/],
    ['a nameless tool', describing(`'look'`, `''`), described, /tools\.0\.name/],
    ['a list for a schema', tool('outputSchema: []'), described, /outputSchema: a schema is needed/],
    [
      'a long description',
      tool(`outputSchema: { about: ['x'.repeat(250000)] }`),
      described,
      /\d+ characters, more than/,
    ],
    ['a long solution', { solve: longSolution }, (m) => m.solve(1), /more than 200/],
    ['many shortcuts', { shortcuts: manyShortcuts }, (m) => m.shortcuts(1), /more than 64 entries/],
    ['a long key', { reward: longKey }, rewarded, /^reward: result\.breakdown\.z+…: /],
    ['a reward of NaN', rewarding('NaN'), rewarded, /^reward: result\.reward:/],
    ['a reward above 1', rewarding('1.5'), rewarded, /^reward: result\.reward:/],
    ['a reward in words', rewarding('"1"'), rewarded, /^reward: result\.reward:/],
  ])('%s breaks the call, in few words', async (_, changes, run, message) => {
    const error = await run(moduleOf(changes)).then(
      () => undefined,
      (e: Error) => e,
    );
    expect(error).toBeInstanceOf(SandboxError);
    expect(error?.message).toMatch(message);
    expect(error?.message.length).toBeLessThan(500);
  });
});

describe('an environment', () => {
  it('runs interleaved episodes independently and ends them by the step limit', async () => {
    const environment = await environmentOf();
    const [a, b] = await Promise.all(['seed-1', 'seed-2'].map((id) => environment.reset({ id, seed: 0 })));
    expect(a!.start.messages[1]).toEqual({ role: 'user', content: 'to 1' });
    await a!.step(say('x'));
    await a!.step(say('y'));
    expect(await b!.step(say('end'))).toMatchObject({ done: true, stopReason: 'user_stop' });
    expect(await a!.step(say('z'))).toMatchObject({ done: true, stopReason: 'max_steps' });
    expect((await a!.evaluate('max_steps')).reward).toBe(0.75);
    expect(await b!.evaluate('user_stop')).toEqual({
      reward: 0.25,
      breakdown: {},
      reference: { actions: [], tell: [] },
    });
  });
});
