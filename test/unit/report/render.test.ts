import { nothing } from '../../../src/report/build/figures';
import { type Figure, figuresIn } from '../../../src/domain/figure';
import { type Arm, type ReportDraft, reportSchema } from '../../../src/report/model';
import { completeReport, renderReport } from '../../../src/report/render';
import { terminalTable } from '../../../src/report/page/table';
import { figure, gamedFixture, ref, reportFixture } from '../../support/report-fixture';

/** A baseline that came to nothing. */
const failedArm = (name: string, reason: string): Arm => ({
  name,
  role: 'baseline',
  kind: 'gepa',
  trainingRollouts: nothing('arms.failed.rollouts.training'),
  allRollouts: nothing('arms.failed.rollouts.all'),
  tasks: 0,
  trials: 0,
  status: 'failed',
  reason,
});

const texts = (draft: ReportDraft): string[] => completeReport(draft).verdict.map(({ text }) => text);

/** A campaign that was stopped right after its first stage. */
const stopped = (): ReportDraft => ({
  campaign: { ...reportFixture().campaign, status: 'stopped_at_stage', stage: 'rollouts' },
});

/** Every coordinate of the page's plots, with the attribute that it stands in. */
const coordinates = (html: string): { attribute: string; value: string }[] =>
  [...html.matchAll(/ (x|y|x1|x2|y1|y2|cx|cy|r|width|height|d|viewBox)="([^"]*)"/g)].map(([, attribute, value]) => ({
    attribute: attribute ?? '',
    value: value ?? '',
  }));

const expectSoundPlots = (html: string): void => {
  const found = coordinates(html).filter(({ value }) => value !== 'device-width, initial-scale=1');
  for (const { attribute, value } of found) {
    expect(`${attribute}=${value}`).not.toMatch(/NaN|Infinity|undefined|null/);
    if (/^(r|width|height)$/.test(attribute)) expect(Number(value)).toBeGreaterThanOrEqual(0);
  }
};

describe('schema', () => {
  test('a report survives its JSON', () => {
    const { json } = renderReport({ report: reportFixture() });
    expect(reportSchema.parse(JSON.parse(json))).toEqual(completeReport(reportFixture()));
  });

  test('two different figures under one id are refused, a repeated one is not', () => {
    const draft = reportFixture();
    const rate = draft.arms![0]!.successRate!;
    draft.router!.crossValidation.base = structuredClone(rate);
    expect(() => completeReport(draft)).not.toThrow();
    draft.router!.crossValidation.base.n += 1;
    expect(() => completeReport(draft)).toThrow(/two different figures have the id arms.base.success_rate/);
  });

  test.each([
    ['a figure without an artifact', { from: [] }, /names the artifacts/],
    ['a value that is not finite', { value: NaN }, /expected number/],
    ['no value over some units', { value: null }, /n 0/],
    ['an id that is no path', { id: 'Not a path' }, /lower-case words/],
  ])('%s is refused', (_, change: Partial<Figure>, message) => {
    const draft = reportFixture();
    Object.assign(draft.arms![0]!.successRate!, change);
    expect(() => completeReport(draft)).toThrow(message);
  });

  test('an inline matrix has one row a task and at most 400 tasks', () => {
    const short = reportFixture();
    short.solverMatrix!.inline!.outcomes.pop();
    expect(() => completeReport(short)).toThrow(/one row per task/);
    const long = reportFixture();
    long.solverMatrix!.inline = {
      tasks: Array.from({ length: 401 }, (_, i) => `t${i}`),
      options: ['base'],
      outcomes: Array.from({ length: 401 }, () => [1]),
    };
    expect(() => completeReport(long)).toThrow(/more than 400 tasks/);
  });

  test('an evaluated arm has a success rate, a failed one a reason', () => {
    const draft = reportFixture();
    delete draft.arms![0]!.successRate;
    expect(() => completeReport(draft)).toThrow(/has a successRate/);
    draft.arms![0]!.status = 'failed';
    expect(() => completeReport(draft)).toThrow(/has a reason/);
    draft.arms![0]!.reason = 'trainer died';
    expect(() => completeReport(draft)).not.toThrow();
  });

  test('only a baseline has a kind, and each has one', () => {
    const draft = reportFixture();
    draft.arms![0]!.kind = 'learned';
    expect(() => completeReport(draft)).toThrow(/a baseline, and nothing else, has a kind/);
  });
});

