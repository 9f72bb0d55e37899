/** Every page at two widths, in light and dark: axe finds nothing, nothing is wider than the window, and no table of a wide window scrolls. */
import { join } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import { type Listening, listen } from '../../../src/gateway/listen';
import { comparisonOf } from '../../../src/report/comparison';
import { comparisonHtml, pageHtml } from '../../../src/report/html';
import { completeReport } from '../../../src/report/render';
import type { CampaignPage, Live } from '../../../src/view/api';
import { createView } from '../../../src/view/app';
import { createIndex } from '../../../src/view/rollouts';
import { type OpenBrowser, openBrowser, violationsOf } from '../../support/browser';
import { foundFixture } from '../../support/found-fixture';
import { gamedFixture, learnedFixture, reportFixture } from '../../support/report-fixture';
import { putRollouts, scoredRollout } from '../../support/scored-rollout';
import { inSteps } from '../../support/stored-keys';
import { temporaryFolder } from '../../support/temporary-folder';

const HASH = scoredRollout({ name: 'a', task: '', reward: 0 }).key;

/** A campaign without a report. */
const stands = (state: string, live: Partial<Live> = {}): Partial<CampaignPage> => ({
  live: { state, notes: [], tree: [], curves: { trainings: [] }, spent: [], ...live },
});

const curve = { points: [1, 2].map((step) => ({ step, reward: step / 4 })) };
const gamed = completeReport(gamedFixture()).capabilities![1]!;
const campaigns: Record<string, Partial<CampaignPage>> = {
  done: { report: completeReport(learnedFixture(gamedFixture())) },
  found: { report: completeReport(foundFixture()) },
  running: {
    ...stands('running', {
      tree: [{ depth: 0, status: 'running', label: 'rollouts', detail: '3 of 4' }],
      curves: { trainings: [{ name: 'x', curves: curve, heldOut: [{ step: 2, value: 0.5 }] }] },
      spent: [{ dollars: 1.5 }],
    }),
    approvals: [
      {
        waiting: { what: 'capabilities', of: 'w', names: ['x'], since: 1 },
        selection: completeReport(foundFixture()).selection!,
      },
      {
        waiting: { what: 'environment', of: 'v', names: ['x'], round: 2, since: 1 },
        environment: { candidate: gamed, rounds: gamed.rounds!, source: 'const x = 1;' },
      },
    ],
    links: { running: 'http://127.0.0.1:1/running' },
  },
  cancelled: stands('cancelled', { notes: ['cancelled in stage selection'] }),
  failed: stands('failed', { tree: [{ depth: 0, status: 'failed', label: 'router', detail: 'RouterFailed: no' }] }),
  never: stands('not started', { notes: ['`campaign run FILE` starts it.'] }),
};

const comparison = (): string => {
  const runs = [1, 2].map((trainingSeed) => {
    const draft = reportFixture();
    Object.assign(draft.campaign, { trainingSeed, config: { trainingSeed } });
    const report = completeReport(draft);
    return { name: `run-${trainingSeed}`, report, matrix: report.solverMatrix! };
  });
  const compared = comparisonOf({ runs, level: 0.95 });
  expect(compared.configDifferences).toEqual([{ field: 'trainingSeed', values: ['1', '2'] }]);
  return comparisonHtml(compared);
};

function analysis(): string {
  const selection = completeReport(foundFixture()).selection!;
  const { context } = selection.candidates[0]!.citations[0]!;
  const begins = { of: 'agent', message: 4, votes: 2, blaming: 2, reason: 'it stops' };
  const failure = { conversation: 'f0', task: 'f0', reward: 0, messages: 7, lacking: [], begins, explainedBy: [] };
  return pageHtml({
    ...{ kind: 'analysis', title: 'logs' },
    analysis: {
      ...{ name: 'logs', madeAt: '2026-01-05', files: ['logs.jsonl'], notes: ['a note'], differences: [] },
      conversations: { total: 2, failed: 1, passed: 1, tokens: 900 },
      sections: [{ title: 'In short', statements: [{ text: 'It fails', conversations: ['f0'] }, { text: 'once' }] }],
      partings: [{ task: 't', failed: 'f0', passed: 'p0', same: 2, then: {} }],
      shown: ['f0', 'p0'].map((conversation) => ({ conversation, task: 't', reward: 0, messages: context })),
      reading: {
        ...{ analyst: { kind: 'llm', version: '1', model: 'reader' }, causes: [], failures: [failure], selection },
      },
    },
  });
}

