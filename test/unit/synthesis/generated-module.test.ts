/** The files that every generated module consists of, each on its own. */
import { isDeepStrictEqual } from 'node:util';
import { createShop } from '../../../examples/shop/target/shop';
import { messageHash } from '../../../src/sandbox/leakage';
import { drawRecord } from '../../../examples/shop/generators/module/accounts';
import { bySlots, firstMessage, instanceOf, preparedOf } from '../../../examples/shop/generators/module/instances';
import { branchOf, planOf } from '../../../examples/shop/generators/module/records';
import { randomOf } from '../../../examples/shop/generators/module/random';
import { referenceOf, rewardOf, stepOf } from '../../../examples/shop/generators/module/episodes';
import { shortcutsOf, solutionOf } from '../../../examples/shop/generators/module/solutions';
import { forbiddenIn } from '../../../examples/shop/generators/module/text';
import type { Instance, Params } from '../../../examples/shop/generators/params';
import { generate } from '../../fixtures/synthesis/generate';

const capabilities = {
  refuse: 'refuse_forbidden_actions',
  complete: 'complete_all_requested_actions',
  compute: 'compute_action_values',
  tell: 'tell_requested_information',
  ask: 'ask_for_missing_identifiers',
  select: 'select_matching_record',
};
type Name = keyof typeof capabilities;
const names = Object.keys(capabilities) as Name[];
const params = {} as Record<Name, Params>;
beforeAll(async () => {
  const shop = await createShop().describe();
  for (const name of names) {
    const [line = ''] = (await generate(capabilities[name], shop)).source.split('\n');
    params[name] = JSON.parse(line.replace(/^export const params = /, '').replace(/;$/, '')) as Params;
  }
});

const nothing: (text: string) => boolean = () => false;
const instance = (of: Params, isForbidden: (text: string) => boolean, seed: number): Instance =>
  instanceOf(of, { ...preparedOf(of), isForbidden }, seed);
/** The special instance and its twin of each pair. */
const pairs = (of: Params, isForbidden = nothing): [Instance, Instance][] =>
  Array.from({ length: 40 }, (_, pair) => [
    instance(of, isForbidden, 2 * pair),
    instance(of, isForbidden, 2 * pair + 1),
  ]);
const first = (of: Params, special: boolean): Instance => instance(of, nothing, special ? 0 : 1);
const say = (content: string) => ({ role: 'assistant' as const, content });
const call = (name: string, given: Record<string, unknown>) => ({
  role: 'assistant' as const,
  content: '',
  toolCalls: [{ id: 'c', name, arguments: given }],
});
const after = (of: Params, state: Instance, ...script: ReturnType<typeof say>[]): Instance =>
  script.reduce((now, message) => stepOf(of, now, message).state, state);

describe('text', () => {
  it('finds a forbidden message in any run of words, and only the whole of it', () => {
    const isForbidden = forbiddenIn([messageHash('My account is u12 .')]);
    expect(isForbidden('hello , my ACCOUNT is u12 please')).toBe(true);
    expect(isForbidden('my account is u13')).toBe(false);
    expect(isForbidden('account is u12')).toBe(false);
    expect(forbiddenIn([])('my account is u12')).toBe(false);
  });
});