describe('a base model that can not work on the target', () => {
  const baseCheck = { findings: ['9% of <it> is unknown', 'none got any reward'], from: [ref('check')] };

  test('is told at the beginning of the page and of the table', () => {
    const { html, json } = renderReport({ report: { ...stopped(), baseCheck } });
    expect(html).toContain(
      '<dt>Base rollouts</dt><dd class="bad">9% of &lt;it&gt; is unknown</dd><dd class="bad">none got any',
    );
    const lines = terminalTable(reportSchema.parse(JSON.parse(json))).split('\n');
    expect(lines.slice(1, 3)).toEqual(['base model: 9% of <it> is unknown', 'base model: none got any reward']);
  });

  test('is not spoken of where nothing was found', () => {
    expect(renderReport({ report: stopped() }).html).not.toContain('<dt>Base rollouts</dt>');
  });
});

describe('verdict', () => {
  test('says how far trace is above base, and what it rests on', () => {
    const { verdict } = completeReport(reportFixture());
    const sentence = verdict.find(({ text }) => text.startsWith('trace is'))!;
    expect(sentence.text).toBe('trace is 38.5 points above base (95% interval +32.0 to +45.0, n 200).');
    expect(sentence.behind).toEqual(['arms.trace.difference_to_base']);
  });

  test('a difference whose interval holds zero is no difference', () => {
    const draft = reportFixture();
    const trace = draft.arms!.find(({ name }) => name === 'trace')!;
    trace.differenceToBase!.value = 0.02;
    Object.assign(trace.differenceToBase!.interval!, { low: -0.04, high: 0.08 });
    expect(texts(draft)).toContain('trace cannot be told from base: +2.0 pt (95% interval -4.0 to +8.0, n 200).');
  });

  test('says with how many tasks, and with the p of the test that the interval is of', () => {
    const draft = reportFixture();
    const { differenceToBase } = draft.arms!.find(({ role }) => role === 'routed')!;
    differenceToBase!.value = 0.02;
    Object.assign(differenceToBase!.interval!, { low: 0, high: 0.04 });
    differenceToBase!.test = { better: 4, worse: 0, p: 0.125 };
    expect(texts(draft)).toContain(
      'trace cannot be told from base: +2.0 pt (95% interval 0.0 to +4.0, n 200; better on 4 tasks, worse on 0, p 0.125).',
    );
    Object.assign(differenceToBase!, { test: { better: 6, worse: 0, p: 0.031 } });
    differenceToBase!.interval!.low = 0.005;
    expect(texts(draft).join('\n')).toContain('trace is 2.0 points above base');
  });

  test('names the arm that is ahead first, with the interval turned round', () => {
    const draft = reportFixture();
    const { difference } = draft.comparisons![0]!;
    difference.value = -0.14;
    Object.assign(difference.interval!, { low: -0.2, high: -0.08 });
    expect(texts(draft)).toContain(
      'Training rollouts: trace 4,608, grpo_target 3,072 (trained on to 4,608); all rollouts to come to it: trace 8,516, grpo_target 3,612.',
    );
    expect(texts(draft).join('\n')).toContain(
      'grpo_target is 14.0 points ahead of trace (95% interval +8.0 to +20.0, n 200; over trainings, which differ by about 5 points, +2.5 to +25.5).',
    );
    expect(completeReport(draft).comparisons![0]).toMatchObject({
      standing: 'behind',
      acrossTrainings: { id: 'comparisons.trace.grpo_target.across_trainings', value: -0.14 },
    });
  });

  test('splits the tasks that trace fails by whether any adapter solves them', () => {
    const draft = reportFixture();
    draft.solverMatrix!.inline = {
      tasks: ['a', 'b', 'c', 'd', 'e'],
      options: ['base', 'skill_one', 'trace', 'grpo_target'],
      outcomes: [
        [1, 1, 1, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 0],
        [0, 0, null, 1],
      ],
    };
    draft.arms![1]!.name = 'skill_one';
    expect(texts(draft)).toContain(
      'Of 3 tasks that trace fails, base or an adapter alone solves 1 (lost by the choice, or by chance where answers ' +
        'are sampled) and 2 are solved by none of them (no adapter for what they need).',
    );
    expect(texts(draft)).toContain('grpo_target solves 1 of these 2.');

    const routable = structuredClone(draft);
    routable.arms!.find(({ role }) => role === 'baseline')!.routable = true;
    const all = texts(routable).join('\n');
    expect(all).toContain('base, an adapter or grpo_target alone solves 2 (lost by the choice');
    expect(all).not.toContain('grpo_target solves');

    const untried = structuredClone(draft);
    untried.router!.failed = [{ name: 'skill_one', reason: 'it broke' }];
    expect(texts(untried).join('\n')).toContain('Of 3 tasks that trace fails, base alone solves 0');
  });

  test('knows no arm by its name', () => {
    const draft = reportFixture();
    const names: Record<string, string> = { base: 'b', trace: 'ours', grpo_target: 'theirs', union_ceiling: 'most' };
    const renamed = (name: string): string => names[name] ?? name;
    for (const arm of draft.arms!) arm.name = renamed(arm.name);
    for (const one of draft.comparisons!) Object.assign(one, { arm: renamed(one.arm), against: renamed(one.against) });
    const matrix = draft.solverMatrix!.inline!;
    matrix.options = matrix.options.map(renamed);
    const said = (texts_: string[]) =>
      texts_.slice(0, 6).map((text) => text.replace(/\b(base|trace|grpo_target)\b/g, renamed));
    expect(texts(draft).slice(0, 6)).toEqual(said(texts(reportFixture())));
    const marks = (html: string) => [...html.matchAll(/class="mark [a-z -]+"/g)].map(([mark]) => mark).sort();
    expect(marks(renderReport({ report: draft }).html)).toEqual(marks(renderReport({ report: reportFixture() }).html));
  });

  test('tells labeling passes that failed, and a selection without any', () => {
    const draft = reportFixture();
    draft.selection!.failedPasses = [3, 7].map((pass) => ({ pass, reason: 'AnalystFailed: no JSON' }));
    expect(texts(draft)).toContain('2 of 10 labeling passes failed and are left out: AnalystFailed: no JSON.');
    expect(renderReport({ report: draft }).html).toContain('2 of 10 labeling passes failed');
    expect(terminalTable(completeReport(draft))).toContain('2 of 10 labeling passes failed');

    const outright = reportFixture();
    Object.assign(outright.selection!, { passes: 0 });
    for (const one of [...outright.selection!.candidates, ...outright.capabilities!])
      Object.assign(one, { votes: 0, passes: 0, coverage: nothing('selection.c'), delta: nothing('selection.d') });
    expect(texts(outright).join('\n')).toMatch(/Selected 4 of 6 candidates, given by the analyst without labeling: /);
    const { html } = renderReport({ report: outright });
    expect(html).toContain('<td>given</td>');
    expect(html).not.toContain('0 of 0');
    expect(terminalTable(completeReport(outright))).toMatch(/refuse_forbidden_actions +given +– +– +trained/);
  });

  test('counts what the router could not choose', () => {
    const draft = reportFixture();
    Object.assign(draft.router!.errors!, { value: 3 });
    expect(texts(draft)).toContain('The router failed on 3 test rollouts.');
  });

  test('tells adapters that show no gain, failed arms, leakage and how far the campaign came', () => {
    const draft = reportFixture();
    draft.leakage!.passed = false;
    draft.leakage!.hits = [{ where: 'definition of x', task: 'test-3' }];
    draft.arms!.push(failedArm('gepa', 'budget spent'));
    const all = texts(draft).join('\n');
    expect(all).toMatch(/Adapter choose_among_candidates shows no gain beyond chance/);
    expect(all).toMatch(/compute_required_values has no adapter \(not calibrated after 3 rounds\)/);
    expect(all).toMatch(/Arm gepa failed: budget spent/);
    expect(all).toMatch(/Leakage: 1 text contains a test task/);
    expect(texts(stopped())).toEqual(['The campaign was stopped after stage rollouts; later stages are absent.']);
  });

  test('rests on figures and artifacts of the report only', () => {
    const report = completeReport(reportFixture());
    const figures = figuresIn({ ...report, verdict: [] });
    const known = new Set([...figures.map(({ id }) => id), ...JSON.stringify(report).match(/[0-9a-f]{64}/g)!]);
    for (const { behind } of report.verdict) for (const start of behind) expect(known).toContain(start);
  });

  test('is computed anew, whatever the file says', () => {
    const tampered = {
      ...completeReport(reportFixture()),
      verdict: [{ text: 'trace solves everything.', behind: [] }],
    };
    expect(renderReport({ report: tampered }).html).not.toContain('trace solves everything');
  });
});

