/** What the report says: which policy to ship, how arms stand to each other, what became of each adapter; all of it follows from the figures. */
import { type Figure, figuresIn } from '../../../src/domain/artifacts';
import { gainsAnything, pairedDifference, together } from '../../../src/domain/statistics';
import { seededRandom } from '../../../src/domain/seeds';
import { statementOf } from '../../../src/report/adapters';
import { differenceFigure, nothing } from '../../../src/report/build/figures';
import type { CapabilityDraft } from '../../../src/report/capability-model';
import { type Arm, type ReportDraft, reportSchema } from '../../../src/report/model';
import { recommendationOf } from '../../../src/report/recommendation';
import { completeReport, renderReport } from '../../../src/report/render';
import { capabilityBlocks } from '../../../src/report/sections/capabilities';
import { viewsOf } from '../../../src/report/sections/report';
import { routerBlocks } from '../../../src/report/sections/router';
import { answerOf } from '../../../src/report/summary';
import { figure, ref, reportFixture } from '../../support/report-fixture';

const texts = (draft: ReportDraft): string[] => completeReport(draft).verdict.map(({ text }) => text);
/** What the section on the router says. */
const routed = (draft: ReportDraft): string => JSON.stringify(routerBlocks(completeReport(draft)));
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
    ['no value over some units', rateIs({ value: null }), /n 0/],
    ['an id that is no path', rateIs({ id: 'Not a path' }), /lower-case words/],
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
    ['a failed arm without a reason', ({ arms }) => void (arms![0]!.status = 'failed'), /has a reason/],
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

  test('a figure that is repeated, and a failed arm with a reason, are not refused', () => {
    const draft = reportFixture();
    draft.router!.crossValidation.base = structuredClone(draft.arms![0]!.successRate!);
    delete draft.arms![0]!.successRate;
    Object.assign(draft.arms![0]!, { status: 'failed', reason: 'trainer died' });
    expect(() => completeReport(draft)).not.toThrow();
  });
});