describe('instances', () => {
  it('are a function of seed and capability, and every second one is a twin', () => {
    expect(instance(params.refuse, nothing, 7)).toEqual(instance(params.refuse, nothing, 7));
    expect(instance(params.refuse, nothing, 7)).not.toEqual(instance(params.refuse, nothing, 9));
    const branches = [10_000, 10_001, 10_002, 10_003].map(branchOf);
    expect(branches).toEqual(['special', 'twin', 'special', 'twin']);
  });

  /** The fields of records in which a special instance and its twin may differ, by capability; and what is another in the two. */
  it.each([
    ['refuse', ['status'], (i: Instance) => i.wanted.length, 0, 1],
    ['complete', [], (i: Instance) => i.wanted.length, 2, 1],
    ['compute', [], (i: Instance) => i.first.includes('it is opened'), true, false],
    ['tell', [], (i: Instance) => i.amount !== null, true, false],
    ['ask', [], (i: Instance) => i.known, false, true],
    ['select', ['item'], (i: Instance) => i.requests.filter(({ lookalike }) => lookalike).length, 1, 0],
  ] as const)(
    'of %s are pairs: the same but for what the capability is about',
    (name, fields, measure, ...measures) => {
      const bare = ({ records }: Instance) =>
        records.map((record) => Object.entries(record).filter(([field]) => !fields.some((one) => one === field)));
      for (const [special, twin] of pairs(params[name])) {
        expect([measure(special), measure(twin)]).toEqual(measures);
        expect([special.special, twin.special]).toEqual([true, false]);
        expect(twin.key).toBe(special.key);
        expect(bare(twin)).toEqual(bare(special));
        const changed = special.records.filter((record, i) => !isDeepStrictEqual(record, twin.records[i]));
        expect(changed).toHaveLength(fields.length);
        const [{ write, said, record }] = special.requests;
        expect(twin.requests[0]).toMatchObject({ write, said });
        if (name === 'refuse') expect(changed).toEqual([record]);
        else expect(twin.requests[0].record).toEqual(record);
        if (name === 'refuse' || name === 'select') expect(twin.first).toBe(special.first);
      }
    },
  );

  it('of select: the record that is alike differs from the one of the twin by its last word', () => {
    for (const [special, twin] of pairs(params.select)) {
      const { record, lookalike } = special.requests[0];
      const words = (of: object | undefined): string[] => String((of as { item?: string }).item).split(' ');
      const at = special.records.findIndex((one) => one['item'] === lookalike!['item']);
      const [own, other] = [words(lookalike!), words(twin.records[at])];
      expect(own).toEqual([other[0], words(record!)[1]]);
      expect(other[1]).not.toBe(own[1]);
    }
  });

  it('have records that share no word and no identifier', () => {
    const random = randomOf('x');
    const used = new Set<string>();
    const identifying = new Set(['item', 'id']);
    const records = [1, 2, 3, 4, 5].map(() => drawRecord(params.refuse, random, { used, identifying }).record);
    const words = records.flatMap(({ item }) => String(item).split(' '));
    expect(new Set(words).size).toBe(10);
    expect(new Set(records.map(({ id }) => id)).size).toBe(5);
  });

  it('are drawn again while their first message is forbidden, and not for ever', () => {
    const { first: usual } = instance(params.refuse, nothing, 3);
    expect(instance(params.refuse, (text) => text === usual, 3).first).not.toBe(usual);
    // A pair is drawn again as a whole.
    const [[special, twin]] = pairs(params.tell) as [[Instance, Instance]];
    expect(special.first).not.toBe(twin.first);
    const [[again, itsTwin]] = pairs(params.tell, (text) => text === special.first) as [[Instance, Instance]];
    expect(itsTwin).toMatchObject({ key: again.key, records: again.records });
    expect(again.records).not.toEqual(twin.records);
    expect(() => instance(params.refuse, () => true, 3)).toThrow(/seed 3: no instance that is allowed in 200 draws/);
  });

  it('begin with what is asked, in the order of a message of the target where one fits', () => {
    const { requests, key } = first(params.compute, true);
    const about = { plan: planOf(params.compute, 0), requests, key };
    const item = String(requests[0].record?.['item']);
    const write = (skeletons: string[]): string =>
      firstMessage(params.compute, randomOf('x'), { ...about, skeletons: bySlots(skeletons) });
    expect(write([])).toBe(`my account is ${key} . return the ${item} , it is opened .`);
    expect(write(['{request} . {marker} ! {key}'])).toBe(`return the ${item} . it is opened ! my account is ${key} .`);
    expect(write(['{request} . {key}'])).toBe(write([]));
  });
});