describe('page', () => {
  test('escapes every text that comes from outside', () => {
    // The mark is put into every free text of the report; names, reasons and definitions may be written by models.
    const attack = `"><script>alert(1)</script>'&`;
    const schemaWords =
      /^(completed|evaluated|trained|not_calibrated|accepted|too_easy|too_hard|rollouts|selection|capabilities|router|evaluation|base|adapter|routed|bound|baseline|held_out|test)$/;
    const poison = (value: unknown, field = ''): unknown => {
      if (typeof value === 'string') {
        const fixed =
          ['id', 'unit', 'startedAt', 'finishedAt', 'sha256', 'uri', 'purpose', 'branch'].includes(field) ||
          schemaWords.test(value);
        return fixed ? value : value + attack;
      }
      if (Array.isArray(value)) return value.map((item) => poison(item, field));
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, poison(item, key)]));
    };
    const { html } = renderReport({ report: poison(reportFixture()) as ReportDraft });
    expect(html.match(/alert\(1\)/g)!.length).toBeGreaterThan(50);
    expect(html).not.toContain('<script');
    expect(html.split(attack)).toHaveLength(1);
    // With all escaped texts away, the page has the same elements as the one without attack.
    const elements = (page: string): string[] => page.match(/<\/?[a-z][a-z0-9]*/g) ?? [];
    expect(new Set(elements(html))).toEqual(new Set(elements(renderReport({ report: reportFixture() }).html)));
  });

  test('fetches nothing', () => {
    const { html } = renderReport({ report: reportFixture() });
    expect(html).not.toMatch(/(src|href)=|url\(|@import|https?:/);
  });

  test('every figure stands there with its lineage command', () => {
    const report = completeReport(reportFixture());
    const { html } = renderReport({ report });
    const drawn = figuresIn({
      arms: report.arms,
      budget: report.budget,
      labeled: [report.selection?.failed, report.selection?.passed],
      router: report.router,
      rollouts: report.rollouts,
      cost: report.cost,
    });
    for (const { id } of drawn) expect(html).toContain(`campaign lineage ${id} --campaign demo`);
  });

  const edges: [string, (draft: ReportDraft) => ReportDraft][] = [
    ['all of it', (draft) => draft],
    ['a campaign that was stopped after its first stage', stopped],
    [
      'no candidates, capabilities or arms',
      (draft) => ({
        ...draft,
        selection: { ...draft.selection!, candidates: [], reason: 'no failures' },
        capabilities: [],
        arms: [],
        comparisons: [],
        router: { ...draft.router!, choices: [] },
      }),
    ],
    [
      'one task',
      (draft) => ({
        ...draft,
        solverMatrix: {
          ...draft.solverMatrix!,
          tasks: 1,
          inline: { tasks: ['t'], options: ['base', 'trace'], outcomes: [[0.5, null]] },
        },
      }),
    ],
    [
      'no tasks and no options',
      (draft) => ({
        ...draft,
        solverMatrix: { ...draft.solverMatrix!, tasks: 0, inline: { tasks: [], options: [], outcomes: [] } },
      }),
    ],
    ['a matrix by reference only', (draft) => ({ ...draft, solverMatrix: { from: ref('m'), tasks: 4000 } })],
    [
      'nothing measured',
      (draft) => {
        for (const measured of figuresIn(draft)) {
          Object.assign(measured, { value: null, n: 0, from: [] });
          delete measured.interval;
          delete measured.std;
        }
        return draft;
      },
    ],
    [
      'a training without a finished step',
      (draft) => {
        const { training } = draft.capabilities![0]!;
        Object.assign(training!, { steps: 0, iterations: [], rewardCurve: { points: [], from: [] } });
        delete training!.bestStep;
        return { ...draft, capabilities: [draft.capabilities![0]!], arms: [] };
      },
    ],
    ['branches', gamedFixture],
    [
      'everything solved, negative Delta',
      (draft) => {
        for (const arm of draft.arms!) if (arm.successRate) Object.assign(arm.successRate, { value: 1 });
        draft.selection!.candidates.push({
          ...draft.selection!.candidates[5]!,
          name: 'inverted_sign_of_delta',
          delta: figure('selection.inverted.delta', -0.9, 10, { std: 0.3 }),
        });
        return draft;
      },
    ],
  ];
  test.each(edges)('draws %s with finite coordinates', (_, change) => {
    const { html } = renderReport({ report: change(reportFixture()) });
    expectSoundPlots(html);
    expect(html).toContain('</html>');
  });

  test('shows what each arm spent, every round of synthesis, and why rollouts ended', () => {
    const { html } = renderReport({ report: reportFixture() });
    expect(html).toContain('trained on to 4,608');
    expect(html).toContain('doing nothing scores 1.0');
    expect(html).toContain('held-out success, then held-out mean reward (where instances have branches');
    expect(html).toContain('<td>base rollouts</td>');
    expect(html).toContain('<th>max steps</th>');
  });

  test('shows branches: curves with their names, held-out success, what was judged, and that an adapter is gamed', () => {
    const { html } = renderReport({ report: gamedFixture() });
    const plot = /<svg[^>]*aria-label="Reward by step of refuse_forbidden_actions[\s\S]*?<\/svg>/.exec(html)![0];
    expect(plot.match(/<path d="M[^"]+" class="curve branch-[01]"/g)).toHaveLength(2);
    expect(plot).toMatch(/>special<\/text>[\s\S]*>twin<\/text>/);
    expect(html).toContain('<h3>Held-out seeds by branch</h3>');
    expect(html).toContain('<span class="bad">no gain, gamed</span>');
    expect(html).toContain('over the instances of `special`; `twin` is mastered: 0.89');
    for (const { id } of figuresIn(gamedFixture().capabilities![1]!.validation!.branches))
      expect(html).toContain(`campaign lineage ${id} --campaign demo`);
    const { html: without } = renderReport({ report: reportFixture() });
    expect(without).not.toContain('Held-out seeds by branch');
    expect(without).not.toContain('class="curve branch');
  });

  test('a number that is not finite never reaches a plot unseen', () => {
    const draft = reportFixture();
    draft.capabilities![0]!.training!.rewardCurve!.points[3]!.reward = Infinity;
    expect(() => renderReport({ report: draft })).toThrow();
  });
});

