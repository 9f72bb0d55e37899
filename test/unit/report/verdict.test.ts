/** Which policy the report says to ship, what it doubts, and the verdict on each adapter; all of it follows from the figures. */
import { type Figure, figuresIn } from '../../../src/domain/artifacts';
import { gainsAnything, pairedDifference } from '../../../src/domain/statistics';
import { statementOf } from '../../../src/report/verdict';
import type { CapabilityDraft } from '../../../src/report/capability-model';
import type { Arm, ReportDraft } from '../../../src/report/model';
import { completeReport } from '../../../src/report/render';
import { figure, reportFixture } from '../../support/report-fixture';

const armOf = (draft: ReportDraft, name: string): Arm => draft.arms!.find((one) => one.name === name)!;

describe('verdict', () => {
  test('doubts failed arms, leakage, failed passes, what the router could not do and unchanged adapters, and is short where the campaign was', () => {
    const draft = reportFixture();
    const doubts = () => completeReport(draft).doubts.length;
    const before = doubts();
    Object.assign(draft.leakage!, { passed: false, hits: [{ where: 'definition of x', task: 'test-3' }] });
    Object.assign(draft.arms!.at(-1)!, { status: 'failed', reason: 'budget spent' });
    draft.selection!.failedPasses = [3, 7].map((pass) => ({ pass, reason: 'AnalystFailed: no JSON' }));
    draft.router!.failed = [{ name: 'tell_the_price', reason: 'BadInput: another rank' }];
    draft.capabilities!.find(({ training }) => training)!.training!.unchanged = true;
    expect(doubts()).toBe(before + 5);
    const early = { campaign: { ...draft.campaign, status: 'completed' as const, stage: 'rollouts' as const } };
    expect(completeReport(early).doubts).toHaveLength(1);
  });

  test('rests on figures and artifacts of the report only', () => {
    const report = completeReport(reportFixture());
    const figures = figuresIn({ ...report, doubts: [] });
    const known = new Set([...figures.map(({ id }) => id), ...JSON.stringify(report).match(/[0-9a-f]{64}/g)!]);
    for (const { behind } of [...report.recommendation!.sentences, ...report.doubts])
      for (const start of behind) expect(known).toContain(start);
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
    const { recommendation } = completeReport(draftOf(of));
    expect(recommendation!.arm).toBe(arm);
    expect(recommendation!.sentences[0]!.behind).toContain(`arms.${arm}.success_rate`);
  });

  test('the success of what is shipped is said to be from the tasks that chose it', () => {
    const selection = (draft: ReportDraft) =>
      completeReport(draft).doubts.filter(({ text }) => text.startsWith('Selection effect'));
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
  const ways = { up: [0.02, 0.2], none: [-0.05, 0.2], down: [-0.2, -0.02] } as const;
  type Way = keyof typeof ways;
  const differenceOf = (id: string, way: Way): Figure => {
    const [low, high] = ways[way];
    const interval = { low, high, level: 0.95, method: 'sign-flip test over tasks' };
    return figure(id, (low + high) / 2, 60, { unit: 'difference', interval });
  };

  test.each<[target: Way, own: Way, expected: string]>([
    ['up', 'none', 'helps'],
    ['none', 'none', 'no_gain'],
    ['none', 'up', 'learned'],
    ['down', 'up', 'hurts'],
  ])('%s on the target, %s in its own environment: %s', (target, own, expected) => {
    const capability: CapabilityDraft = structuredClone(reportFixture().capabilities![0]!);
    capability.validation!.synthesized.difference = differenceOf('own', own);
    capability.onTarget = differenceOf('all', target);
    const { verdict, behind } = statementOf(capability)!;
    expect([verdict, behind]).toEqual([expected, ['all', 'own']]);
    // The router merges by the same rule.
    const known = { own: capability.validation!.synthesized.difference.interval, target: capability.onTarget.interval };
    expect(gainsAnything(known)).toBe(verdict === 'helps' || own === 'up');
  });

  test('a capability without an adapter has none', () => {
    expect(statementOf(reportFixture().capabilities!.at(-1)!)).toBeUndefined();
  });
});
