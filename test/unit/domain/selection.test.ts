import fc from 'fast-check';
import { type LabelPass } from '../../../src/domain/capability';
import {
  agreementOf,
  checkPartition,
  krippendorffAlpha,
  majorityOf,
  passStatistics,
  selectCapabilities,
  selectOutright,
} from '../../../src/domain/selection';
import { requireDifference } from '../../../src/domain/transcript';

const rule = { rho: 0.1, delta: 0.2, votes: 2, evidence: 8 };
type Labels = LabelPass['labels'][string];

/** Labels by their first letters, failed ones before the slash: "LP/N" is of f0, f1 and p0. A dot is a trajectory without one. */
function labelsOf(written: string): Labels {
  const [failed = '', passed = ''] = written.split('/');
  const ids = (letters: string, outcome: 'f' | 'p', wanted: string) =>
    [...letters].flatMap((letter, n) => (letter === wanted ? [`${outcome}${n}`] : []));
  return {
    lacking_failed: ids(failed, 'f', 'L'),
    present_failed: ids(failed, 'f', 'P'),
    na_failed: ids(failed, 'f', 'N'),
    lacking_passed: ids(passed, 'p', 'L'),
    present_passed: ids(passed, 'p', 'P'),
    na_passed: ids(passed, 'p', 'N'),
  };
}
const totalsOf = (written = '') => {
  const [failed = '', passed = ''] = written.split('/');
  return { total_failed: failed.length, total_passed: passed.length };
};
/** A pass, and as many trajectories as its first capability has. */
const passOf = (written: Record<string, string>, attempt = 0): LabelPass => ({
  attempt,
  totals: totalsOf(Object.values(written)[0]),
  labels: Object.fromEntries(Object.entries(written).map(([name, letters]) => [name, labelsOf(letters)])),
});

const anyPass = (attempt: number) =>
  fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 12 })).chain(([failed, passed]) => {
    const letters = (length: number) =>
      fc.string({ unit: fc.constantFrom('L', 'P', 'N'), minLength: length, maxLength: length });
    const written = fc.tuple(letters(failed), letters(passed)).map((both) => both.join('/'));
    return fc
      .record({ act_first: written, ask_user: written, check_status: written })
      .map((drawn) => passOf(drawn, attempt));
  });
const anyPasses = fc.tuple(anyPass(0), anyPass(1), anyPass(2));

describe('statistics of one pass', () => {
  const statisticsOf = (written: string) =>
    passStatistics({ labels: labelsOf(written), totals: totalsOf(written), rule });

  it.each([
    ['LLPPPN/LPPP', { coverage: 2 / 6, delta: 0.4 - 0.25, vote: false }],
    // x/0 counts as 0.
    ['', { coverage: 0, delta: 0, vote: false }],
  ])('follow the formulas: %j', (written, expected) => {
    expect(statisticsOf(written)).toEqual(expected);
  });

  it.each([
    ['coverage at the threshold', 'LNNNNNNNNN', true],
    ['coverage below it', 'LNNNNNNNNNN', false],
    ['6 of 10 less 4 of 10, where 0.6 - 0.4 is 0.19999999999999996', 'LLLLLLPPPP/LLLLPPPPPP', true],
  ])('vote or not: %s', (_, written, vote) => {
    expect(statisticsOf(written).vote).toBe(vote);
  });
});

