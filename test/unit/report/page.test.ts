/** A report as a page in a real browser and on a terminal: texts from models do nothing there, and it fits. */
import { figuresIn } from '../../../src/domain/artifacts';
import type { ReportDraft } from '../../../src/report/model';
import { completeReport, renderReport } from '../../../src/report/render';
import { reportText } from '../../../src/report/terminal';
import { foundFixture } from '../../support/found-fixture';
import { gamedFixture, learnedFixture, ref, reportFixture } from '../../support/report-fixture';
import { type OpenBrowser, openBrowser, viewsOf } from '../../support/browser';

let browser: OpenBrowser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());
afterEach(() => expect(browser.problems.splice(0)).toEqual([]));

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
  reportText(completeReport(draft), { columns }).split('\n');
const elements = (page: string): Set<string> => new Set(page.match(/<\/?[a-z][a-z0-9]*/g));

/** A campaign that was stopped right after its first stage. */
const stopped = (more: Partial<ReportDraft> = {}): ReportDraft => ({
  campaign: { ...reportFixture().campaign, status: 'completed', stage: 'rollouts' },
  ...more,
});

describe('texts that others wrote', () => {
  /** `attack` in every free text of the draft: names, reasons and definitions may be written by models. */
  function poisoned(draft: ReportDraft, attack: string): ReportDraft {
    const words =
      /^(completed|not_trained|accepted|too_easy|too_hard|rollouts|selection|capabilities|router|evaluation|base|adapter|routed|oracle|baseline|held_out|test|failed|passed|system|user|assistant|tool|environment|user|analyst|synthesizer)$/;
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
});

describe('page', () => {
  test('fetches nothing, and its policy forbids it', () => {
    const { html } = renderReport({ report: foundFixture() });
    expect(html).toMatch(
      /content="default-src 'none'; script-src 'sha256-[^']+'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'"/,
    );
    expect(html.length).toBeLessThan(1_500_000);
  });

  test('its first screen says what to ship and what is doubtful; a click leads to the rest', async () => {
    const page = await browser.open({ html: renderReport({ report: gamedFixture() }).html, context: WIDE });
    const goTo = async (view: string) => {
      await page.locator('nav a', { hasText: view }).click();
      await page.waitForSelector(`nav a[href="#${view.toLowerCase()}"][aria-current]`);
    };
    expect(await page.title()).toBe('demo');
    expect(await page.locator('.answer').innerText()).toContain('trace');
    expect(await page.locator('tr.shipped').innerText()).toContain('75.5%');
    expect(await page.locator('ul.bad').innerText()).toContain('refuse_forbidden_actions');
    await goTo('Capabilities');
    expect(page.url()).toMatch(/#capabilities$/);
    await page.goBack();
    await page.waitForSelector('.answer');
  });

  test('every figure stands there with its lineage command', async () => {
    const { capabilities, selection, ...report } = completeReport(gamedFixture());
    const { arms, comparisons, router, rollouts, cost } = report;
    const tests = capabilities!.map(({ validation: own, onTarget }) => [own?.target.after, own?.branches, onTarget]);
    const { failed, passed } = selection!;
    const drawn = figuresIn([arms, comparisons, failed, passed, tests, router, rollouts, cost]);
    const html = await pageOf(gamedFixture());
    // Checkpoints are made once their fold is opened.
    const shown = drawn.filter(({ id }) => !id.startsWith('training.'));
    for (const { id } of shown) expect(html).toContain(`campaign show ${id} --campaign demo`);
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
  test.each<[string, ReportDraft]>([
    ['a campaign that was stopped after its first stage', stopped()],
    ['no candidates, capabilities or arms', changed(empty)],
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
});

describe('terminal', () => {
  test.each([40, 60, 80, 99, 200])(
    'at %d columns there are at most 20 lines, none too wide, with each policy once and its success',
    (columns) => {
      const draft = learnedFixture();
      const like = draft.arms!.find(({ role }) => role === 'baseline')!;
      const original = draft.arms!.filter(({ role }) => role === 'adapter').at(-1)!;
      const name = 'a_baseline_with_a_name_that_is_much_too_long_for_a_terminal';
      draft.arms!.push({ ...like, name, successRate: undefined, status: 'failed', reason: 'x'.repeat(300) });
      draft.arms!.find(({ role }) => role === 'routed')!.sameAs = original.name;
      const lines = linesOf(draft, columns);
      expect(lines.length).toBeLessThanOrEqual(20);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(Math.min(columns, 99));
      expect(lines.filter((line) => line.startsWith(original.name.slice(0, 7)))).toEqual([]);
      expect(lines.find((line) => /^trace/.test(line))).toContain('75.5%');
      expect(lines.filter((line) => line.includes('failed') && line.startsWith('a_base'))).toHaveLength(1);
    },
  );

  test('what is doubtful and where to look stay, however many policies there are', () => {
    const lines = linesOf(gamedFixture());
    const doubts = completeReport(gamedFixture()).doubts;
    expect(doubts.length).toBeGreaterThan(0);
    expect(lines.filter((line) => line.startsWith('doubtful: ')).length).toBeGreaterThan(0);
    expect(lines.at(-1)).toContain('campaign view');
  });

  test('a base that can not work on the target is shown, on the page too', async () => {
    const finding = '9% of <it> is unknown';
    const draft = stopped({ baseCheck: { findings: [finding], from: [ref('check')] } });
    expect(linesOf(draft).join()).toContain(finding);
    expect(await pageOf(draft)).toContain('9% of &lt;it&gt; is unknown');
  });
});
