/** Modules for pairs of capabilities: what their instances are, and that they pay for what the target pays for, on the shop itself. */
import { calibrate } from '../../../src/domain/calibration';
import { calibrationBandsSchema } from '../../../src/domain/campaign';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import type { AssistantMessage } from '../../../src/domain/messages';
import type { ScoredRollout } from '../../../src/domain/rollout';
import type { Item } from '../../../src/environments/shop/database';
import { random } from '../../../src/environments/shop/random';
import { agentMessages } from '../../../src/environments/shop/reference-agent';
import { openEpisode } from '../../../src/environments/shop/shop';
import type { Request, ShopTask, Skill } from '../../../src/environments/shop/tasks';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, TRAINING_SEEDS } from '../../../src/sandbox/seeds';
import { selfTest } from '../../../src/sandbox/self-test';
import type { CapabilityName } from '../../../src/synthesis/generators/capabilities';
import type { Instance } from '../../../src/synthesis/generators/instance';
import { preparedOf } from '../../../src/synthesis/generators/module/accounts';
import { hintOf } from '../../../src/synthesis/generators/module/hint';
import { instanceOf } from '../../../src/synthesis/generators/module/instances';
import { mainOf, memberOf } from '../../../src/synthesis/generators/module/members';
import { referenceOf, rewardOf } from '../../../src/synthesis/generators/module/reward';
import { shortcutsOf, solutionOf } from '../../../src/synthesis/generators/module/solutions';
import { stepOf } from '../../../src/synthesis/generators/module/transitions';
import type { Params } from '../../../src/synthesis/generators/params';
import { composite, generate, plantedPairs, regenerate, shopTarget } from '../../fixtures/synthesis/generate';
import { library } from '../../fixtures/synthesis/library';

jest.setTimeout(120_000);

type Pair = readonly [CapabilityName, CapabilityName];

const skills: Partial<Record<CapabilityName, Skill>> = {
  complete_all_requested_actions: 'complete_all',
  refuse_forbidden_actions: 'refuse',
  select_matching_record: 'choose',
  compute_action_values: 'compute',
  tell_requested_information: 'tell',
  ask_for_missing_identifiers: 'ask',
};
const [complete, refuse, select, compute, tell, ask] = Object.keys(skills) as [
  CapabilityName,
  CapabilityName,
  CapabilityName,
  CapabilityName,
  CapabilityName,
  CapabilityName,
];
const perform = 'perform_permitted_actions';
const others: Pair[] = [
  ...[perform, select, compute, ask].map((one): Pair => [complete, one as CapabilityName]),
  ...[select, ask].flatMap((one): Pair[] => [
    [refuse, one],
    [perform, one],
  ]),
  [perform, tell],
  [compute, select],
  [compute, tell],
  [compute, ask],
  [tell, select],
  [tell, ask],
  [ask, select],
];

let shop: EnvironmentDescription;
let rollouts: ScoredRollout[];
beforeAll(async () => {
  ({ description: shop, rollouts } = await shopTarget());
});

const write = (pairs: readonly Pair[], shares?: number[], description = shop) =>
  generate('', description, {
    candidate: composite(
      pairs.map(([a, b]) => [a, b]),
      shares,
    ),
    rollouts: description === shop ? rollouts : [],
  });
async function paramsOf(pairs: readonly Pair[], shares?: number[]): Promise<Params> {
  const [line = ''] = (await write(pairs, shares)).source.split('\n');
  return JSON.parse(line.replace(/^export const params = /, '').replace(/;$/, '')) as Params;
}
const upTo = (count: number, from = 0): number[] => Array.from({ length: count }, (_, n) => from + n);
const maker = (params: Params): ((seed: number) => Instance) => {
  const prepared = preparedOf(params);
  return (seed) => instanceOf(params, prepared, seed);
};
const say = (content: string): AssistantMessage => ({ role: 'assistant', content });
const after = (params: Params, state: Instance, script: Iterable<AssistantMessage>): Instance => {
  let now = state;
  for (const message of script) if (!now.done) now = stepOf(params, now, message).state;
  return now;
};
const rewardAfter = (params: Params, state: Instance, script: Iterable<AssistantMessage>): number =>
  rewardOf(params, after(params, state, script)).reward;
const share = (all: readonly boolean[]): number => all.filter(Boolean).length / all.length;