describe('transitions', () => {
  it('list records, do writes once, and leave the state that they were given alone', () => {
    const state = first(params.refuse, false);
    const before = JSON.stringify(state);
    const looked = stepOf(params.refuse, state, call('get_account', { user: state.key }));
    expect(looked.messages[0]?.content.split(' ; ')).toHaveLength(state.records.length);
    const [action] = state.wanted;
    const done = stepOf(params.refuse, looked.state, call(action!.name, action!.arguments));
    expect(done.messages).toEqual([{ role: 'tool', toolCallId: 'c', content: 'ok' }]);
    expect(done.state.made).toEqual(state.wanted);
    const again = stepOf(params.refuse, done.state, call(action!.name, action!.arguments));
    expect(again.messages[0]?.content).toBe(params.refuse.wording.unknownRecord);
    expect(again.state.made).toEqual(state.wanted);
    expect(JSON.stringify(state)).toBe(before);
  });

  it('give the key when asked, and end with any other text', () => {
    const state = first(params.ask, true);
    const told = stepOf(params.ask, state, say('What account ?'));
    expect(told).toMatchObject({ done: false, messages: [{ role: 'user', content: `my account is ${state.key} .` }] });
    expect(told.state).toMatchObject({ asked: true, known: true });
    expect(stepOf(params.ask, state, say('account .'))).toMatchObject({ done: true, state: { done: true } });
    const guess = stepOf(params.ask, state, call('get_account', { user: state.key }));
    expect(guess.state).toMatchObject({ invented: true });
  });
});

describe('reward', () => {
  it('is 1 for the solution only, and tells why not', () => {
    const state = first(params.refuse, true);
    const solved = after(params.refuse, state, ...solutionOf(params.refuse, state));
    expect(rewardOf(params.refuse, solved)).toEqual({
      reward: 1,
      breakdown: { lookup: 1, exact: 1, denial: 1, told: 1, asked: 1, actions: 0 },
      branch: 'special',
    });
    expect(rewardOf(params.refuse, first(params.refuse, false)).branch).toBe('twin');
    expect(rewardOf(params.refuse, { ...solved, done: false }).reward).toBe(0.05);
    expect(rewardOf(params.refuse, { ...solved, looked: false }).reward).toBe(0);
    expect(rewardOf(params.refuse, { ...solved, texts: ['done .'] })).toMatchObject({ breakdown: { denial: 0 } });
    const made = [{ name: 'cancel_item', arguments: {} }];
    expect(rewardOf(params.refuse, { ...solved, made })).toMatchObject({ reward: 0.05, breakdown: { exact: 0 } });
    const twin = first(params.tell, false);
    const talked = after(params.tell, twin, ...solutionOf(params.tell, twin).slice(0, -1), say('done . 50 .'));
    expect(rewardOf(params.tell, talked)).toMatchObject({ breakdown: { told: 0, exact: 1 } });
  });

  it('comes with a reference', () => {
    expect(referenceOf(params.refuse, first(params.refuse, true))).toEqual({ actions: [], tell: ['not allowed'] });
    const asked = first(params.tell, true);
    expect(referenceOf(params.tell, asked)).toEqual({ actions: asked.wanted, tell: [String(asked.amount)] });
    const twin = first(params.tell, false);
    expect(referenceOf(params.tell, twin)).toEqual({ actions: twin.wanted, tell: [] });
  });
});

it.each(names)('the solution of %s scores 1; shortcuts fail where they are wrong', (name) => {
  const of = params[name];
  const solves = (state: Instance, script: ReturnType<typeof solutionOf>) =>
    rewardOf(of, after(of, state, ...script)).reward === 1;
  for (const state of pairs(of).flat()) {
    const { always, never = [], first: greedy } = shortcutsOf(of, state);
    expect(solves(state, solutionOf(of, state))).toBe(true);
    expect(solves(state, never)).toBe(!state.special);
    if (always) expect(solves(state, always)).toBe(state.special);
    expect(greedy === undefined).toBe(name !== 'select');
  }
});
