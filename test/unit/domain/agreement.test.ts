/** Agreement of labelings, against published examples. */
import fc from 'fast-check';
import { agreementOf, cohensKappa, krippendorffAlpha } from '../../../src/domain/selection';
import type { LabelPass } from '../../../src/domain/capability';

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
function passOf(capabilities: Record<string, string>): LabelPass {
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
