/** Which policy the report says to ship, what it doubts, and the verdict on each adapter; all of it follows from the figures. */
import { type Figure, figuresIn } from '../../../src/domain/artifacts';
import { gainsAnything, pairedDifference, successDifference, together } from '../../../src/domain/statistics';
import { seededRandom } from '../../../src/domain/seeds';
import { statementOf } from '../../../src/report/adapters';
import { differenceFigure } from '../../../src/report/build/figures';
import type { CapabilityDraft } from '../../../src/report/capability-model';
import { type Arm, type ReportDraft, reportSchema } from '../../../src/report/model';
import { recommendationOf } from '../../../src/report/recommendation';
import { completeReport, renderReport } from '../../../src/report/render';
import { figure, ref, reportFixture } from '../../support/report-fixture';

const armOf = (draft: ReportDraft, name: string): Arm => draft.arms!.find((one) => one.name === name)!;

describe('schema', () => {
  test('a report survives its JSON', () => {
    const { json } = renderReport({ report: reportFixture() });
    expect(reportSchema.parse(JSON.parse(json))).toEqual(completeReport(reportFixture()));
  });

  const rateIs = (change: Partial<Figure>) => (draft: ReportDraft) =>
    void Object.assign(draft.arms![0]!.successRate!, change);
  const tasks = Array.from({ length: 401 }, (_, i) => `t${i}`);
  test.each<[string, (draft: ReportDraft) => void, RegExp]>([
    ['a figure without an artifact', rateIs({ from: [] }), /names the artifacts/],
    ['a value that is not finite', rateIs({ value: NaN }), /expected number/],
    [
      'an id of two different figures',
      ({ router, arms }) => {
        router!.crossValidation.base = { ...arms![0]!.successRate!, n: 7 };
      },
      /two different figures have the id arms.base.success_rate/,
    ],
    [
      'an inline matrix that lacks a row',
      ({ solverMatrix }) => void solverMatrix!.inline!.outcomes.pop(),
      /one row per task/,
    ],
    [
      'an inline matrix of many tasks',
      ({ solverMatrix }) => {
        solverMatrix!.inline = { tasks, options: ['base'], outcomes: tasks.map(() => [1]) };
      },
      /more than 400 tasks/,
    ],
    ['an evaluated arm without a success rate', ({ arms }) => void delete arms![0]!.successRate, /has a successRate/],
    [
      'a kind of what is no baseline',
      ({ arms }) => void (arms![0]!.kind = 'learned'),
      /a baseline, and nothing else, has a kind/,
    ],
  ])('%s is refused', (_, change, message) => {
    const draft = reportFixture();
    change(draft);
    expect(() => completeReport(draft)).toThrow(message);
  });
});

describe('verdict', () => {
  test('doubts failed arms, leakage, failed passes and what the router could not do, and is short where the campaign was', () => {
    const draft = reportFixture();
    const doubts = () => completeReport(draft).verdict.length;
    const before = doubts();
    Object.assign(draft.leakage!, { passed: false, hits: [{ where: 'definition of x', task: 'test-3' }] });
    Object.assign(draft.arms!.at(-1)!, { status: 'failed', reason: 'budget spent' });
    draft.selection!.failedPasses = [3, 7].map((pass) => ({ pass, reason: 'AnalystFailed: no JSON' }));
    Object.assign(draft.router!.errors!, { value: 3 });
    draft.router!.failed = [{ name: 'tell_the_price', reason: 'BadInput: another rank' }];
    expect(doubts()).toBe(before + 5);
    const early = { campaign: { ...draft.campaign, status: 'completed' as const, stage: 'rollouts' as const } };
    expect(completeReport(early).verdict).toHaveLength(1);
  });

  test('rests on figures and artifacts of the report only', () => {
    const report = completeReport(reportFixture());
    const figures = figuresIn({ ...report, verdict: [] });
    const known = new Set([...figures.map(({ id }) => id), ...JSON.stringify(report).match(/[0-9a-f]{64}/g)!]);
    for (const { behind } of report.verdict) for (const start of behind) expect(known).toContain(start);
  });
});

