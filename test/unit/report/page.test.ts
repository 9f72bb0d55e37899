/** A report as a page in a real browser and on a terminal: what is shown, that texts from models do nothing there, and that it fits. */
import { figuresIn } from '../../../src/domain/artifacts';
import { nothing } from '../../../src/report/build/figures';
import { shortName, visible } from '../../../src/report/format';
import type { Arm, ReportDraft } from '../../../src/report/model';
import { completeReport, renderReport } from '../../../src/report/render';
import { foldSums, reportText } from '../../../src/report/sections/report';
import { foundFixture } from '../../support/found-fixture';
import { figure, gamedFixture, ref, reportFixture } from '../../support/report-fixture';
import { type OpenBrowser, openBrowser, viewsOf, violationsOf } from '../../support/browser';

let browser: OpenBrowser;
beforeAll(async () => {
  browser = await openBrowser();
}, 60_000);
afterAll(() => browser.close());
afterEach(() => expect(browser.problems.splice(0)).toEqual([]));

const ANSWER =
  'Ship trace, which routes between the adapters: 76% of the test tasks, base 37%. GRPO on the target comes to 61% with 42% of the rollouts; the two differ significantly on these tasks; each was trained once.';
const WIDE = { viewport: { width: 1300, height: 900 } };
const pages = new Map<string, string>();
/** As a browser has it, all views; the same page is opened once. */
async function pageOf(report: ReportDraft): Promise<string> {
  const { html } = renderReport({ report });
  if (!pages.has(html)) {
    const page = await browser.open({ html, context: WIDE });
    pages.set(html, await viewsOf(page));
    await page.close();
  }
  return pages.get(html)!;
}
const changed = (change: (draft: ReportDraft) => void, draft = reportFixture()): ReportDraft => {
  change(draft);
  return draft;
};
const linesOf = (draft: ReportDraft, columns?: number): string[] =>
  reportText(completeReport(draft), columns).split('\n');
const flat = (lines: readonly string[]): string => lines.map((line) => line.trim()).join(' ');
const elements = (page: string): Set<string> => new Set(page.match(/<\/?[a-z][a-z0-9]*/g));

/** A campaign that was stopped right after its first stage. */
const stopped = (more: Partial<ReportDraft> = {}): ReportDraft => ({
  campaign: { ...reportFixture().campaign, status: 'stopped_at_stage', stage: 'rollouts' },
  ...more,
});

/** With many sums of adapters, and all that a learned router says of itself. */
function learned(): ReportDraft {
  const draft = reportFixture();
  const { router, arms } = draft;
  const like = arms!.find(({ role }) => role === 'adapter')!;
  const sums = [0.7, 0.5, 0.9, 0.6, 0.8].map((value, n): Arm => ({
    ...like,
    name: `complete_all_requested_actions+sum_number_${n}`,
    role: 'sum',
    successRate: { ...like.successRate!, id: `arms.sum${n}.success_rate`, value },
  }));
  arms!.splice(4, 0, ...sums);
  const measured = router!.crossValidation.routed;
  router!.crossValidation.forms = ['constant', 'ridge'].map((form) => ({
    form,
    kept: form === 'ridge',
    successRate: { ...measured, id: `router.cross_validation.forms.${form}` },
  }));
  router!.latency = figure('router.latency', 0.214, 200, { unit: 'milliseconds' });
  return draft;
}