/** The same instance as a task of the target. */
function taskOf(params: Params, state: Instance): ShopTask {
  const { plan, turned } = memberOf(params, state.seed);
  const main = mainOf(state.requests, turned);
  const requests = state.requests.map((request): Request => {
    const verb = request.write.replace('_item', '') as 'cancel';
    if (request.write === 'change_address') return { verb: 'address', city: String(request.said['city']) };
    const target = request.record as unknown as Item;
    const twin = request.lookalike ? { twin: request.lookalike as unknown as Item } : {};
    const isMain = request === main;
    return { verb, target, ...twin, opened: isMain && plan.marker, tell: isMain && plan.question };
  });
  return {
    id: '',
    skills: state.known ? [] : ['ask'],
    firstMessage: state.first,
    requests,
    database: { user: String(state.key), city: '', items: state.records as unknown as Item[], stock: [] },
  };
}

async function shopReward(task: ShopTask, script: Iterable<AssistantMessage>): Promise<number> {
  const episode = openEpisode(task);
  for (const message of script) {
    const { done, stopReason } = await episode.step(message);
    if (done) return (await episode.evaluate(stopReason ?? 'user_stop')).reward;
  }
  throw new Error('the episode goes on');
}

describe.each([...plantedPairs, ...others])('%s with %s', (first, second) => {
  let params: Params;
  let make: (seed: number) => Instance;
  beforeAll(async () => {
    params = await paramsOf([[first, second]]);
    make = maker(params);
  });

  it('comes in quadruples of one account: both, one alone, none', () => {
    const branches = upTo(24).map((seed) => memberOf(params, seed).branch);
    const count = (branch: string): number => branches.filter((one) => one === branch).length;
    expect([count('both'), count('first'), count('second'), count('none')]).toEqual([11, 2, 2, 9]);
    for (const seed of upTo(12, TRAINING_SEEDS / 4)) {
      const all = upTo(4, 4 * seed).map(make);
      const [own, ...rest] = all as [Instance, ...Instance[]];
      expect(memberOf(params, own.seed).branch).toBe('both');
      for (const one of rest) {
        expect(one.key).toBe(own.key);
        const ids = (of: Instance) => of.records.map(({ id, price }) => [id, price]);
        expect(ids(one)).toEqual(ids(own));
        // Nothing but what they are about differs: the status of a record, the name of one that is like another.
        const bare = (of: Instance) => JSON.stringify(of.records.map(({ item, status }) => [item, status]));
        const about = [first, second].some((name) => [refuse, perform, select].includes(name as CapabilityName));
        if (!about) expect(bare(one)).toBe(bare(own));
      }
      // Four instances, no two of them the same.
      expect(new Set(all.map(({ first: said, records }) => JSON.stringify([said, records]))).size).toBe(4);
    }
  });

  it('pays for what the target pays for: all, not one of them alone', async () => {
    const [a, b] = [first, second].map((name) => (skills[name] ? [skills[name]] : []));
    const wins: Record<string, boolean[]> = {};
    for (const seed of upTo(48)) {
      const state = make(seed);
      const task = taskOf(params, state);
      expect(await shopReward(task, solutionOf(params, state))).toBe(1);
      expect(rewardAfter(params, state, solutionOf(params, state))).toBe(1);
      for (const [name, lacks] of Object.entries({ none: [], a, b, both: [...a!, ...b!] } as Record<string, Skill[]>)) {
        const script = [...agentMessages({ task, lacks: new Set(lacks), rng: random('x') })];
        const reward = rewardAfter(params, state, script);
        expect([seed, name, reward === 1]).toEqual([seed, name, (await shopReward(task, script)) === 1]);
        (wins[name] ??= []).push(reward === 1);
      }
    }
    expect(share(wins['none']!)).toBe(1);
    // Whoever lacks the first has the second alone: 2 of 24, and the 9 that need none.
    if (a!.length > 0) expect(share(wins['a']!)).toBeCloseTo(11 / 24);
    if (b!.length > 0) expect(share(wins['b']!)).toBeCloseTo(11 / 24);
    if (a!.length > 0 && b!.length > 0) expect(share(wins['both']!)).toBeCloseTo(9 / 24);
  });

  it('pays for no shortcut, in any range of seeds', () => {
    const seeds = [CALIBRATION_SEEDS, TRAINING_SEEDS, HELD_OUT_SEEDS].flatMap((from) => upTo(34, from));
    const wins = new Map<string, boolean[]>();
    for (const state of seeds.map(make))
      for (const [name, script] of Object.entries(shortcutsOf(params, state)))
        wins.set(name, [...(wins.get(name) ?? []), rewardAfter(params, state, script) === 1]);
    expect([...wins.keys()]).toEqual(['always', 'never', 'first_alone', 'second_alone', 'one_at_a_time']);
    for (const [name, won] of wins) expect([name, share(won) < 0.55]).toEqual([name, true]);
    expect(share(wins.get('one_at_a_time')!)).toBeGreaterThan(0.5);
    expect(share(wins.get('never')!)).toBeGreaterThan(0.3);
  });
});

