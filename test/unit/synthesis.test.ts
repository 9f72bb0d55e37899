import { calibrate } from '../../src/domain/calibration';
import { calibrationBandsSchema } from '../../src/domain/campaign';
import { errorClassSchema, type Candidate, type ErrorClass } from '../../src/domain/capability';
import type { EnvironmentDescription } from '../../src/domain/environment';
import type { Message } from '../../src/domain/messages';
import { createShop } from '../../src/environments/shop';
import { random } from '../../src/environments/shop/random';
import { demonstrate } from '../../src/environments/shop/reference-agent';
import { shopTasks } from '../../src/environments/shop/tasks';
import { knobsOf, synthesize } from '../../src/synthesis/generators/synthesize';
import { startKnobs, turn, TWINS } from '../../src/synthesis/generators/params';
import { messageHash, normalised } from '../../src/synthesis/leakage';
import { openModule, type EnvironmentModule } from '../../src/synthesis/module';
import { play } from '../../src/synthesis/play';
import { selfTest } from '../../src/synthesis/self-test';
import { vocabularyOf } from '../../src/synthesis/vocabulary';
import { wordingOf } from '../../src/synthesis/wording';
import { worldOf } from '../../src/synthesis/world';
import { library } from '../fixtures/synthesis/library';

jest.setTimeout(120_000);

const classes = errorClassSchema.options;
const bands = calibrationBandsSchema.parse({});
const candidate = (errorClass: ErrorClass): Candidate => ({
  name: 'a_skill',
  definition: '',
  examples: [],
  errorClass,
});
const generate = (errorClass: ErrorClass, description: EnvironmentDescription, more: object = {}) =>
  synthesize({ candidate: candidate(errorClass), description, round: 1, ...more });

let shop: EnvironmentDescription;
let conversations: Message[][];
const opened: EnvironmentModule[] = [];
const open = (source: string): EnvironmentModule => {
  const module = openModule({ source });
  opened.push(module);
  return module;
};
beforeAll(async () => {
  shop = await createShop().describe();
  const train = [...shopTasks().values()].filter(({ id }) => id.startsWith('train-')).slice(0, 200);
  conversations = await Promise.all(
    train.map(async (task) => (await demonstrate({ task, lacks: new Set(['ask']), rng: random(task.id) })).messages),
  );
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((module) => module.close()));
});