describe('texts that others wrote', () => {
  /** `attack` in every free text of the draft: names, reasons and definitions may be written by models. */
  function poisoned(draft: ReportDraft, attack: string): ReportDraft {
    const words =
      /^(completed|evaluated|trained|not_calibrated|accepted|too_easy|too_hard|rollouts|selection|capabilities|router|evaluation|base|adapter|routed|bound|baseline|held_out|test|failed|passed|system|user|assistant|tool|environment|analyst|synthesizer)$/;
    const fixed = ['id', 'unit', 'startedAt', 'finishedAt', 'sha256', 'uri', 'purpose', 'branch'];
    const poison = (value: unknown, field = ''): unknown => {
      if (typeof value === 'string') return fixed.includes(field) || words.test(value) ? value : attack + value;
      if (Array.isArray(value)) return value.map((item) => poison(item, field));
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, poison(item, key)]));
    };
    return poison(draft) as ReportDraft;
  }

  test('add no element, attribute or script to the page', async () => {
    const attack = `"><img src=x onerror=alert(1)>'<script>alert(1)</script></details></pre>&$&`;
    const page = await pageOf(poisoned(foundFixture(), attack));
    expect(page.match(/alert\(1\)&gt;/g)!.length).toBeGreaterThan(100);
    expect(page).not.toMatch(/<(script|img)/);
    expect(elements(page)).toEqual(elements(await pageOf(foundFixture())));
  });

  test('are spelled out where they turn the direction of writing or are not seen; on a terminal nothing moves the cursor', async () => {
    const draft = poisoned(foundFixture(), '\u202eevil\u2066 \u200b\u0007\u001b[2J');
    const page = await pageOf(draft);
    for (const unseen of ['\u202e', '\u2066', '\u200b', '\u0007']) expect(page).not.toContain(unseen);
    expect(page).toContain('\\u{202e}evil\\u{2066} \\u{200b}\\u{7}');
    // eslint-disable-next-line no-control-regex -- it is what is looked for
    expect(linesOf(draft).join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });

  test('are text however long they are', async () => {
    const definition = `${'<b>x</b> '.repeat(120_000)}the end`;
    const draft = changed(({ capabilities, selection }) => {
      for (const one of [capabilities![0]!, selection!.candidates[0]!]) one.definition = definition;
    }, foundFixture());
    expect(await pageOf(draft)).toContain('all 1,080,007 characters');
  });

  test('are shown as they are otherwise', () => {
    const text = 'Größe 3 × 4, "quoted"\n\t日本 🙂';
    expect([visible(text), visible('\ud800')]).toEqual([text, '\\u{d800}']);
  });
});