describe('verdict', () => {
  test('names the arm that solves more first, with the interval turned round', () => {
    const draft = reportFixture();
    const { difference } = draft.comparisons![0]!;
    difference.value = -0.14;
    Object.assign(difference.interval!, { low: -0.2, high: -0.08 });
    expect(texts(draft).join('\n')).toMatch(/grpo_target solves 14\.0 points more than trace .*\+8\.0 to \+20\.0/);
  });

  test('a campaign whose policies were trained once says so, and knows no spread of trainings', () => {
    const report = completeReport(reportFixture());
    expect(texts(reportFixture()).join('\n')).toMatch(/each policy was trained once.* unknown/i);
    const pages = JSON.stringify(viewsOf(report)) + JSON.stringify(report.recommendation);
    expect(pages).not.toMatch(/\bahead\b|[^.\d]5 points/);
  });

  test('splits the tasks that trace fails by whether any adapter solves them', () => {
    const split = (change: (draft: ReportDraft) => void = () => {}): string => {
      const draft = reportFixture();
      const outcomes = [
        [1, 1, 1, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 0],
        [0, 0, null, 1],
      ];
      const options = ['base', 'skill_one', 'trace', 'grpo_target'];
      draft.solverMatrix!.inline = { tasks: ['a', 'b', 'c', 'd', 'e'], options, outcomes };
      draft.arms![1]!.name = 'skill_one';
      change(draft);
      return routed(draft);
    };
    expect(split()).toContain(
      'Of 3 tasks that trace fails, base or an adapter alone solves 1 (lost by the choice, or by chance where answers ' +
        'are sampled) and 2 are solved by none of them (no adapter for what they need).',
    );
    expect(split()).toContain('grpo_target solves 1 of these 2.');
    const unscored = split(({ solverMatrix }) => void (solverMatrix!.inline!.outcomes[3]![1] = null));
    expect(unscored).toContain(
      'and 1 are solved by none of them (no adapter for what they need); of 1 not all of them were',
    );
    const routable = split((draft) => void (armOf(draft, 'grpo_target').routable = true));
    expect(routable).toContain('base, an adapter or grpo_target alone solves 2 (lost by the choice');
    expect(routable).not.toContain('grpo_target solves');
    const untried = split(({ router }) => void (router!.failed = [{ name: 'skill_one', reason: 'it broke' }]));
    expect(untried).toContain('Of 3 tasks that trace fails, base alone solves 0');
  });

  test('who solves what: over the tasks that an option has a scored rollout of, and alone only where all others failed', () => {
    const draft = reportFixture();
    const outcomes = [
      [1, 0],
      [1, null],
      [0, null],
    ];
    const inline = { tasks: ['a', 'b', 'c'], options: ['base', 'one'], outcomes };
    draft.solverMatrix = { ...draft.solverMatrix!, tasks: 3, inline };
    const blocks = viewsOf(completeReport(draft)).flatMap((view) => view.blocks);
    const solvers = blocks.find((block) => block && block.kind === 'table' && block.columns[0]!.head === 'option');
    expect(solvers).toMatchObject({ rows: [['base', '2', '66.7%', '1', '0'], ['one', '0', '0%', '0', '2']] }); // prettier-ignore
  });

  test('tells adapters that show no gain, failed arms, leakage and how far the campaign came', () => {
    const draft = reportFixture();
    draft.leakage!.passed = false;
    draft.leakage!.hits = [{ where: 'definition of x', task: 'test-3' }];
    // A baseline that came to nothing.
    draft.arms!.push({
      ...{
        name: 'gepa',
        reason: 'budget spent',
        role: 'baseline',
        kind: 'gepa',
        status: 'failed',
        tasks: 0,
        trials: 0,
      },
      trainingRollouts: nothing('arms.failed.rollouts.training'),
      allRollouts: nothing('arms.failed.rollouts.all'),
    });
    draft.selection!.failedPasses = [3, 7].map((pass) => ({ pass, reason: 'AnalystFailed: no JSON' }));
    const all = texts(draft).join('\n');
    const became = JSON.stringify(capabilityBlocks(completeReport(draft)));
    expect(became).toContain('Adapter choose_among_candidates shows no significant gain');
    expect(became).toContain('compute_required_values has no adapter (not calibrated after 3 rounds)');
    expect(texts(draft)).toContain('2 of 10 labeling passes failed and are left out: AnalystFailed: no JSON.');
    expect(all).toMatch(/Arm gepa failed: budget spent/);
    expect(all).toMatch(/Leakage: 1 text contains a test task/);
    expect(texts({ campaign: { ...draft.campaign, status: 'stopped_at_stage', stage: 'rollouts' } })).toEqual([
      'The campaign was stopped after stage rollouts; later stages are absent.',
    ]);
  });

  test('rests on figures and artifacts of the report only', () => {
    const report = completeReport(reportFixture());
    const figures = figuresIn({ ...report, verdict: [] });
    const known = new Set([...figures.map(({ id }) => id), ...JSON.stringify(report).match(/[0-9a-f]{64}/g)!]);
    for (const { behind } of report.verdict) for (const start of behind) expect(known).toContain(start);
  });

  test('is computed anew, whatever the file says', () => {
    const verdict = [{ text: 'trace solves everything.', behind: [] }];
    const report = { ...completeReport(reportFixture()), verdict };
    expect(renderReport({ report }).html).not.toContain('trace solves everything');
  });

  test('counts what the router failed on, and says what it can not choose and why nothing was added up', () => {
    const draft = reportFixture();
    Object.assign(draft.router!.errors!, { value: 3 });
    draft.router!.failed = [{ name: 'tell_the_price', reason: 'BadInput: another rank' }];
    draft.router!.noSums = 'none of the 3 adapters gains';
    expect(texts(draft)).toContain('The router failed on 3 test rollouts.');
    expect(texts(draft)).toContain('The router can not choose tell_the_price: BadInput: another rank.');
    // With what the test tasks say since.
    const why = 'with the test tasks, which came later, complete_all_requested_actions helps';
    expect(routed(draft)).toContain(`No adapters were added up: none of the 3 adapters gains; ${why}.`);
  });
});