describe('generators on the shop', () => {
  it.each(classes)('%s: passes the self-test', async (errorClass) => {
    const { source, params } = generate(errorClass, shop, { conversations });
    expect(await selfTest({ source })).toEqual({ passed: true, findings: [] });
    expect(params.tools.length).toBeGreaterThanOrEqual(3);
    expect(params.tools.length).toBeLessThanOrEqual(5);
    // Exactly the target's schemas.
    for (const tool of params.tools) expect(shop.tools).toContainEqual(tool);
  });

  it.each(classes)(
    '%s: a base that has the capability in a quarter of the samples is calibrated',
    async (errorClass) => {
      const module = open(generate(errorClass, shop, { conversations }).source);
      const draw = random(`calibration ${errorClass}`);
      const groups: number[][] = [];
      for (let seed = 0; seed < bands.seeds; seed += 1) {
        const state = (await module.make(seed)) as { special: boolean };
        const { never = [] } = await module.shortcuts(seed);
        const wrong = state.special ? never : [{ role: 'assistant' as const, content: 'done .' }];
        const right = (await play(module, { seed, script: await module.solve(seed) })).reward;
        const lacking = (await play(module, { seed, script: wrong })).reward;
        groups.push(Array.from({ length: 16 }, () => (draw.chance(state.special ? 0.25 : 0.95) ? right : lacking)));
      }
      const report = calibrate({ groups, bands });
      expect(report).toMatchObject({ verdict: 'accepted', reasons: [] });
    },
  );

  it('puts the twin and the special case in the same words, and gives partial credit in order', async () => {
    const module = open(generate('omitted_action', shop, { conversations }).source);
    for (let seed = 0; seed < 40; seed += 1) {
      const state = (await module.make(seed)) as { special: boolean };
      if (!state.special) continue;
      const script = await module.solve(seed);
      const rewardAfter = async (n: number): Promise<number> =>
        (await play(module, { seed, script: [...script.slice(0, n), ...script.slice(-1)] })).reward;
      const [nothing, looked, first, both] = [
        await rewardAfter(0),
        await rewardAfter(1),
        await rewardAfter(2),
        await rewardAfter(3),
      ];
      expect([nothing, both]).toEqual([0, 1]);
      expect(looked).toBeGreaterThan(nothing);
      expect(first).toBeGreaterThan(looked);
      // Trying the second action on a record that is not there costs nothing.
      const call = script[2]?.toolCalls?.[0];
      const wrong = { id: 'call_9', name: call?.name ?? '', arguments: { ...call?.arguments, id: 'i00' } };
      const tried = [
        ...script.slice(0, 2),
        { role: 'assistant' as const, content: '', toolCalls: [wrong] },
        ...script.slice(-1),
      ];
      expect((await play(module, { seed, script: tried })).reward).toBeGreaterThanOrEqual(first);
    }
  });

  it('speaks as the users of the target do', async () => {
    const wording = wordingOf({ conversations, description: shop, world: worldOf(shop) });
    expect(wording).toMatchObject({ done: 'ok', unknownKey: 'error : unknown account', farewell: 'thanks . bye .' });
    expect(wording.skeletons).toContain('{key} {request} .');
    expect(wording.skeletons).toContain('{key} {request} and {request} , {marker} .');
    // Exchanges are in no world of these tools: their words must not get into a skeleton.
    expect(wording.skeletons.join(' ')).not.toMatch(/exchange|\d|lamp|red/);
  });

  it('never shows a user a message of the test split, not even as a part', async () => {
    const tests = [...shopTasks().values()]
      .filter(({ id }) => id.startsWith('test-'))
      .map(({ firstMessage }) => firstMessage);
    const forbidden = tests.map(messageHash);
    const hits = async (source: string): Promise<number> => {
      const module = open(source);
      let found = 0;
      for (let seed = 0; seed < 600; seed += 1) {
        const [, user] = await module.start(await module.make(seed));
        const text = ` ${normalised(user?.content ?? '')} `;
        if (tests.some((test) => text.includes(` ${normalised(test)} `))) found += 1;
      }
      return found;
    };
    expect(await hits(generate('invented_identifier', shop).source)).toBeGreaterThan(0);
    expect(await hits(generate('invented_identifier', shop, { forbidden }).source)).toBe(0);
  });

  it('answers bad calls as the target does', async () => {
    const module = open(generate('wrong_value', shop, { conversations }).source);
    const state = await module.make(3);
    const observed = async (name: string, given: Record<string, unknown>) => {
      const { messages } = await module.step(state, {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'c', name, arguments: given }],
      });
      return messages[0]?.content;
    };
    expect(await observed('get_account', { user: 'x' })).toMatch(/^error/);
    expect(await observed('get_account', {})).toMatch(/^error/);
    expect(await observed('no_such_tool', {})).toBe('error : unknown tool');
    expect(await observed('cancel_item', { item: 'red lamp', id: 'i99' })).toMatch(/^error/);
  });
});

describe('generators on another target', () => {
  it.each(classes.filter((c) => c !== 'wrong_candidate'))('%s', async (errorClass) => {
    const { source } = generate(errorClass, library);
    expect(await selfTest({ source })).toEqual({ passed: true, findings: [] });
  });

  it('says what it cannot make', () => {
    expect(() => generate('wrong_candidate', library)).toThrow(/"title" has fewer than two words/);
    const bare = { ...library, rules: [] };
    for (const errorClass of ['forbidden_action', 'wrong_value', 'untold_information', 'invented_identifier'] as const)
      expect(() => generate(errorClass, bare)).toThrow(expect.objectContaining({ type: 'CannotSynthesize' }));
    const mute = { ...library, tools: library.tools.map((t) => ({ ...t, description: 'does something' })) };
    expect(() => generate('omitted_action', mute)).toThrow(/a description that says the request/);
    expect(() =>
      synthesize({ candidate: { name: 'a_b', definition: '', examples: [] }, description: library, round: 1 }),
    ).toThrow(/errorClass/);
    expect(() => vocabularyOf('code', { type: 'string', pattern: '^.+$' })).toThrow(/cannot draw values of "code"/);
  });
});