describe('page', () => {
  test('fetches nothing, and its policy forbids it', () => {
    const { html } = renderReport({ report: foundFixture() });
    expect(html).toMatch(
      /content="default-src 'none'; script-src 'sha256-[^']+'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'"/,
    );
    expect(html.length).toBeLessThan(1_500_000);
  });

  test('its first screen says what to ship and what is doubtful; a click leads to the rest, one on a head sorts a table', async () => {
    const page = await browser.open({ html: renderReport({ report: gamedFixture() }).html, context: WIDE });
    const goTo = async (view: string) => {
      await page.locator('nav a', { hasText: view }).click();
      await page.waitForSelector(`nav a[href="#${view.toLowerCase()}"][aria-current]`);
    };
    expect(await page.title()).toBe('demo');
    expect(await page.locator('.answer').innerText()).toBe(ANSWER);
    expect(await page.locator('ul.bad').innerText()).toContain('Gamed: refuse_forbidden_actions');
    await goTo('Capabilities');
    expect(await page.locator('main').innerText()).toContain('no gain, gamed');
    expect(page.url()).toMatch(/#capabilities$/);
    await page.goBack();
    await page.waitForSelector('.answer');
    await goTo('Arms');
    const names = () => page.locator('main table').first().locator('tbody tr td:first-child').allInnerTexts();
    const before = await names();
    await page.locator('main th button', { hasText: 'success' }).first().click();
    expect((await names())[0]).toBe('union_ceiling');
    expect((await names()).toSorted()).toEqual(before.toSorted());
  });

  test.each([1300, 420])(
    'at %d pixels nothing is cut off, in light and dark, and a screen reader is served',
    async (width) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        const context = { viewport: { width, height: 900 }, colorScheme, bypassCSP: true };
        const page = await browser.open({ html: renderReport({ report: learned() }).html, context });
        for (const view of ['summary', 'arms', 'capabilities', 'training', 'router', 'run']) {
          await page.evaluate(`window.location.hash = '${view}'`);
          await page.waitForSelector(`nav a[href="#${view}"][aria-current]`);
          expect(await violationsOf(page)).toEqual([]);
        }
        await page.close();
      }
    },
    60_000,
  );

  test('every figure stands there with its lineage command', async () => {
    const { capabilities, selection, ...report } = completeReport(gamedFixture());
    const { arms, budget, comparisons, router, rollouts, cost } = report;
    const tests = capabilities!.map(({ validation: own, onTarget }) => [
      own?.target.after,
      own?.branches,
      onTarget?.all,
    ]);
    const { failed, passed } = selection!;
    const drawn = figuresIn([arms, budget, comparisons, failed, passed, tests, router, rollouts, cost]);
    const html = await pageOf(gamedFixture());
    for (const { id } of drawn) expect(html).toContain(`campaign lineage ${id} --campaign demo`);
  });

  const unmeasured = (draft: ReportDraft) => {
    for (const measured of figuresIn(draft)) {
      Object.assign(measured, { value: null, n: 0, from: [] });
      delete measured.interval;
      delete measured.std;
    }
  };
  const untrained = (draft: ReportDraft) => {
    const [first] = draft.capabilities!;
    Object.assign(first!.training!, { steps: 0, iterations: [], rewardCurve: { points: [], from: [] } });
    delete first!.training!.bestStep;
    Object.assign(draft, { capabilities: [first], arms: [] });
  };
  const empty = (draft: ReportDraft) => {
    Object.assign(draft, { capabilities: [], arms: [], comparisons: [] });
    Object.assign(draft.selection!, { candidates: [], reason: 'no failures' });
    draft.router!.choices = [];
  };
  const noMatrix = { tasks: [], options: [], outcomes: [] };
  test.each<[string, ReportDraft]>([
    ['all of it', reportFixture()],
    ['a campaign that was stopped after its first stage', stopped()],
    ['no candidates, capabilities or arms', changed(empty)],
    [
      'no tasks and no options',
      changed(({ solverMatrix }) => void Object.assign(solverMatrix!, { tasks: 0, inline: noMatrix })),
    ],
    ['a matrix by reference only', { ...reportFixture(), solverMatrix: { from: ref('m'), tasks: 4000 } }],
    ['nothing measured', changed(unmeasured)],
    ['a training without a finished step', changed(untrained)],
    ['branches', gamedFixture()],
  ])('draws %s with finite coordinates', async (_, draft) => {
    const html = await pageOf(draft);
    expect(html).not.toMatch(/NaN|Infinity/);
    const plots = (html.match(/<svg[^]*?<\/svg>/g) ?? []).join('');
    expect(plots).not.toMatch(/NaN|Infinity|undefined|null/);
    expect(plots).not.toMatch(/ (r|width|height)="-/);
  });

  test('shows what was spent, cited, tried and paid', async () => {
    const html = await pageOf(foundFixture());
    for (const text of [
      'trained on to',
      'doing nothing scores 1.0',
      'data-head="max steps"',
      '<div>base rollouts</div>',
      '2 cited steps, 2 LACKING trajectories',
      'task train-31, attempt 0, passed, message 4',
      'LACKING in 7 of 10 passes, 4 cite the message',
      '12,000 more characters are in the artifact',
      'not among the labeled rollouts',
      'The selected ones were approved with edits.',
      '<h2>Faults of the environment or the user</h2>',
      'environment in 9 of 10 passes:',
      'rejected: too narrow',
      '38 requests, 1,637,800 tokens of 5,000,000 (32.8%), $4.52 of $10.00 (45.2%), 5 of 38 requests without a price',
      ...['labels', '30', '1,230,000', '900,000', '63,000', '$4.10'].map((text) => `<div>${text}</div>`),
    ])
      expect(html).toContain(text);
    expect(html).toMatch(
      /<li [^>]*class="assistant cited">.{20,90}<div class="said">I have cancelled both\.\ncalls cancel_item/,
    );
    expect(html).toMatch(
      /<summary><span>order 7 pending.{280,290}… <\/span><span class="quiet">all 616 characters<\/span>/,
    );
    const bare = await pageOf(reportFixture());
    for (const words of ['What was seen', 'Faults of', 'data-head="agreement"', 'Language models'])
      expect(bare).not.toContain(words);
  });

  test('shows branches: curves with their names, held-out success, what was judged, and that an adapter is gamed', async () => {
    const html = await pageOf(gamedFixture());
    const plot = /aria-label="Reward by step of refuse_forbidden_actions[^]*?<\/figure>/.exec(html)![0];
    expect(plot.match(/<path stroke="[^"]+" d="M[^"]+"/g)).toHaveLength(3);
    expect(plot).toMatch(/>special<\/li>[^]*>twin<\/li>/);
    expect(html).toContain('<span class="bad">no gain, gamed</span>');
    expect(html).toContain('over the instances of `special`; `twin` is mastered: 0.89');
    expect(await pageOf(reportFixture())).not.toContain('Held-out seeds by branch');
  });

  test('shows what a learned router compared, and its latency; of many sums the best, the others folded', async () => {
    const html = await pageOf(learned());
    const texts = ['ridge, kept', 'Choosing takes', '0.21 ms', 'mean probability'];
    for (const text of texts) expect(html).toContain(text);
    const [shown, folded] = html.split('2 more sums of adapters');
    for (const n of [0, 2, 4]) expect(shown).toContain(`sum_number_${n}</div>`);
    for (const n of [1, 3]) expect(folded).toContain(`sum_number_${n}</div>`);
    expect(linesOf(learned()).filter((text) => /^comp\S+…\S+\+\S+/.test(text))).toHaveLength(3);
    expect(linesOf(learned())).toContain('2 more sums of adapters, 50.0% to 60.0%');
  });

  test('knows no arm by its name', async () => {
    const names: Record<string, string> = { base: 'b', trace: 'ours', grpo_target: 'theirs', union_ceiling: 'most' };
    const renamed = changed(({ arms }) => {
      for (const arm of arms!) arm.name = names[arm.name] ?? arm.name;
    });
    const marks = async (draft: ReportDraft) => {
      const rows = (await pageOf(draft)).match(/<div role="row"[^>]*class="[a-z]+"/g) ?? [];
      return rows.map((row) => row.slice(-12)).sort();
    };
    expect(await marks(renamed)).toEqual(await marks(reportFixture()));
    expect((await marks(renamed)).length).toBeGreaterThan(3);
  });
});

