import { sha256 } from '../../../src/store/hash';
import { capabilities } from '../../../examples/shop/rules/errors';
import { calibrate, calibrationBandsSchema } from '../../../src/domain/calibration';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import type { Group, ScoredRollout } from '../../../src/domain/rollout';
import { random } from '../../../examples/shop/target/in-process';
import { shopTasks } from '../../../examples/shop/target/shop';
import { messageHash, normalised } from '../../../src/sandbox/leakage';
import { openModule, type EnvironmentModule, play } from '../../../src/sandbox/module';
import { selfTest } from '../../../src/sandbox/self-test';
import { startKnobs, turn } from '../../../examples/shop/generators/params';
import { wordingOf } from '../../../examples/shop/generators/wording';
import { worldOf } from '../../../examples/shop/generators/world';
import { closedAfterwards } from '../../support/opened';
import { sample } from '../../support/sample';
import { capabilityNames, generate, openGenerators, regenerate, shopTarget } from '../../fixtures/synthesis/generate';
import { library } from '../../fixtures/synthesis/library';

jest.setTimeout(120_000);

const bands = calibrationBandsSchema.parse({});

/** Rewards of 16 attempts at a seed. */
const rewards = (success: number) => Array.from({ length: 16 }, (_, i) => (i < success ? 1 : 0.1));
const judged = (groups: Group[]) => calibrate({ groups, bands, confidence: 0.95 });
const report = (success: number) => judged(Array.from({ length: 10 }, () => ({ rewards: rewards(success) })));

let shop: EnvironmentDescription;
let rollouts: ScoredRollout[];
const open = (source: string): EnvironmentModule => closedAfterwards(openModule({ source }));
beforeAll(async () => {
  ({ description: shop, rollouts } = await shopTarget());
});

/** A module's bytes are the key of all that was calibrated and trained on it: a change of its text needs a new version of the kind. */
test('a module has the bytes that stored campaigns know it by', async () => {
  const { source } = await generate('refuse_forbidden_actions', shop);
  expect(sha256(source)).toBe('c222ad7adbbe840fd6ad3498bf72c38c213fea4cb84132bd4a98659371e9447a');
});

describe('generators on the shop', () => {
  it.each(sample(capabilityNames, 2))('%s: passes the self-test', async (capability) => {
    const { source } = await generate(capability, shop, { rollouts });
    const { tools } = await open(source).describe();
    expect(await selfTest({ source })).toEqual({ passed: true, findings: [] });
    expect(tools.length).toBeGreaterThanOrEqual(3);
    expect(tools.length).toBeLessThanOrEqual(5);
    // Exactly the target's schemas.
    for (const tool of tools) expect(shop.tools).toContainEqual(tool);
  });

  it.each(capabilityNames)(
    '%s: a base that has the capability in a quarter of the samples is calibrated',
    async (capability) => {
      const module = open((await generate(capability, shop, { rollouts })).source);
      const draw = random(`calibration ${capability}`);
      const groups: Group[] = [];
      for (let seed = 0; seed < bands.seeds; seed += 1) {
        const state = (await module.make(seed)) as { special: boolean };
        const { never = [] } = await module.shortcuts(seed);
        const wrong = state.special ? never : [{ role: 'assistant' as const, content: 'done .' }];
        const solved = await play(module, { seed, script: await module.solve(seed) });
        const lacking = (await play(module, { seed, script: wrong })).reward;
        const chance = state.special ? 0.25 : 0.95;
        groups.push({
          rewards: Array.from({ length: 16 }, () => (draw.chance(chance) ? solved.reward : lacking)),
          branch: solved.branch!,
        });
      }
      expect(judged(groups)).toMatchObject({ verdict: 'accepted', reasons: [], judged: { mastered: ['twin'] } });
    },
  );

  it('puts the twin and the special case in the same words, and gives partial credit in order', async () => {
    const module = open((await generate('complete_all_requested_actions', shop, { rollouts })).source);
    // Of a pair the special instance comes first.
    for (let seed = 0; seed < 40; seed += 2) {
      const script = await module.solve(seed);
      const last = script.slice(-1);
      const rewardOf = async (messages: typeof script) => (await play(module, { seed, script: messages })).reward;
      const rewardAfter = (n: number) => rewardOf([...script.slice(0, n), ...last]);
      const [nothing, looked, first, both] = await Promise.all([0, 1, 2, 3].map(rewardAfter));
      expect([nothing, both]).toEqual([0, 1]);
      expect(looked).toBeGreaterThan(nothing!);
      expect(first).toBeGreaterThan(looked!);
      // Trying the second action on a record that is not there costs nothing.
      const [call] = script[2]!.toolCalls!;
      const wrong = {
        ...script[2]!,
        toolCalls: [{ ...call!, id: 'call_9', arguments: { ...call!.arguments, id: 'i00' } }],
      };
      expect(await rewardOf([...script.slice(0, 2), wrong, ...last])).toBeGreaterThanOrEqual(first!);
    }
  });

  it('speaks as the users of the target do', async () => {
    const conversations = rollouts.map(({ messages }) => messages);
    const wording = wordingOf({ conversations, description: shop, world: worldOf(shop) });
    expect(wording).toMatchObject({ done: 'ok', unknownKey: 'error : unknown account', farewell: 'thanks . bye .' });
    expect(wording.skeletons).toContain('{key} {request} .');
    expect(wording.skeletons).toContain('{key} {request} and {request} , {marker} .');
    // Exchanges are in no world of these tools: their words must not get into a skeleton.
    expect(wording.skeletons.join(' ')).not.toMatch(/exchange|\d|lamp|red/);
  });

  it('never shows a user a message of the test split, not even as a part', async () => {
    const tests = [...shopTasks().values()].flatMap((one) => (one.id.startsWith('test-') ? [one.firstMessage] : []));
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
    expect(await hits((await generate('ask_for_missing_identifiers', shop)).source)).toBeGreaterThan(0);
    expect(
      await hits((await generate('ask_for_missing_identifiers', shop, { forbidden: tests.map(messageHash) })).source),
    ).toBe(0);
  });
});