describe('rounds', () => {
  const report = (success: number) =>
    calibrate({
      groups: Array.from({ length: 10 }, () => Array.from({ length: 16 }, (_, i) => (i < success ? 1 : 0.1))),
      bands,
    });

  it('turns the knobs harder or easier within their limits', () => {
    const harder = turn(startKnobs, report(15));
    expect(harder.twins).toBeLessThan(startKnobs.twins);
    expect(harder.records[1]).toBeGreaterThan(startKnobs.records[1]);
    const easier = turn(startKnobs, report(1));
    expect(easier.twins).toBeGreaterThan(startKnobs.twins);
    expect(easier.records[0]).toBeLessThan(startKnobs.records[0]);
    let knobs = startKnobs;
    for (let round = 0; round < 9; round += 1) knobs = turn(knobs, report(16));
    expect(knobs.twins).toBe(TWINS.fewest);
    expect(turn(startKnobs, report(5))).toEqual(startKnobs);
  });

  it.each(['omitted_action', 'forbidden_action', 'wrong_candidate'] as const)(
    '%s: the hardest and the easiest module pass the self-test',
    async (errorClass) => {
      for (const success of [16, 0]) {
        let source = generate(errorClass, shop).source;
        for (let round = 2; round <= 5; round += 1)
          source = generate(errorClass, shop, { round, previous: { source, feedback: report(success) } }).source;
        expect(knobsOf(source).twins).toBe(success > 0 ? TWINS.fewest : TWINS.most);
        expect((await selfTest({ source })).findings).toEqual([]);
      }
    },
  );

  it('is a pure function of its input', () => {
    const previous = { source: generate('wrong_value', shop).source, feedback: report(1) };
    const made = (): string => generate('wrong_value', shop, { conversations, round: 2, previous }).source;
    expect(made()).toBe(made());
    expect(() => knobsOf('export const x = 1;\n')).toThrow(/not made by the generators/);
  });
});

describe('self-test', () => {
  const flawed = (from: string | RegExp, to: string, errorClass: ErrorClass = 'forbidden_action'): string => {
    const { source } = generate(errorClass, shop);
    const changed = source.replace(from, to);
    if (changed === source) throw new Error(`the module does not hold ${from}`);
    return changed;
  };

  it.each([
    ['too few twins', /"twins":[\d.]+/, '"twins":0.1', /shortcut "always" succeeds on/],
    ['no special case', /"twins":[\d.]+/, '"twins":1', /shortcut "never" succeeds on 100%/],
    [
      'a reward without a look-up',
      'right = state.done && state.looked',
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
    ['one instance only', /randomOf\(params.errorClass [^)]*\)/, "randomOf('x')", /distinct instances of 102/],
    ['unseeded randomness', /randomOf\(params.errorClass [^)]*\)/, 'Math.random', /the module fails/],
    ['another shape', "join(' ; ')", "join(', ')", /does not have the shape of its outputSchema/],
    ['an empty observation', 'return wording.done;', "return '';", /the module fails: step/],
    [
      'an endless loop',
      'export function reward(state) {',
      'export function reward(state) { for (;;) {}',
      /longer than its limit/,
    ],
    ['a missing function', 'export function solve', 'function solve', /does not export solve/],
    ['no module', /^/, '{', /the module fails.*SyntaxError/],
  ])('finds %s', async (_, from, to, finding) => {
    const { passed, findings } = await selfTest({ source: flawed(from, to) });
    expect(passed).toBe(false);
    expect(findings.join('\n')).toMatch(finding);
  });
});