describe('planted pairs', () => {
  it.each([
    ...plantedPairs.map((pair): [string, Pair[], number[]] => [pair.join(' with '), [pair], [1]]),
    ['all three', plantedPairs, [0.5, 0.3, 0.2]] as [string, Pair[], number[]],
  ])('%s: the module passes the self-test', async (_, pairs, shares) => {
    const { source, rationale } = await write(pairs, shares);
    expect(await selfTest({ source })).toEqual({ passed: true, findings: [], hints: true });
    expect(rationale).toMatch(
      /^Instances need two capabilities at once: (complete|refuse).* of 24, 11 need both, .* of shop\.$/,
    );
  });

  it('come up by their shares', async () => {
    const params = await paramsOf(plantedPairs, [0.5, 0.3, 0.2]);
    const families = upTo(2_000).map((n) => memberOf(params, 4 * n).family);
    const drawn = params.families.map((family) => share(families.map((one) => one === family)));
    for (const [n, wanted] of [0.5, 0.3, 0.2].entries()) expect(Math.abs(drawn[n]! - wanted)).toBeLessThan(0.04);
    for (const n of upTo(20)) expect(memberOf(params, 4 * n + 3).family).toBe(memberOf(params, 4 * n).family);
  });

  it('ask in the words of the target, and of which of the two it is varies', async () => {
    const params = await paramsOf([[complete, refuse]]);
    const [one, turned] = [0, 2].map(maker(params)) as [Instance, Instance];
    const named = ({ requests }: Instance) => requests.map(({ record }) => record && String(record['item']));
    const forbiddenAt = (state: Instance): number =>
      state.requests.findIndex(({ write: tool }) => !state.wanted.some(({ name }) => name === tool));
    expect([forbiddenAt(one), forbiddenAt(turned)]).toEqual([0, 1]);
    expect(named(turned)).toEqual([...named(one)].reverse());
    expect(one.first).toMatch(/^my account is u\d\d \. .+ and .+ \.$/);
    const asking = maker(await paramsOf([[complete, tell]]));
    for (const seed of [0, 2]) {
      const { first, amount, requests, records } = asking(seed);
      const [, item] = /how much for the (.+) \?$/.exec(first) ?? [];
      expect(records.find((record) => record['item'] === item)?.['price']).toBe(amount);
      expect(requests[seed / 2]?.record?.['item']).toBe(item);
    }
    const marked = maker(await paramsOf([[complete, compute]]));
    expect(marked(0).first).toMatch(/return the \w+ \w+ , it is opened and /);
    expect(marked(2).first).toMatch(/ and return the \w+ \w+ , it is opened \.$/);
  });

  it('give each part that is right its credit, and nothing for doing nothing', async () => {
    const rewards = async (
      pair: Pair,
      script: (solution: AssistantMessage[], state: Instance) => AssistantMessage[],
    ) => {
      const params = await paramsOf([pair]);
      const state = maker(params)(0);
      return rewardAfter(params, state, script(solutionOf(params, state), state));
    };
    const denied = say('not allowed .');
    expect(await rewards([complete, refuse], () => [say('done .')])).toBe(0);
    expect(await rewards([complete, refuse], () => [denied])).toBe(0);
    expect(await rewards([complete, refuse], ([look]) => [look!, say('done .')])).toBe(0.05);
    expect(await rewards([complete, refuse], ([look]) => [look!, denied])).toBeCloseTo(0.125);
    expect(await rewards([complete, refuse], ([look, act]) => [look!, act!, say('done .')])).toBeCloseTo(0.125);
    expect(await rewards([complete, refuse], ([look, act]) => [look!, act!, denied])).toBe(1);
    // What is said is worth nothing beside the write that it denies.
    const wrongly = async (then: AssistantMessage): Promise<number> =>
      rewards([complete, refuse], ([look], { requests: [{ record }] }) => {
        const writes = ['cancel_item', 'rush_item', 'exchange_item'].map((name, n) => ({
          id: `c${n}`,
          name,
          arguments: { item: record!['item'], id: record!['id'] },
        }));
        return [look!, { ...say(''), toolCalls: writes }, then];
      });
    expect(await wrongly(denied)).toBe(await wrongly(say('done .')));
    expect(await rewards([refuse, tell], ([look]) => [look!, denied])).toBeCloseTo(0.125);
    expect(await rewards([refuse, tell], ([look], { amount }) => [look!, say(`${amount} .`)])).toBeCloseTo(0.125);
    expect(await rewards([refuse, tell], ([look], { amount }) => [look!, say(`${amount} . not allowed .`)])).toBe(1);
  });

  it('tell what was to be done, and hint at it', async () => {
    const about = async (pair: Pair) => {
      const params = await paramsOf([pair]);
      const [both, , , none] = upTo(4).map(maker(params));
      return [referenceOf(params, both!), hintOf(params, both!), hintOf(params, none!), both] as const;
    };
    const [reference, hint, plain, state] = await about([complete, refuse]);
    expect(reference).toEqual({ actions: state!.wanted, tell: ['not allowed'] });
    expect(state!.wanted).toHaveLength(1);
    const item = String(state!.requests[0].record?.['item']);
    expect(hint).toBe(
      `the status of the ${item} does not allow it : say not allowed . do the other thing that is asked .`,
    );
    expect(plain).toBe('the status allows it : do it .');
    const [said, telling, , asked] = await about([refuse, tell]);
    expect(said).toEqual({ actions: [], tell: ['not allowed', String(asked!.amount)] });
    expect(telling).toBe('the status does not allow it : say not allowed . tell the price too .');
    expect((await about([complete, tell]))[1]).toBe('do all things that are asked . tell the price too .');
  });
});