const TOKEN = 'secret';
const folder = temporaryFolder();
let listening: Listening;
let browser: OpenBrowser;

beforeAll(async () => {
  const store = inSteps(openFolderStore(join(folder, 'artifacts')), 'done');
  const rollouts = [0, 1].map((n) => scoredRollout({ name: 'ab'[n]!, task: `t${n}`, reward: n }));
  await putRollouts(store, 'test: trace', rollouts);
  const index = createIndex({ store, campaign: 'done' });
  const { arms = [] } = campaigns['done']!.report!;
  const view = createView({
    token: TOKEN,
    home: async () => ({
      ...{ kind: 'home', title: 'Campaigns of .campaigns' },
      campaigns: Object.keys(campaigns).map((name, n) => ({
        ...{ name, state: 'completed', changed: n === 0 ? 1.7e12 : undefined, base: arms[0]!.successRate },
        shipped: n === 0 ? { name: 'trace', successRate: arms[4]!.successRate } : undefined,
      })),
    }),
    campaign: async (name) =>
      campaigns[name] && {
        ...{ index, store },
        page: async () => ({ kind: 'campaign', title: name, served: true, ...campaigns[name] }),
        decide: async () => ({ decided: [] }),
        behind: async () => new Set<string>(),
      },
    told: () => undefined,
  });
  listening = await listen(view, { host: '127.0.0.1', port: 0 });
  browser = await openBrowser();
});
afterAll(async () => {
  await browser.close();
  await listening.close(0);
});

const reportViews = ['summary', 'policies', 'analysis', 'capabilities', 'training', 'router', 'run'];
/** By place: what shows that it is drawn. */
const places: Record<string, string> = {
  '': 'tbody a',
  ...Object.fromEntries(reportViews.map((view) => [`done/#${view}`, `nav a[href="#${view}"][aria-current]`])),
  'found/#analysis': 'nav a[href="#analysis"][aria-current]',
  'done/#nowhere': 'main .bad',
  'done/#conversations': 'tbody tr',
  [`done/#conversation/${HASH}`]: '.messages',
  'running/#live': 'svg path',
  'running/#approval': '.decision',
  'cancelled/': '.answer',
  'failed/': '.answer',
  'never/': '.answer',
};

/** Tables that scroll within themselves. */
const SCROLLING = `[...document.querySelectorAll('.scroll')]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.getAttribute('aria-label'))`;

test.each([
  [1300, 'light'],
  [1300, 'dark'],
  [420, 'light'],
  [420, 'dark'],
] as const)('at %d pixels in %s', async (width, colorScheme) => {
  const context = { viewport: { width, height: 900 }, colorScheme, bypassCSP: true };
  const found: unknown[] = [];
  const page = await browser.open({ url: `${listening.url}/?token=${TOKEN}`, context });
  for (const [place, seen] of Object.entries(places)) {
    await page.goto(`${listening.url}/${place}`);
    await page.waitForSelector(seen, { state: 'attached' });
    found.push(...(await violationsOf(page)).map((one) => [place, ...one]));
    const scrolling = (await page.evaluate(SCROLLING)) as string[];
    if (scrolling.length > 0) found.push([place, 'scrolls', ...scrolling]);
  }
  await page.context().close();
  for (const html of [comparison(), analysis()]) {
    const file = await browser.open({ html, context });
    await file.waitForSelector('table');
    await file.evaluate(`document.querySelectorAll('details.fold').forEach((fold) => (fold.open = true))`);
    found.push(...(await violationsOf(file)));
    await file.context().close();
  }
  expect(found).toEqual([]);
});