describe('selection', () => {
  it('does not depend on the order of passes, capabilities or ids', () => {
    const reverseIds = (labels: Labels) =>
      Object.fromEntries(Object.entries(labels).map(([list, ids]) => [list, [...ids].reverse()])) as Labels;
    fc.assert(
      fc.property(anyPasses, (passes) => {
        const reversed = [...passes].reverse().map((pass) => ({
          ...pass,
          labels: Object.fromEntries(
            Object.entries(pass.labels)
              .reverse()
              .map(([name, labels]) => [name, reverseIds(labels)]),
          ),
        }));
        expect(selectCapabilities({ passes: reversed, rule })).toEqual(selectCapabilities({ passes, rule }));
      }),
    );
  });

  it('selects exactly from the votes, sorted by mean Delta and then by name', () => {
    fc.assert(
      fc.property(anyPasses, (passes) => {
        const { capabilities, reason } = selectCapabilities({ passes, rule });
        for (const one of capabilities) {
          expect(one.selected).toBe(one.votes >= rule.votes);
          expect(one.votes).toBeLessThanOrEqual(one.passes);
        }
        const order = capabilities.map((one) => [-one.delta.mean, one.name] as const);
        expect([...order].sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1))).toEqual(order);
        expect(reason === undefined).toBe(capabilities.some((one) => one.selected));
      }),
    );
  });

  const lacking = passOf({ check_status: 'LLP/P' });

  it('averages over the passes that contain the capability', () => {
    const { passes, capabilities } = selectCapabilities({ passes: [lacking, passOf({ ask_user: 'NNN/N' }, 1)], rule });
    expect(passes).toBe(2);
    expect(capabilities.map(({ name, passes, coverage }) => [name, passes, coverage])).toEqual([
      ['check_status', 1, { mean: 2 / 3, std: 0 }],
      ['ask_user', 1, { mean: 0, std: 0 }],
    ]);
  });

  it('counts a planned pass that is missing as one that did not vote', () => {
    const selection = selectCapabilities({ passes: [lacking, lacking], rule: { ...rule, passes: 3 } });
    expect(selection).toMatchObject({
      passes: 2,
      capabilities: [{ votes: 2, passes: 2, coverage: { mean: 2 / 3, std: 0 }, selected: true }],
    });
    expect(selection.reason).toBeUndefined();
  });

  const unlabeled = (written: string) => ({ ...passOf({ any: written }), labels: {} });
  it.each([
    ['fewer passes (1) than votes (2): add passes or lower votes', [lacking], {}],
    ['no failed trajectory, so there is nothing to analyse', Array(2).fill(unlabeled('/PPP')), {}],
    ['no passed trajectory, so there is nothing to contrast the failures with', Array(2).fill(unlabeled('LLL')), {}],
  ])('selects nothing and says why: %s', (reason, passes: LabelPass[], changes) => {
    const selection = selectCapabilities({ passes, rule: { ...rule, ...changes } });
    expect(selection).toMatchObject({ passes: passes.length, reason });
    expect(selection.capabilities.filter(({ selected }) => selected)).toEqual([]);
  });

  it('takes nothing from trajectories that are all the same, and everything as it is from others', () => {
    const selection = selectOutright([{ name: 'ask_user', definition: 'd', examples: [] }]);
    const say = (...texts: string[]) =>
      texts.map((content) => ({ messages: [{ role: 'assistant' as const, content }] }));
    expect(requireDifference(selection, say('no', 'no', 'yes'))).toEqual(selection);
    expect(requireDifference(selection, say('no'))).toEqual(selection);
    const { capabilities, reason, passes } = requireDifference(selection, say('no', 'no'));
    expect(capabilities).toEqual([{ ...selection.capabilities[0], selected: false }]);
    expect([passes, reason]).toEqual([0, expect.stringMatching(/^all 2 base rollouts say the same: "no": /)]);
    expect(requireDifference(selection, [{ messages: [] }, { messages: [] }]).reason).toMatch(/say nothing at all/);
  });

  it('keeps the first 8 failures over all passes as evidence, sorted as text', () => {
    const pass = passOf({ ask_user: 'L'.repeat(11) });
    const [one] = selectCapabilities({ passes: [pass, pass], rule }).capabilities;
    expect(one?.evidence).toEqual(['f0', 'f1', 'f10', 'f2', 'f3', 'f4', 'f5', 'f6']);
  });
});

describe('partition', () => {
  it('accepts every pass made from one label per trajectory, and refuses any id that is put into a second list', () => {
    fc.assert(
      fc.property(anyPass(0), fc.nat(), fc.nat(), (pass, from, to) => {
        expect(checkPartition(pass)).toEqual([]);
        const labels = pass.labels['ask_user']!;
        const lists = Object.keys(labels) as (keyof Labels)[];
        const ids = Object.values(labels).flat();
        if (ids.length === 0) return;
        const id = ids[from % ids.length] as string;
        const target = lists[to % lists.length] as keyof Labels;
        const broken = {
          ...pass,
          labels: { ...pass.labels, ask_user: { ...labels, [target]: [...labels[target], id] } },
        };
        expect(checkPartition(broken).join('\n')).toContain('"ask_user"');
        expect(() => selectCapabilities({ passes: [broken], rule })).toThrow('ask_user');
      }),
    );
  });

  it('names what a capability leaves out, has alone or has twice', () => {
    const pass = passOf({ act_first: 'NN/N', ask_user: 'NN/N', check_status: 'NN/N' });
    const labels = {
      ...pass.labels,
      ask_user: { ...labelsOf('/NN'), na_failed: ['f0', 'x7'], present_failed: ['f0'] },
    };
    const problems = checkPartition({ ...pass, labels });
    expect(problems.map((problem) => /".*?"/.exec(problem)?.[0])).toEqual(Array(5).fill('"ask_user"'));
    expect(problems.map((problem) => problem.split(': ').at(-1))).toEqual(['f0', 'f1', 'x7', 'p1', 'p0, p1']);
  });

  it('holds the lists against the totals', () => {
    expect(checkPartition(passOf({ ask_user: 'NN.' }))).toHaveLength(1);
  });
});