describe('recommendation', () => {
  /** As measured on 200 tasks, of which the one alone solves `better` and the other alone `worse`. */
  function differenceOf(id: string, better: number, worse: number, tasks = 200): Figure {
    const side = (from: number, to: number) =>
      new Map(Array.from({ length: tasks }, (_, i) => [`t${i}`, i >= from && i < to ? 1 : 0]));
    const { value, low, high, test } = pairedDifference({
      treatment: side(0, better),
      control: side(better, better + worse),
    });
    const interval = { low, high, level: 0.95, method: 'sign-flip test over tasks' };
    return figure(id, value, tasks, { unit: 'difference', interval, test });
  }

  type Counts = [better: number, worse: number];
  /** The routed policy and `grpo_target` beside base, both clearly better unless told, and the one beside the other. */
  function draftOf(o: { between: Counts; trace?: Counts; target?: Counts }): ReportDraft {
    const { between, trace = [100, 0], target = [92, 0] } = o;
    const draft = reportFixture();
    armOf(draft, 'trace').differenceToBase = differenceOf('arms.trace.difference_to_base', ...trace);
    armOf(draft, 'grpo_target').differenceToBase = differenceOf('arms.grpo_target.difference_to_base', ...target);
    draft.comparisons![0]!.difference = differenceOf('comparisons.trace.grpo_target', ...between);
    return draft;
  }

  test.each<[string, Parameters<typeof draftOf>[0], arm: string]>([
    ['two without a significant difference', { between: [12, 4] }, 'trace'],
    ['two that differ on these tasks', { between: [32, 0] }, 'trace'],
    ['a baseline that solves more of these tasks', { between: [3, 17] }, 'grpo_target'],
    ['base, where nothing is significantly better', { trace: [1, 2], target: [5, 2], between: [1, 5] }, 'base'],
  ])('of %s', (_, of, arm) => {
    const { recommendation, verdict } = completeReport(draftOf(of));
    expect(recommendation!.arm).toBe(arm);
    // It comes first, and once.
    expect(verdict[0]).toEqual({ text: recommendation!.text, behind: recommendation!.behind });
  });

  test('the success of what is shipped is said to be from the tasks that chose it', () => {
    const selection = (draft: ReportDraft) =>
      completeReport(draft).verdict.filter(({ text }) => text.startsWith('Selection effect'));
    expect(selection(draftOf({ between: [12, 4] }))[0]!.behind).toEqual(['arms.trace.success_rate']);
    expect(selection(draftOf({ trace: [1, 2], target: [5, 2], between: [1, 5] }))).toEqual([]);
  });

  /** The draft with more baselines, whose difference to base and to the routed policy are these. */
  function withBaselines(draft: ReportDraft, more: { toBase: Figure; toRouted: Figure }[]): ReportDraft {
    more.forEach(({ toBase, toRouted }, n) => {
      const name = `more_${n}`;
      draft.arms!.push({ ...armOf(draft, 'grpo_target'), name, differenceToBase: toBase });
      draft.comparisons!.push({ arm: 'trace', against: name, difference: toRouted });
    });
    return draft;
  }

  test('the routed policy is one of the candidates: its p counts as corrected for the baselines beside it', () => {
    const routedAlone = draftOf({ trace: [13, 4], target: [2, 2], between: [11, 2] });
    routedAlone.arms = routedAlone.arms!.filter(({ role }) => role !== 'baseline');
    expect(completeReport(routedAlone).recommendation!.arm).toBe('trace');
    const { arm, tests } = completeReport(
      draftOf({ trace: [13, 4], target: [2, 2], between: [11, 2] }),
    ).recommendation!;
    expect(arm).toBe('base');
    expect(tests[0]).toEqual({
      ...{ arm: 'trace', against: 'base', isBetter: false },
      ...{ p: expect.closeTo(0.049, 3), corrected: expect.closeTo(0.098, 3) },
    });
  });

  test('a baseline is shipped in place of the routed policy by a test that is corrected for all baselines', () => {
    const one = draftOf({ between: [4, 14] });
    expect(completeReport(one).recommendation!.arm).toBe('grpo_target');
    const even = { toBase: differenceOf('x.base', 90, 0), toRouted: differenceOf('x.routed', 3, 3) };
    const several = completeReport(withBaselines(draftOf({ between: [4, 14] }), [even])).recommendation!;
    expect(several.arm).toBe('trace');
    expect(several.tests.map(({ arm, against }) => `${arm} ${against}`)).toEqual([
      ...['trace base', 'grpo_target base', 'more_0 base'],
      ...['grpo_target trace', 'more_0 trace'],
    ]);
  });

  test.each([0, 1, 4, 9])(
    'with the routed policy and %d baselines that are as good as base, base is shipped in at least 95%% of the draws',
    (baselines) => {
      const random = seededRandom('candidates alike', baselines);
      const draw = (id: string): Figure => {
        const p = random();
        const value = random() < 0.5 ? 0.05 : -0.05;
        // The interval excludes zero just where p is below 0.05.
        const reach = 0.05 * (p < 0.05 ? 0.9 : 1.1);
        const interval = { low: value - reach, high: value + reach, level: 0.95, method: 'sign-flip test over tasks' };
        return figure(id, value, 200, { unit: 'difference', interval, test: { better: 1, worse: 1, p } });
      };
      const DRAWS = 4000;
      const { arms, comparisons } = reportFixture();
      const armNamed = (of: string): Arm => arms!.find(({ name }) => name === of)!;
      let wrong = 0;
      for (let n = 0; n < DRAWS; n++) {
        const others = Array.from({ length: baselines }, (_, k) => ({
          ...armNamed('grpo_target'),
          ...{ name: `b${k}`, differenceToBase: draw('to.base') },
        }));
        const all = [armNamed('base'), { ...armNamed('trace'), differenceToBase: draw('to.base') }, ...others];
        const pairs = others.map(({ name }) => ({
          ...comparisons![0]!,
          ...{ against: name, difference: draw('to.routed') },
        }));
        if (recommendationOf({ arms: all, comparisons: pairs })!.arm !== 'base') wrong += 1;
      }
      // Half of 5%: tests are two-sided, and only what is better is shipped.
      expect(wrong / DRAWS).toBeGreaterThan(0.015);
      expect(wrong / DRAWS).toBeLessThan(0.035);
    },
  );

  test('one policy that was sampled twice is not compared with itself', () => {
    const draft = draftOf({ between: [9, 0] });
    Object.assign(armOf(draft, 'trace'), { sameAs: 'grpo_target' });
    const { recommendation } = completeReport(draft);
    expect(recommendation!.tests).toMatchObject([{ arm: 'trace', against: 'base' }]);
  });

  test('nothing is shipped before there is an evaluation', () => {
    const before = completeReport({ ...reportFixture(), arms: [], comparisons: [] });
    expect(before.recommendation).toBeUndefined();
  });
});

