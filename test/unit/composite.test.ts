/** The composite: which selected capabilities failures need together, and how the steps are shared with it. */
import { candidateSchema, type LabelPass, type Pair } from '../../src/domain/capability';
import {
  COMPOSITE,
  compositeOf,
  pairsText,
  partNames,
  restrictedTo,
  sharedSteps,
  statedComposite,
} from '../../src/domain/composite';
import { readFixtureRollouts } from '../support/fixture-rollouts';
import { readTruth } from '../support/fixture-truth';
import { referenceLabels } from '../support/reference-labels';

const [tell, refuse, ask] = ['tell_what_is_asked', 'refuse_what_is_forbidden', 'ask_when_unclear'] as const;
const defined = (...names: string[]) => names.map((name) => ({ name, definition: `Does ${name}.` }));
const rule = { rho: 0.1 };

/** By failed trajectory, what it needs: `-x` lacks it, `x` shows it; all the rest is NA. Those that passed lack everything. */
type Needed = Record<string, string[]>;
function pass(
  needed: Needed,
  { failed = 20, names = [tell, refuse, ask] as string[], looked = () => true } = {} as {
    failed?: number;
    names?: string[];
    looked?: (id: string) => boolean;
  },
): LabelPass {
  const ids = Array.from({ length: failed }, (_, n) => `f${String(n).padStart(2, '0')}`).filter(looked);
  const labels = names.map((name) => {
    const having = (label: string) => ids.filter((id) => needed[id]?.includes(label));
    const [lacking_failed, present_failed] = [having(`-${name}`), having(name)];
    const na_failed = ids.filter((id) => !lacking_failed.includes(id) && !present_failed.includes(id));
    const passed = { lacking_passed: ['p0', 'p1', 'p2'], present_passed: [], na_passed: [] };
    return [name, { lacking_failed, present_failed, na_failed, ...passed }] as const;
  });
  return { attempt: 0, totals: { total_failed: ids.length, total_passed: 3 }, labels: Object.fromEntries(labels) };
}
const [noTell, noRefuse, noAsk] = [`-${tell}`, `-${refuse}`, `-${ask}`] as const;

const composite = (passes: LabelPass[], names: string[] = [tell, refuse, ask], rho = 0.1) =>
  compositeOf({ passes, selected: defined(...names), rule: { rho } });
function candidateIn(found: ReturnType<typeof composite>) {
  if (!('composite' in found)) throw new Error(found.none);
  return found.composite.candidate;
}
const none = (said: string) => ({ none: expect.stringContaining(said) as string });