describe('terminal', () => {
  test.each([40, 60, 80, 99, 200])(
    'no line is wider than %d columns; success, verdicts and differences stay, uncut',
    (columns) => {
      const draft = foundFixture();
      const like = draft.arms!.find(({ role }) => role === 'baseline')!;
      const name = 'a_baseline_with_a_name_that_is_much_too_long_for_a_terminal';
      draft.arms!.push({ ...like, name, successRate: undefined, status: 'failed', reason: 'x'.repeat(300) });
      const lines = linesOf(draft, columns);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(Math.min(columns, 99));
      expect(lines.find((line) => /^trace +\S*\d/.test(line) && !line.includes('grpo'))).toContain('75.5%');
      for (const row of [
        /^complete\S+ +helps +trained/,
        /^compute\S+ +– +not calibrated/,
        /^complete\S+ +10\/10 .*yes$/,
        /^trace to \S+ +\+14\.5 pt/,
      ])
        expect(lines.filter((line) => row.test(line))).toHaveLength(1);
    },
  );

  test('has the verdict, then the arms in columns with interval and difference, and says what it leaves out', () => {
    const lines = linesOf(reportFixture());
    expect(flat(lines.slice(0, 4))).toMatch(/^Ship .*demo: completed, stage evaluation; on shop 1, seed 1/);
    expect(lines).toContainEqual(expect.stringMatching(/^ +Ship trace, /));
    const trace = lines.find((line) => /^trace +\d/.test(line))!;
    expect(trace).toMatch(/4,608 +8,516 +200 × 1 +75\.5% +69\.1 to 80\.9 +\+38\.5 pt +\+32\.0 to \+45\.0$/);
    expect(lines.find((line) => line.startsWith('arm '))!.indexOf('95% interval')).toBe(trace.indexOf('69.1'));
    expect(linesOf(reportFixture(), 80)).toContainEqual(expect.stringMatching(/^left out here: all rollouts/));
    const wide = flat(linesOf(foundFixture()));
    expect(wide).toMatch(/Delta +spread +agreement +selected/);
    expect(wide).toContain('The selected ones were approved with edits.');
    expect(wide).toContain('9 of 214 failed trajectories are put down to the environment, 3 to the simulated user.');
    expect(wide).toMatch(/without a price: analyst \$4\.52, synthesizer 215,500 tokens$/);
  });

  test('a stopped campaign shows what there is', () => {
    expect(linesOf(stopped())[0]).toBe('demo: stopped after stage rollouts; on shop 1, seed 1');
    expect(linesOf(stopped({ capabilities: [] })).join()).not.toContain('no capability');
    const selection = { ...reportFixture().selection!, candidates: [], reason: 'too little contrast' };
    const told = linesOf(stopped({ capabilities: [], selection })).at(-1);
    expect(told).toBe('no capability was selected: too little contrast');
  });

  test('a base that can not work on the target is told at the beginning, on the page too', async () => {
    const findings = ['9% of <it> is unknown', 'none got any reward'];
    const draft = stopped({ baseCheck: { findings, from: [ref('check')] } });
    expect(linesOf(draft).slice(1, 3)).toEqual(findings.map((one) => `base model: ${one}`));
    expect(await pageOf(draft)).toContain('<p class="bad">base model: 9% of &lt;it&gt; is unknown</p>');
  });

  test('what an analyst gives outright has no votes', async () => {
    const outright = changed(({ selection }) => {
      selection!.passes = 0;
      for (const one of selection!.candidates)
        Object.assign(one, { votes: 0, passes: 0, coverage: nothing('selection.c'), delta: nothing('selection.d') });
    });
    expect(linesOf(outright).join('\n')).toMatch(/refuse_forbidden_actions +given +– +– +yes/);
    expect(await pageOf(outright)).not.toContain('0/0');
  });
});