describe('statement of an adapter', () => {
  type Batch = NonNullable<CapabilityDraft['onTarget']>['batches'][number]['of'];

  /** Outcomes of an adapter and of what it started from, on tasks of which each alone solves so many. */
  function batchOf(name: string, tasks: number, better: number, worse: number) {
    const side = (from: number, to: number) => ({
      tasks: new Map(
        Array.from({ length: tasks }, (_, i) => [`${name} ${i}`, { success: i >= from && i < to ? 1 : 0 }]),
      ),
      trials: 1,
      from: [ref(name)],
    });
    return { treatment: side(0, better), control: side(better, better + worse) };
  }

  const level = { confidence: 0.95, seed: 1 };
  const overBatch = (
    id: string,
    batch: Pick<Parameters<typeof differenceFigure>[0], 'treatment' | 'control'>,
  ): Figure => differenceFigure({ id, ...batch, level });

  /** `own`: seeds of its environment; the others by batch: tasks, and how many each side alone solves. */
  function adapter(o: { own: [number, number, number] } & Partial<Record<Batch, [number, number, number]>>) {
    const { own, ...batches } = o;
    const pairs = Object.entries(batches).map(([of, counts]) => [of as Batch, batchOf(of, ...counts)] as const);
    const all = together(pairs.map(([, pair]) => pair));
    const capability: CapabilityDraft = structuredClone(reportFixture().capabilities![0]!);
    capability.name = 'ask_first';
    capability.validation!.synthesized.difference = overBatch('own', batchOf('own', ...own));
    capability.onTarget = {
      batches: pairs.map(([of, pair]) => ({ of, difference: overBatch(of, pair) })),
      all: overBatch('all', {
        treatment: { ...all.treatment, from: [ref('all')] },
        control: { ...all.control, from: [] },
      }),
    };
    return capability;
  }

  test.each<[string, Parameters<typeof adapter>[0], string]>([
    [
      'no gain on 60 held-out tasks and a gain on 200 test tasks',
      { own: [48, 20, 0], held_out: [60, 4, 0], test: [200, 35, 0] },
      'helps',
    ],
    [
      'a gain on few held-out tasks that the test tasks do not bear out',
      { own: [32, 2, 1], held_out: [20, 6, 0], test: [60, 4, 7] },
      'no_gain',
    ],
    ['a gain in its own environment alone', { own: [48, 20, 0], held_out: [60, 3, 2], router: [200, 9, 8] }, 'learned'],
    ['a loss', { own: [48, 20, 0], test: [200, 1, 12] }, 'hurts'],
  ])('%s', (_, of, expected) => {
    const { verdict, behind } = statementOf(adapter(of))!;
    expect(verdict).toBe(expected);
    expect(behind).toEqual(['all', 'own', ...Object.keys(of).slice(1)]);
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
    const level = { confidence: 0.95, seed: 1 };
    expect(successDifference({ ...both, level })).toEqual(successDifference({ ...one, level }));
  });

  test('of a capability without an adapter, or one that was not validated, there is none', () => {
    const draft = reportFixture().capabilities!;
    expect(statementOf(draft.at(-1)!)).toBeUndefined();
  });
});
