import fc from 'fast-check';
import { type LabelPass, selectionSchema } from '../../../src/domain/capability';
import {
  agreementOf,
  checkPartition,
  cohensKappa,
  krippendorffAlpha,
  passStatistics,
  selectCapabilities,
  selectOutright,
} from '../../../src/domain/selection';
import { requireDifference } from '../../../src/domain/transcript';

const rule = { rho: 0.1, delta: 0.2, votes: 2, evidence: 8 };
const empty = {
  lacking_failed: [],
  present_failed: [],
  na_failed: [],
  lacking_passed: [],
  present_passed: [],
  na_passed: [],
};
type Labels = LabelPass['labels'][string];

/** A pass over trajectories f0.. and p0.. from one list name per trajectory. */
function passOf({
  attempt,
  failed,
  passed,
}: {
  attempt: number;
  failed: Record<string, string[]>;
  passed: Record<string, string[]>;
}): LabelPass {
  const labels = Object.fromEntries(
    Object.keys(failed).map((name) => {
      const ids = (of: Record<string, string[]>, outcome: 'f' | 'p', wanted: string) =>
        (of[name] ?? []).flatMap((label, i) => (label === wanted ? [`${outcome}${i}`] : []));
      const own: Labels = {
        lacking_failed: ids(failed, 'f', 'lacking'),
        present_failed: ids(failed, 'f', 'present'),
        na_failed: ids(failed, 'f', 'na'),
        lacking_passed: ids(passed, 'p', 'lacking'),
        present_passed: ids(passed, 'p', 'present'),
        na_passed: ids(passed, 'p', 'na'),
      };
      return [name, own];
    }),
  );
  const length = (of: Record<string, string[]>) => Object.values(of)[0]?.length ?? 0;
  return { attempt, totals: { total_failed: length(failed), total_passed: length(passed) }, labels };
}

const label = fc.constantFrom('lacking', 'present', 'na');
const anyPass = (attempt: number) =>
  fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 12 })).chain(([failed, passed]) => {
    const lists = (length: number) => fc.array(label, { minLength: length, maxLength: length });
    return fc
      .record({
        failed: fc.record({ act_first: lists(failed), ask_user: lists(failed), check_status: lists(failed) }),
        passed: fc.record({ act_first: lists(passed), ask_user: lists(passed), check_status: lists(passed) }),
      })
      .map((drawn) => passOf({ attempt, ...drawn }));
  });
const anyPasses = fc.tuple(anyPass(0), anyPass(1), anyPass(2));