const transposed = (rows: string[]) =>
  Array.from({ length: rows[0]?.split(' ').length ?? 0 }, (_, n) =>
    rows.flatMap((row) => (row.split(' ')[n] === '.' ? [] : [row.split(' ')[n] as string])),
  );

describe("Krippendorff's alpha", () => {
  // K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), examples A, B and C (nominal data).
  it.each([
    ['A', 0.095, 10, ['0 1 0 0 0 0 0 0 1 0', '1 1 1 0 0 1 0 0 0 0']],
    ['B', 0.692, 12, ['a a b b d c c c e d d a', 'b a b b b c c c e d d d']],
    [
      'C',
      0.743,
      11,
      ['1 2 3 3 2 1 4 1 2 . . .', '1 2 3 3 2 2 4 1 2 5 . 3', '. 3 3 3 2 3 4 2 2 5 1 .', '1 2 3 3 2 4 4 1 2 5 1 .'],
    ],
  ])('is the published one of example %s', (_, alpha, units, rows) => {
    const found = krippendorffAlpha(transposed(rows));
    expect(found.alpha).toBeCloseTo(alpha, 3);
    expect(found.units).toBe(units);
  });

  it('is undefined without variation, and without pairs', () => {
    expect(
      krippendorffAlpha([
        ['NA', 'NA'],
        ['NA', 'NA'],
      ]),
    ).toEqual({ alpha: undefined, units: 2 });
    expect(krippendorffAlpha([['NA'], ['LACKING'], []])).toEqual({ alpha: undefined, units: 0 });
  });

  it('is at most 1, which is perfect, and does not depend on the order', () => {
    const labels = fc.array(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 5 }), { maxLength: 12 });
    fc.assert(
      fc.property(labels, (units) => {
        const { alpha } = krippendorffAlpha(units);
        const pairable = units.filter(({ length }) => length > 1);
        const perfect = pairable.every((unit) => new Set(unit).size === 1);
        if (alpha === undefined) expect(new Set(pairable.flat()).size).toBeLessThan(2);
        else expect(alpha === 1).toBe(perfect);
        const turned = krippendorffAlpha([...units].reverse().map((unit) => [...unit].reverse())).alpha;
        expect(turned).toBe(alpha);
      }),
    );
  });
});

it.each([
  [['LACKING', 'LACKING', 'PRESENT'] as const, 'LACKING'],
  [['LACKING', 'PRESENT'] as const, 'PRESENT'],
  [['LACKING', 'NA'] as const, 'NA'],
])('the majority of %j is %s', (labels, majority) => {
  expect(majorityOf(labels.map((label) => ({ label })))).toBe(majority);
});

describe('agreement by capability', () => {
  it('is over the passes that label it, and the trajectories that two of them judge', () => {
    const passes = [
      passOf({ ask: 'LLPN', read: 'NN' }),
      passOf({ ask: 'LLPN.', read: 'NN' }),
      passOf({ ask: '....L', late: 'L' }),
    ];
    expect(agreementOf(passes)).toEqual({
      ask: { alpha: 1, units: 4 },
      late: { alpha: undefined, units: 0 },
      read: { alpha: undefined, units: 2 },
    });
    expect(agreementOf([])).toEqual({});
  });

  it('is less than chance where labels are opposed', () => {
    const { alpha } = agreementOf([passOf({ ask: 'LP' }), passOf({ ask: 'PL' })]).ask ?? {};
    expect(alpha).toBeCloseTo(-0.5, 10);
  });
});