describe('names where there is little room', () => {
  const [all, refuse, tell, look] = [
    ...['complete_all_requested_actions', 'refuse_forbidden_actions', 'tell_requested_information', 'look_it_up'],
  ] as [string, string, string, string];

  test.each([
    [all, 30, all],
    [all, 16, 'complete_a…tions'],
    [`${all}+${refuse}+${tell}`, 34, 'comple…ons+refuse…ons+tell_r…ion'],
  ])('%s, in %d columns: cut in its middle, a sum in each of its parts', (name, room, short) => {
    expect(shortName(name, room)).toBe(short);
  });

  test('they are never longer than they may be, and sums of the same parts stay apart', () => {
    const parts = [
      [all, refuse],
      [all, refuse, tell],
      [refuse, tell, look],
      [all, refuse, tell, look],
      [all, tell],
    ];
    const sums = parts.map((names) => names.join('+'));
    for (const room of [18, 24, 30, 34]) {
      const short = sums.map((sum) => shortName(sum, room));
      expect(short.filter(({ length }) => length > room)).toEqual([]);
      if (room >= 30) expect(new Set(short).size).toBe(sums.length);
    }
  });

  test('a few sums stand among the other arms; of many the best, in their place', () => {
    const arm = (name: string, role: Arm['role'], value: number | null): Arm =>
      ({ name, role, successRate: { value } }) as unknown as Arm;
    const others = [arm('base', 'base', 0.2)];
    const sums = [0.4, 0.7, null, 0.6, 0.7].map((value, n) => arm(`s${n}`, 'sum', value));
    const few = [...others, ...sums.slice(0, 4)];
    expect(foldSums(few)).toEqual({ shown: few, folded: [] });
    const { shown, folded } = foldSums([...others, ...sums]);
    expect(shown.map(({ name }) => name)).toEqual(['base', 's1', 's3', 's4']);
    expect(folded.map(({ name }) => name)).toEqual(['s0', 's2']);
  });
});