describe('statistics of one pass', () => {
  it('follows the formulas', () => {
    const labels = { ...empty, lacking_failed: ['a', 'b'], present_failed: ['c', 'd', 'e'], na_failed: ['f'] };
    const full = { ...labels, lacking_passed: ['p'], present_passed: ['q', 'r', 's'], na_passed: [] };
    const statistics = passStatistics({ labels: full, totals: { total_failed: 6, total_passed: 4 }, rule });
    expect(statistics).toEqual({
      coverage: 2 / 6,
      errorRateFailed: 0.4,
      errorRatePassed: 0.25,
      delta: 0.4 - 0.25,
      vote: false,
    });
  });

  it('counts x/0 as 0', () => {
    const statistics = passStatistics({ labels: empty, totals: { total_failed: 0, total_passed: 0 }, rule });
    expect(statistics).toEqual({ coverage: 0, errorRateFailed: 0, errorRatePassed: 0, delta: 0, vote: false });
  });

  it('votes at the thresholds, not below', () => {
    const at = (lacking: number, total: number) => {
      const ids = Array.from({ length: total }, (_, i) => `f${i}`);
      const labels = { ...empty, lacking_failed: ids.slice(0, lacking), na_failed: ids.slice(lacking) };
      return passStatistics({ labels, totals: { total_failed: total, total_passed: 0 }, rule }).vote;
    };
    expect([at(1, 10), at(1, 11)]).toEqual([true, false]);
    // 6 of 10 less 4 of 10, where 0.6 - 0.4 is 0.19999999999999996.
    const ids = (outcome: string, count: number) => Array.from({ length: count }, (_, i) => `${outcome}${i}`);
    const lists = { lacking_failed: ids('a', 6), present_failed: ids('b', 4), lacking_passed: ids('c', 4) };
    const labels = { ...empty, ...lists, present_passed: ids('d', 6) };
    expect(passStatistics({ labels, totals: { total_failed: 10, total_passed: 10 }, rule })).toMatchObject({
      delta: 0.6 - 0.4,
      vote: true,
    });
  });

  it('stays within bounds', () => {
    fc.assert(
      fc.property(anyPass(0), ({ labels, totals }) => {
        for (const own of Object.values(labels)) {
          const one = passStatistics({ labels: own, totals, rule });
          expect(one.coverage).toBeLessThanOrEqual(one.errorRateFailed);
          expect(Math.abs(one.delta)).toBeLessThanOrEqual(1);
        }
      }),
    );
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

  const lacking = passOf({
    attempt: 0,
    failed: { check_status: ['lacking', 'lacking', 'present'] },
    passed: { check_status: ['present'] },
  });

  it('averages over the passes that contain the capability', () => {
    const other = passOf({ attempt: 1, failed: { ask_user: ['na', 'na', 'na'] }, passed: { ask_user: ['na'] } });
    const { passes, capabilities } = selectCapabilities({ passes: [lacking, other], rule });
    expect(passes).toBe(2);
    expect(capabilities.map(({ name, passes, coverage }) => [name, passes, coverage])).toEqual([
      ['check_status', 1, { mean: 2 / 3, std: 0 }],
      ['ask_user', 1, { mean: 0, std: 0 }],
    ]);
  });

  it('can select nothing with fewer passes than votes, and says so', () => {
    const selection = selectCapabilities({ passes: [lacking], rule });
    expect(selection.capabilities.map(({ selected }) => selected)).toEqual([false]);
    expect(selection.reason).toBe('fewer passes (1) than votes (2): add passes or lower votes');
  });

  it('counts a planned pass that is missing as one that did not vote', () => {
    const planned = { ...rule, passes: 3 };
    const { passes, capabilities, reason } = selectCapabilities({ passes: [lacking, lacking], rule: planned });
    expect(capabilities).toMatchObject([{ votes: 2, passes: 2, coverage: { mean: 2 / 3, std: 0 }, selected: true }]);
    expect([passes, reason]).toEqual([2, undefined]);
    expect(selectCapabilities({ passes: [lacking, lacking], rule: { ...planned, rho: 0.9 } }).reason).toBe(
      'no capability reached Cov >= 0.9 and Delta >= 0.2 in 2 of 2 passes; 3 were planned',
    );
    expect(selectCapabilities({ passes: [lacking], rule: planned }).reason).toBe(
      'fewer passes (1 of 3) than votes (2): see why the others failed, or lower votes',
    );
    expect(selectCapabilities({ passes: [], rule: planned })).toEqual({
      passes: 0,
      capabilities: [],
      reason: 'fewer passes (0 of 3) than votes (2): see why the others failed, or lower votes',
    });
  });

  it('takes all candidates outright, with nothing measured', () => {
    const candidate = (name: string) => ({ name, definition: 'd', examples: [] });
    const selection = selectOutright([candidate('check_status'), candidate('ask_user')]);
    expect(selectionSchema.parse(selection)).toEqual(selection);
    const unmeasured = { coverage: { mean: 0, std: 0 }, delta: { mean: 0, std: 0 }, votes: 0, passes: 0, evidence: [] };
    expect(selection).toEqual({
      passes: 0,
      capabilities: [
        { name: 'check_status', selected: true, ...unmeasured },
        { name: 'ask_user', selected: true, ...unmeasured },
      ],
    });
    expect(selectOutright([])).toEqual({ passes: 0, capabilities: [], reason: expect.stringMatching('no candidate') });
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

  it('says why nothing is selected without failures, successes or candidates', () => {
    const reason = (total_failed: number, total_passed: number) => {
      const pass = { attempt: 0, totals: { total_failed, total_passed }, labels: {} };
      return selectCapabilities({ passes: [pass, pass], rule }).reason;
    };
    expect(reason(0, 3)).toMatch('no failed trajectory');
    expect(reason(3, 0)).toMatch('no passed trajectory');
    expect(reason(3, 3)).toMatch('no candidate');
  });

  it('keeps the first 8 failures over all passes as evidence, sorted as text', () => {
    const ids = ['t9', 't10', 't1', 't2', 't3', 't4', 't5', 't6', 't7', 't8'];
    const pass = {
      attempt: 0,
      totals: { total_failed: ids.length, total_passed: 0 },
      labels: { ask_user: { ...empty, lacking_failed: ids } },
    };
    const [one] = selectCapabilities({ passes: [pass, pass], rule }).capabilities;
    expect(one?.evidence).toEqual(['t1', 't10', 't2', 't3', 't4', 't5', 't6', 't7']);
  });
});

describe('partition', () => {
  it('accepts every pass made from one label per trajectory, and refuses any id that is put into a second list', () => {
    fc.assert(
      fc.property(anyPass(0), fc.nat(), fc.nat(), (pass, from, to) => {
        expect(checkPartition(pass)).toEqual([]);
        const labels = pass.labels['ask_user'] ?? empty;
        const lists = Object.keys(labels) as (keyof Labels)[];
        const ids = Object.values(labels).flat();
        if (ids.length === 0) return;
        const id = ids[from % ids.length] as string;
        const target = lists[to % lists.length] as keyof Labels;
        const broken = {
          ...pass,
          labels: { ...pass.labels, ask_user: { ...labels, [target]: [...labels[target], id] } },
        };
        expect(checkPartition(broken).join('\n')).toMatch(new RegExp(`"ask_user": in .*${target}.*: ${id};`));
        expect(() => selectCapabilities({ passes: [broken], rule })).toThrow('ask_user');
      }),
    );
  });

  it('names what a capability leaves out or has alone', () => {
    const pass = passOf({
      attempt: 0,
      failed: { ask_user: ['na', 'na'], act_first: ['na', 'na'], check_status: ['na', 'na'] },
      passed: { ask_user: ['na'], act_first: ['na'], check_status: ['na'] },
    });
    const labels = pass.labels['ask_user'] ?? empty;
    const wrong = { ...pass, labels: { ...pass.labels, ask_user: { ...labels, na_failed: ['f0', 'x7'] } } };
    expect(checkPartition(wrong)).toEqual([
      'capability "ask_user": in none of lacking_failed, present_failed, na_failed: f1; other capabilities label them',
      'capability "ask_user": in lacking_failed, present_failed, na_failed: x7; other capabilities do not label them',
    ]);
  });

  it('holds the lists against the totals', () => {
    const pass = {
      attempt: 0,
      totals: { total_failed: 3, total_passed: 0 },
      labels: { ask_user: { ...empty, na_failed: ['a', 'b'] } },
    };
    expect(checkPartition(pass)).toEqual([
      'capability "ask_user": lists lacking_failed, present_failed, na_failed hold 2 ids, totals.total_failed is 3; the ids: a, b',
    ]);
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

describe("Cohen's kappa", () => {
  it('is the published one', () => {
    // Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions (2003), table 18.1: kappa is 0.68.
    const table = { 'p p': 75, 'p n': 1, 'p o': 4, 'n p': 5, 'n n': 4, 'n o': 1, 'o o': 10 };
    const pairs = Object.entries(table).flatMap(([pair, count]) =>
      Array.from({ length: count }, () => pair.split(' ') as [string, string]),
    );
    const { kappa, observed } = cohensKappa(pairs);
    expect(kappa).toBeCloseTo(0.68, 2);
    expect(observed).toBeCloseTo(0.89, 10);
  });

  it('is undefined without variation, and without pairs', () => {
    expect(cohensKappa([['a', 'a']])).toEqual({ kappa: undefined, observed: 1 });
    expect(cohensKappa([])).toEqual({ kappa: undefined, observed: undefined });
    expect(cohensKappa([['a', 'b']])).toEqual({ kappa: 0, observed: 0 });
  });
});

/** Trajectories are failed ones; labels by their first letter, "." for none. */
function agreementPassOf(capabilities: Record<string, string>): LabelPass {
  const of = (labels: string, letter: 'L' | 'P' | 'N') =>
    [...labels].flatMap((one, n) => (one === letter ? [`t${n}`] : []));
  return {
    attempt: 0,
    totals: { total_failed: 0, total_passed: 0 },
    labels: Object.fromEntries(
      Object.entries(capabilities).map(([name, labels]) => [
        name,
        {
          lacking_failed: of(labels, 'L'),
          present_failed: [],
          na_failed: of(labels, 'N'),
          lacking_passed: [],
          present_passed: of(labels, 'P'),
          na_passed: [],
        },
      ]),
    ),
  };
}

describe('agreement by capability', () => {
  it('is over the passes that label it, and the trajectories that two of them judge', () => {
    const passes = [
      agreementPassOf({ ask: 'LLPN', read: 'NN' }),
      agreementPassOf({ ask: 'LLPN.', read: 'NN' }),
      agreementPassOf({ ask: '....L', late: 'L' }),
    ];
    expect(agreementOf(passes)).toEqual({
      ask: { alpha: 1, units: 4 },
      late: { alpha: undefined, units: 0 },
      read: { alpha: undefined, units: 2 },
    });
    expect(agreementOf([])).toEqual({});
  });

  it('is less than chance where labels are opposed', () => {
    const { alpha } = agreementOf([agreementPassOf({ ask: 'LP' }), agreementPassOf({ ask: 'PL' })]).ask ?? {};
    expect(alpha).toBeCloseTo(-0.5, 10);
  });
});