describe('terminal', () => {
  test('aligned, under 100 columns, with n, interval and difference to base', () => {
    const draft = reportFixture();
    draft.arms!.push(failedArm('a_baseline_with_a_name_that_is_much_too_long_for_a_terminal', 'x'.repeat(300)));
    const lines = terminalTable(completeReport(draft)).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(100);
    const trace = lines.find((line) => line.startsWith('trace '))!;
    expect(trace).toMatch(/4,608 +8,516 +200 +75\.5% +69\.1 to 80\.9 +\+38\.5 pt +\+32\.0 to \+45\.0$/);
    const header = lines.find((line) => line.startsWith('arm '))!;
    expect(header.indexOf('95% interval')).toBe(trace.indexOf('69.1'));
    expect(lines).toContain('grpo_target: trained on to 4,608');
    expect(lines.some((line) => /^compute_required_values +9\/10 .*not calibrated/.test(line))).toBe(true);
  });

  test('says by which branches an adapter is gamed', () => {
    const lines = terminalTable(completeReport(gamedFixture())).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(100);
    expect(lines.some((line) => /^complete_all_requested_actions .* helps$/.test(line))).toBe(true);
    expect(lines.some((line) => /^refuse_forbidden_actions .* no gain, gamed$/.test(line))).toBe(true);
    expect(lines.some((line) => /^choose_among_candidates .* no gain$/.test(line))).toBe(true);
    expect(lines.join(' ').replaceAll(/ +/g, ' ')).toContain(
      'success changes by +100.0 pt on special (95% interval +93.0 to +107.0, n 34) but by -92.9 pt on twin',
    );
  });

  test('a stopped campaign shows what there is', () => {
    expect(terminalTable(completeReport(stopped()))).toBe('demo  stopped at stage, stage rollouts');
    const unselected = terminalTable(completeReport({ ...stopped(), capabilities: [] }));
    expect(unselected.split('\n').at(-1)).toBe('no capability was selected');
    const selection = { ...reportFixture().selection!, reason: 'too little contrast' };
    const why = terminalTable(completeReport({ ...stopped(), capabilities: [], selection }));
    expect(why.split('\n').at(-1)).toBe('no capability was selected: too little contrast');
  });
});
