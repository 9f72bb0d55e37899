/** One statement of each adapter, from all that is known of it: what was contradictory before is one sentence now. */
import { gainsAnything, pairedDifference, together } from '../../../src/domain/paired-statistics';
import type { Figure } from '../../../src/domain/figure';
import type { CapabilityDraft } from '../../../src/report/capability-model';
import { statementOf } from '../../../src/report/adapters';
import { differenceFigure } from '../../../src/report/build/figures';
import { ref, reportFixture } from '../../support/report-fixture';

type Batch = NonNullable<CapabilityDraft['onTarget']>['batches'][number]['of'];

/** Outcomes of an adapter and of what it started from, on tasks of which each alone solves so many. */
function batchOf(name: string, tasks: number, better: number, worse: number) {
  const side = (from: number, to: number) => ({
    success: new Map(Array.from({ length: tasks }, (_, i) => [`${name} ${i}`, i >= from && i < to ? 1 : 0])),
    trials: 1,
    from: [ref(name)],
  });
  return { treatment: side(0, better), control: side(better, better + worse) };
}

const level = { confidence: 0.95, seed: 1 };
const differenceOf = (id: string, batch: Omit<Parameters<typeof differenceFigure>[0], 'id' | 'level'>): Figure =>
  differenceFigure({ id, ...batch, level });

/** `own`: seeds of its environment; the others by batch: tasks, and how many each side alone solves. */
function adapter(o: { own: [number, number, number] } & Partial<Record<Batch, [number, number, number]>>) {
  const { own, ...batches } = o;
  const pairs = Object.entries(batches).map(([of, counts]) => [of as Batch, batchOf(of, ...counts)] as const);
  const capability: CapabilityDraft = structuredClone(reportFixture().capabilities![0]!);
  capability.name = 'ask_first';
  capability.validation!.synthesized.difference = differenceOf('own', batchOf('own', ...own));
  capability.onTarget = {
    batches: pairs.map(([of, pair]) => ({ of, difference: differenceOf(of, pair) })),
    all: differenceOf('all', { ...together(pairs.map(([, pair]) => pair)), from: [ref('all')] }),
  };
  return capability;
}

test('no gain on 60 held-out tasks and a gain on 200 test tasks are one statement, with the p that decides', () => {
  const { verdict, text, behind } = statementOf(
    adapter({ own: [48, 20, 0], held_out: [60, 4, 0], test: [200, 35, 0] }),
  )!;
  expect(verdict).toBe('helps');
  expect(text).toMatch(
    /^Adapter ask_first helps on the target: \+15\.0 pt on its tasks \(95% interval \+1\d\.\d to \+19\.\d, n 260; better on 39 tasks, worse on 0, p <0\.001; held-out \+6\.7 pt, n 60, test \+17\.5 pt, n 200\); in its own environment 41\.7% to 91\.7% \(\+41\.7 pt, .*p <0\.001\)\.$/,
  );
  expect(behind).toEqual(['all', 'own', 'held_out', 'test']);
});

test('a gain on few held-out tasks that the test tasks do not bear out is no gain, and the sentence says which tasks would say otherwise', () => {
  const { verdict, text } = statementOf(adapter({ own: [32, 2, 1], held_out: [20, 6, 0], test: [60, 4, 7] }))!;
  expect(verdict).toBe('no_gain');
  expect(text).toContain('Adapter ask_first shows no gain beyond chance: +3.8 pt');
  expect(text).toMatch(/The 20 held-out tasks alone would say otherwise: \+30\.0 pt, p 0\.031\.$/);
});

test('what it has learned in its own environment alone, and what hurts, are said as such', () => {
  const learned = statementOf(adapter({ own: [48, 20, 0], held_out: [60, 3, 2], router: [200, 9, 8] }))!;
  expect([learned.verdict, learned.text]).toEqual([
    'learned',
    expect.stringContaining('gains in its own environment, and not'),
  ]);
  const hurts = statementOf(adapter({ own: [48, 20, 0], test: [200, 1, 12] }))!;
  expect([hurts.verdict, hurts.text]).toEqual(['hurts', expect.stringContaining('hurts on the target: -5.5 pt')]);
});

test('what is added up, and what is said, are of one rule', () => {
  for (const own of [0, 4, 20])
    for (const router of [0, 5, 30]) {
      const capability = adapter({ own: [48, own, 0], held_out: [60, 1, 0], router: [200, router, 0] });
      const { verdict } = statementOf(capability)!;
      const known = {
        own: capability.validation!.synthesized.difference!.interval,
        target: capability.onTarget!.all!.interval,
      };
      expect(gainsAnything(known)).toBe(verdict !== 'no_gain');
    }
});

test('a task that is held out and the router’s counts once', () => {
  const one = batchOf('train', 40, 6, 0);
  const both = together([one, one]);
  expect(pairedDifference({ treatment: both.treatment.success, control: both.control.success })).toEqual(
    pairedDifference({ treatment: one.treatment.success, control: one.control.success }),
  );
});

test('of a capability without an adapter, or one that was not validated, there is none', () => {
  const draft = reportFixture().capabilities!;
  expect(statementOf(draft.at(-1)!)).toBeUndefined();
});