describe('which capabilities are needed together', () => {
  test('pairs with their shares, the failures that count as examples, and a definition of the parts', () => {
    const found = composite([
      pass({
        f05: [noTell, noRefuse],
        f01: [tell, noRefuse],
        f02: [noRefuse, ask],
        f03: [noTell],
        f04: [noTell, refuse],
        // Whatever failed here, it is neither of the two.
        f06: [tell, refuse],
      }),
    ]);
    if (!('composite' in found)) throw new Error(found.none);
    const { candidate, counted } = found.composite;
    expect(counted).toEqual({ failures: 4, of: 20 });
    expect(candidateSchema.parse(candidate)).toEqual(candidate);
    expect(candidate).toMatchObject({
      name: COMPOSITE,
      parts: [
        { names: [tell, refuse], share: 0.75 },
        { names: [refuse, ask], share: 0.25 },
      ],
      examples: ['f01', 'f02', 'f04', 'f05'],
    });
    for (const name of [tell, refuse, ask]) expect(candidate.definition).toContain(`${name}: Does ${name}.`);
    expect(candidate.definition).toContain(`${tell} with ${refuse} (75%), ${refuse} with ${ask} (25%)`);
  });

  test('in most of the passes that label the trajectory, both in one and the same pass', () => {
    const both = pass({ f00: [noTell, refuse], f01: [noTell, noRefuse] });
    const apart = [pass({ f00: [noTell], f01: [noTell] }), pass({ f00: [noRefuse], f01: [noRefuse] })];
    // Each is needed in two of three passes, both at once in one.
    expect(composite([both, ...apart])).toEqual(none('0 of 20 failures need two'));
    // Half of the passes is not most of them.
    expect(composite([both, pass({})])).toHaveProperty('none');
    expect(composite([both, both, pass({ f00: [noTell, refuse] })])).toMatchObject({
      composite: { counted: { failures: 2 } },
    });
  });

  test('a pass that does not label one of them, or does not look at the trajectory, says nothing of it', () => {
    const both = pass({ f00: [noTell, refuse], f01: [noTell, noRefuse] });
    const others = [pass({}, { names: [tell] }), pass({}, { names: [ask] })];
    expect(composite([both, ...others])).toMatchObject({ composite: { counted: { failures: 2 } } });
    const elsewhere = pass({}, { looked: (id) => id > 'f01' });
    expect(composite([both, elsewhere, elsewhere])).toMatchObject({ composite: { counted: { failures: 2, of: 20 } } });
  });

  test('does not depend on the order of the passes, nor on what passed', () => {
    const passes = [
      pass({ f00: [noTell, noRefuse], f01: [noTell, refuse], f02: [noRefuse, ask] }),
      pass({ f00: [noTell, noRefuse], f01: [refuse], f02: [noRefuse, ask] }),
      pass({ f00: [noTell], f01: [noTell, refuse], f02: [noRefuse, noAsk] }),
    ];
    const found = composite(passes);
    expect(found).toMatchObject({ composite: { counted: { failures: 3, of: 20 } } });
    expect(composite(passes.toReversed())).toEqual(found);
  });

  test('a failure that needs three counts once among the failures, and for each of its pairs that lacks one', () => {
    const found = composite([pass({ f00: [noTell, noRefuse, ask], f01: [noTell, refuse, ask] })]);
    if (!('composite' in found)) throw new Error(found.none);
    const { candidate, counted } = found.composite;
    expect(counted?.failures).toBe(2);
    expect(candidate.parts?.map(({ names, share }) => [...names, share])).toEqual([
      [tell, refuse, 0.4],
      [tell, ask, 0.4],
      [refuse, ask, 0.2],
    ]);
  });

  test('a pair in under a tenth of them is left out, one in a tenth is not', () => {
    const many = (count: number): Needed =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${String(n).padStart(2, '0')}`, [noTell, refuse]]));
    const rare = composite([pass({ ...many(19), f19: [noRefuse, ask] }, { failed: 30 })]);
    if (!('composite' in rare)) throw new Error(rare.none);
    const { candidate, counted } = rare.composite;
    expect(counted?.failures).toBe(20);
    expect(candidate.parts).toEqual([{ names: [tell, refuse], share: 1 }]);
    expect(candidate.examples).toHaveLength(19);
    expect(candidate.definition).not.toContain(ask);
    const enough = composite([pass({ ...many(9), f19: [noRefuse, ask] })]);
    expect(enough).toMatchObject({ composite: { candidate: { parts: [{ share: 0.9 }, { share: 0.1 }] } } });
  });

  test('what nearly every failure needs goes with everything, and is no part of a pair', () => {
    const all = (...needs: string[]) =>
      Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`f${String(n).padStart(2, '0')}`, needs]));
    const needed: Needed = {
      ...all(tell),
      f00: [tell, noRefuse],
      f01: [tell, noRefuse, ask],
      f02: [tell, refuse, noAsk],
    };
    expect(composite([pass(needed)])).toMatchObject({
      composite: { candidate: { parts: [{ names: [refuse, ask], share: 1 }] }, counted: { failures: 2, of: 20 } },
    });
    // Two of twenty do without.
    const often = { ...needed, f18: [], f19: [] };
    expect(partNames(candidateIn(composite([pass(often)])))).toContain(tell);
    expect(composite([pass(needed)], [tell, ask])).toEqual(
      none(`nearly every failure needs ${tell}, with whatever else`),
    );
    // Two that all of them need are needed together.
    expect(composite([pass(all(tell, noRefuse))])).toMatchObject({
      composite: { candidate: { parts: [{ names: [tell, refuse], share: 1 }] }, counted: { failures: 20, of: 20 } },
    });
  });

  test('none is made of too few failures, of one capability, or of what has its name; the reason is said', () => {
    const passes = [pass({ f00: [noTell, refuse], f01: [tell, noRefuse] })];
    expect(composite(passes, undefined, 0.1)).toHaveProperty('composite');
    const few = '2 of 20 failures need two selected capabilities at once and lack one, in most of the passes';
    expect(composite(passes, undefined, 0.11)).toEqual({ none: `${few}: less than selection.rho (0.11)` });
    // What was not selected does not count, whatever needs it.
    expect(composite(passes, [tell, ask])).toEqual(none('0 of 20'));
    expect(composite([pass({})], undefined, 0)).toEqual(none('0 of 20'));
    expect(composite(passes, [tell])).toEqual(none('fewer than two capabilities'));
    const taken = [pass({ f00: [noTell, COMPOSITE], f01: [noTell, COMPOSITE] }, { names: [tell, COMPOSITE] })];
    expect(composite(taken, [tell, COMPOSITE])).toEqual(none('is called combined_capabilities'));
  });

  test.each(['base', 'compute-refuse-tell', 'ask-refuse-tell'])(
    'of kept rollouts, by reference labels: what was planted is needed together (%s)',
    (file) => {
      const name = `shop-rollouts/${file}`;
      const [fixture, truth] = [readFixtureRollouts(name), readTruth(name)];
      const reference = referenceLabels({ ...fixture, truth });
      const found = compositeOf({ passes: [reference], selected: defined(...truth.planted), rule });
      if (!('composite' in found)) throw new Error(found.none);
      const { candidate, counted } = found.composite;
      expect(counted?.of).toBe(reference.totals.total_failed);
      expect(counted?.failures).toBeLessThan(reference.totals.total_failed / 2);
      expect(partNames(candidate).sort()).toEqual([...truth.planted].sort());
      const failed = new Set(fixture.rollouts.filter(({ reward }) => reward < 1).map(({ key }) => key));
      expect(candidate.examples.filter((key) => !failed.has(key))).toEqual([]);
    },
  );
});

describe('of given pairs', () => {
  const pairs: Pair[] = [
    { names: [tell, refuse], share: 3 },
    { names: [refuse, ask], share: 1 },
  ];

  test('the composite has those whose capabilities are selected, their shares made whole', () => {
    const found = statedComposite({ pairs, selected: defined(tell, refuse, ask) });
    expect(candidateIn(found)).toMatchObject({
      name: COMPOSITE,
      parts: [{ share: 0.75 }, { share: 0.25 }],
      examples: [],
    });
    expect(found).not.toHaveProperty('composite.counted');
    expect(candidateIn(statedComposite({ pairs, selected: defined(refuse, ask) })).parts).toEqual([
      { names: [refuse, ask], share: 1 },
    ]);
    expect(statedComposite({ pairs, selected: defined(tell, ask) })).toEqual(none('of no given pair'));
    expect(statedComposite({ pairs, selected: defined(tell) })).toEqual(none('fewer than two'));
  });
});

describe('what is left of a composite', () => {
  const found = composite([
    pass({ f00: [noTell, refuse], f01: [noTell, refuse], f02: [tell, noRefuse], f03: [refuse, noAsk] }),
  ]);
  const { candidate } = (found as Extract<typeof found, { composite: unknown }>).composite;

  test('are the pairs of which both are known, their shares made whole again', () => {
    expect(restrictedTo(candidate, defined(ask, refuse))).toMatchObject({
      parts: [{ names: [refuse, ask], share: 1 }],
      examples: candidate.examples,
      definition: expect.not.stringContaining(tell) as string,
    });
    expect(restrictedTo(candidate, defined(tell, refuse, ask))).toEqual(candidate);
    expect(pairsText(candidate.parts ?? [])).toBe(`${tell} with ${refuse} (75%), ${refuse} with ${ask} (25%)`);
  });

  test('is nothing where no pair has both', () => {
    expect(restrictedTo(candidate, defined(tell, ask))).toBeUndefined();
    expect(restrictedTo({ ...candidate, parts: undefined }, defined(tell, refuse, ask))).toBeUndefined();
  });
});

describe('the steps are shared', () => {
  const shared = (steps: number, selected: number, share: number, checkpointEvery: number) =>
    sharedSteps({ steps, selected, share, checkpointEvery });

  test.each([
    ['the demo', [24, 3, 1 / 3, 8], { each: 16, composite: 24 }],
    ['two of the demo', [24, 2, 1 / 3, 8], { each: 16, composite: 16 }],
    ['rounded down to a checkpoint', [20, 2, 0.4, 5], { each: 10, composite: 20 }],
    ['not where that takes more than one checkpoint', [20, 4, 1 / 3, 5], { each: 13, composite: 28 }],
    ['fewer steps than a checkpoint', [4, 2, 1 / 3, 5], { each: 2, composite: 4 }],
    ['no share', [24, 3, 0, 8], { each: 24, composite: 0 }],
    ['less than a step', [4, 2, 0.05, 2], { each: 4, composite: 0 }],
    ['nothing left for the others', [1, 2, 0.9, 1], { each: 1, composite: 0 }],
  ] as const)('%s', (_, [steps, selected, share, every], expected) => {
    expect(shared(steps, selected, share, every)).toEqual(expected);
  });

  test('and none is lost or added', () => {
    for (const steps of [1, 3, 10, 24, 40])
      for (const selected of [2, 3, 5, 7])
        for (const share of [0.01, 0.2, 1 / 3, 0.5, 0.99])
          for (const every of [1, 4, 5, 100]) {
            const { each, composite: own } = shared(steps, selected, share, every);
            expect(selected * each + own).toBe(steps * selected);
            expect(Number.isInteger(each) && Number.isInteger(own) && each >= 1 && own >= 0).toBe(true);
            if (own > 0) expect(own - steps * selected * share).toBeLessThan(every + selected + 1);
            if (own > 0) expect(own - steps * selected * share).toBeGreaterThanOrEqual(-0.5);
          }
  });
});