test('there is a generator for whatever the analyst by rules can find', () => {
  const names = Object.values(capabilities).map(({ name }) => name);
  expect([...capabilityNames].sort()).toEqual(names.sort());
});

describe('generators on another target', () => {
  const withoutRequests = { ...library, tools: library.tools.map((t) => ({ ...t, description: 'does something' })) };

  const others = capabilityNames.filter((name) => name !== 'select_matching_record');
  it.each(sample(others, 1))('%s', async (capability) => {
    const { source } = await generate(capability, library);
    expect(await selfTest({ source })).toEqual({ passed: true, findings: [] });
  });

  const bare = { ...library, rules: [] };
  const outputSchema = { properties: { loan: { type: 'string' as const, pattern: '^.+$' } } };
  const vague = { ...library, tools: [{ ...library.tools[1]!, outputSchema }] };
  it.each<[string, EnvironmentDescription]>([
    ['select_matching_record', library],
    ['refuse_forbidden_actions', bare],
    ['compute_action_values', bare],
    ['tell_requested_information', bare],
    ['ask_for_missing_identifiers', bare],
    ['complete_all_requested_actions', withoutRequests],
    ['complete_all_requested_actions', vague],
    ['toString', library],
  ])('cannot make %s', async (capability, description) => {
    await expect(generate(capability, description)).rejects.toMatchObject({ type: 'CannotSynthesize' });
  });

  it('says which targets do not suit it', async () => {
    const { unsuited } = await openGenerators();
    const wrong = [{ kind: 'other' }, { kind: 'tell' }];
    for (const suited of [shop, bare, { ...library, rules: [{ kind: 'of another part' }] }])
      expect(unsuited?.(suited)).toBeUndefined();
    expect(unsuited?.(withoutRequests)).toBeDefined();
    for (const tools of [library.tools, []])
      expect(unsuited?.({ ...library, tools, rules: wrong })).toMatch(/^rules\.1 /);
  });

  it('stops when it is told to', async () => {
    const signal = AbortSignal.abort(new Error('cancelled'));
    await expect(generate('complete_all_requested_actions', library, { signal })).rejects.toThrow('cancelled');
  });
});

describe('after calibration', () => {
  const calibrated = (source: string, success: number) => ({ source, findings: [], calibration: report(success) });

  it('turns the knobs harder or easier within their limits', () => {
    expect(turn(startKnobs, report(15))).toEqual({ records: [4, 5], lookalikes: 2 });
    expect(turn(startKnobs, report(1))).toEqual({ records: [2, 3], lookalikes: 1 });
    const [hardest, easiest] = [16, 0].map((success) => {
      let knobs = startKnobs;
      for (let round = 0; round < 9; round += 1) knobs = turn(knobs, report(success));
      return knobs;
    });
    expect(hardest).toEqual({ records: [5, 6], lookalikes: 2 });
    expect(easiest).toEqual({ records: [2, 3], lookalikes: 1 });
    expect(turn(startKnobs, report(5))).toEqual(startKnobs);
  });

  it('turns them by the branches that were judged, not by those that are mastered', () => {
    const groups = Array.from({ length: 20 }, (_, n) =>
      n % 2 ? { branch: 'twin', rewards: rewards(16) } : { branch: 'special', rewards: rewards(1) },
    );
    const hard = judged(groups);
    expect(hard.judged).toBeDefined();
    expect(turn(startKnobs, hard)).toEqual(turn(startKnobs, report(1)));
  });

  const revised: [name: string, success: number, last: number][] = [
    ['refuse_forbidden_actions', 0, 2],
    ['complete_all_requested_actions', 16, 3],
    ['select_matching_record', 16, 3],
    ['select_matching_record', 0, 2],
  ];
  it.each(sample(revised, 1))(
    '%s, success %d of 16: the last module passes the self-test, and there is none after it',
    async (name, success, last) => {
      let { source } = await generate(name, shop);
      for (let round = 2; round <= last; round += 1)
        ({ source } = await regenerate(name, shop, { round, previous: calibrated(source, success) }));
      expect((await selfTest({ source })).findings).toEqual([]);
      await expect(regenerate(name, shop, { previous: calibrated(source, success) })).rejects.toMatchObject({
        type: 'CannotSynthesize',
      });
    },
  );
});

test.each<[string, object]>([
  ['a finding', { findings: ['one'], calibration: report(16) }],
  ['what a person rejects', { rejection: 'users are rude', calibration: report(16) }],
  ['another first line', { source: 'export const x = 1;\n' }],
  ['a first line that is no JSON', { source: 'export const params = { records };\n' }],
  ['other params', { source: 'export const params = {"knobs":1};\n' }],
])('no knob repairs %s', async (_, changes) => {
  const { source } = await generate('refuse_forbidden_actions', shop);
  const revised = regenerate('refuse_forbidden_actions', shop, { previous: { source, findings: [], ...changes } });
  await expect(revised).rejects.toMatchObject({ type: 'CannotSynthesize' });
});