describe('recommendation', () => {
  /** As measured on 200 tasks, of which the one alone solves `better` and the other alone `worse`. */
  function differenceOf(id: string, better: number, worse: number, tasks = 200): Figure {
    const side = (from: number, to: number) =>
      new Map(Array.from({ length: tasks }, (_, i) => [`t${i}`, i >= from && i < to ? 1 : 0]));
    const { mean, low, high, test } = pairedDifference({
      treatment: side(0, better),
      control: side(better, better + worse),
    });
    const interval = { low, high, level: 0.95, method: 'sign-flip test over tasks' };
    return figure(id, mean, tasks, { unit: 'difference', interval, test });
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

  const beside = 'GRPO on the target comes to 61% with 42% of the rollouts';
  const trace = `Ship trace, which routes between the adapters: 76% of the test tasks, base 37%. ${beside};`;
  const differ = 'the two differ significantly on these tasks; each was trained once.';
  test.each<[string, Parameters<typeof draftOf>[0], arm: string, answer: string, text: RegExp]>([
    [
      'two without a significant difference',
      { between: [12, 4] },
      'trace',
      `${trace} there is no significant difference on these tasks.`,
      /No significant difference between trace and grpo_target on these tasks: \+4\.0 pt \(95% interval 0\.0 to \+7\.9, n 200; better on 12 tasks, worse on 4, p 0\.077\)\.$/,
    ],
    [
      'two that differ on these tasks',
      { between: [32, 0] },
      'trace',
      `${trace} ${differ}`,
      /^Ship trace, .*, Holm-corrected p <0\.001\)\. .*trace solves 16\.0 points more than grpo_target on these tasks \(/,
    ],
    [
      'a baseline that solves more of these tasks',
      { between: [3, 17] },
      'grpo_target',
      `Ship grpo_target: 61% of the test tasks, base 37%. Training on capabilities comes to 76% with 2.4 times the rollouts; ${differ}`,
      /^Ship grpo_target: it solves 61\.0% of 200 test tasks, where base solves 37\.0%: .*grpo_target solves 7\.0 points more than trace on these tasks \(.*That is plain GRPO on the target, with 3,612 rollouts in all against 8,516\.$/,
    ],
    [
      'base, where nothing is significantly better',
      { trace: [1, 2], target: [5, 2], between: [1, 5] },
      'base',
      'Ship the base model as it is: it solves 37% of the test tasks, and nothing that was trained is significantly better.',
      /^Ship base, the model as it is, which solves 37\.0% of 200 test tasks: no other policy is significantly better \(trace .*grpo_target .*\)\. Plain GRPO/,
    ],
  ])('of %s', (_, of, arm, answer, text) => {
    const report = completeReport(draftOf(of));
    const { recommendation, verdict } = report;
    expect(recommendation!.arm).toBe(arm);
    expect(recommendation!.text).toMatch(text);
    expect(answerOf(report)).toBe(answer);
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

  test('one policy that was sampled twice is said to be one, and is not compared with itself', () => {
    const draft = draftOf({ between: [9, 0] });
    armOf(draft, 'grpo_target').routable = true;
    armOf(draft, 'trace').sameAs = 'grpo_target';
    const { recommendation } = completeReport(draft);
    expect(recommendation!.text).toMatch(
      /^Ship trace, which gives everything to grpo_target: .*trace and grpo_target are one policy/,
    );
    expect(answerOf(completeReport(draft))).toBe('Ship grpo_target: 76% of the test tasks, base 37%.');
  });

  test('says nothing of what to ship before there is an evaluation, and that plain GRPO was not looked at where no arm is it', () => {
    const before = completeReport({ ...reportFixture(), arms: [], comparisons: [] });
    expect([before.recommendation, answerOf(before)]).toEqual([undefined, undefined]);
    const without = { ...draftOf({ between: [1, 1] }), comparisons: [] };
    without.arms = without.arms!.filter(({ name }) => name !== 'grpo_target');
    expect(completeReport(without).recommendation!.text).toMatch(
      /How plain GRPO on the target would stand is not known/,
    );
  });
});

describe('statement of an adapter', () => {
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
  const overBatch = (id: string, batch: ReturnType<typeof batchOf>): Figure =>
    differenceFigure({ id, ...batch, level });

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

  test.each<[string, Parameters<typeof adapter>[0], string, RegExp]>([
    [
      'no gain on 60 held-out tasks and a gain on 200 test tasks are one statement, with the p that decides',
      { own: [48, 20, 0], held_out: [60, 4, 0], test: [200, 35, 0] },
      'helps',
      /^Adapter ask_first helps on the target: \+15\.0 pt on its tasks \(95% interval \+1\d\.\d to \+19\.\d, n 260; better on 39 tasks, worse on 0, p <0\.001; held-out \+6\.7 pt, n 60, test \+17\.5 pt, n 200\); in its own environment 41\.7% to 91\.7% \(\+41\.7 pt, .*p <0\.001\)\.$/,
    ],
    [
      'a gain on few held-out tasks that the test tasks do not bear out is no gain, and which tasks would say otherwise is said',
      { own: [32, 2, 1], held_out: [20, 6, 0], test: [60, 4, 7] },
      'no_gain',
      /Adapter ask_first shows no significant gain: \+3\.8 pt.* The 20 held-out tasks alone would say otherwise: \+30\.0 pt, p 0\.031\.$/,
    ],
    [
      'what it has learned in its own environment alone is said as such',
      { own: [48, 20, 0], held_out: [60, 3, 2], router: [200, 9, 8] },
      'learned',
      /gains in its own environment, and not/,
    ],
    ['what hurts', { own: [48, 20, 0], test: [200, 1, 12] }, 'hurts', /hurts on the target: -5\.5 pt/],
  ])('%s', (_, of, expected, said) => {
    const { verdict, text, behind } = statementOf(adapter(of))!;
    expect(verdict).toBe(expected);
    expect(text).toMatch(said);
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
    expect(pairedDifference({ treatment: both.treatment.success, control: both.control.success })).toEqual(
      pairedDifference({ treatment: one.treatment.success, control: one.control.success }),
    );
  });

  test('of a capability without an adapter, or one that was not validated, there is none', () => {
    const draft = reportFixture().capabilities!;
    expect(statementOf(draft.at(-1)!)).toBeUndefined();
  });
});