describe('pairs that make no sense', () => {
  const cannot = (message: RegExp) =>
    expect.objectContaining({ type: 'CannotSynthesize', message: expect.stringMatching(message) });

  it.each([
    [[refuse, perform] as const, /refuse.* with perform.*: they are about the same thing; .*kind: given/],
    [[tell, tell] as const, /the same thing/],
    [[refuse, compute] as const, /for what is forbidden no value is computed/],
    [[tell, 'fly_to_the_moon' as CapabilityName] as const, /no generator for "fly_to_the_moon", only for complete_all/],
  ])('%s: none is left', async (pair, message) => {
    await expect(write([pair])).rejects.toEqual(cannot(message));
  });

  it('are left out, and said so, where others make sense', async () => {
    const { rationale, source } = await write([
      [refuse, compute],
      [refuse, tell],
    ]);
    expect(rationale).toMatch(/at once: refuse.* with tell.*Left out: refuse.* with compute.*: for what is forbidden/);
    expect((JSON.parse(source.slice(22, source.indexOf('\n') - 1)) as Params).families).toHaveLength(1);
    await expect(write([])).rejects.toEqual(cannot(/no pair of it can be combined: it has none/));
  });

  it('are those of the target: a question that names no record, a told value that a refused write would compute', async () => {
    await expect(write([[complete, tell]], [1], library)).rejects.toEqual(cannot(/does not say which of two records/));
    await expect(write([[refuse, tell]], [1], library)).rejects.toEqual(cannot(/no write can be asked for in both/));
    await expect(write([[select, ask]], [1], library)).rejects.toEqual(cannot(/fewer than two words/));
  });
});

test('where each part is mastered alone, and one of the pairs, the instances of the other pairs are what is calibrated', async () => {
  const params = await paramsOf(plantedPairs);
  const make = maker(params);
  const draw = random('calibration');
  const lacked = ['complete_and_refuse', 'refuse_and_tell'];
  const verdict = (chance: number) => {
    const groups = upTo(24).map((seed) => {
      const state = make(seed);
      const { branch = '' } = rewardOf(params, state);
      const lacking = rewardAfter(params, state, shortcutsOf(params, state)['one_at_a_time'] ?? []);
      const succeeds = () => draw.chance(lacked.includes(branch) ? chance : 0.98);
      return { branch, rewards: Array.from({ length: 16 }, () => (succeeds() ? 1 : Math.min(lacking, 0.2))) };
    });
    return calibrate({ groups, bands: calibrationBandsSchema.parse({}), confidence: 0.95 });
  };
  const judged = { mastered: ['complete_and_tell', 'first', 'none', 'second'], branches: lacked };
  expect(verdict(0.33)).toMatchObject({ verdict: 'accepted', reasons: [], judged });
  expect(verdict(0.02)).toMatchObject({ verdict: 'too_hard', judged });
});

test('another target has composites too, and knobs turn as ever', async () => {
  const { source } = await write(
    [
      [complete, refuse],
      [refuse, ask],
    ],
    [0.5, 0.5],
    library,
  );
  expect(await selfTest({ source })).toEqual({ passed: true, findings: [], hints: true });
  const previous = { source, findings: ['a finding'] };
  await expect(regenerate('complete_all_requested_actions', library, { previous })).rejects.toThrow(/a finding/);
});
