/** The index of a campaign's rollouts over a real store, its filters, and what is served of it. */
import { request } from 'node:http';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactStore } from '../../../src/store/store';
import type { Rollout } from '../../../src/domain/rollout';
import { type Listening, listen } from '../../../src/gateway/listen';
import type { CampaignPage } from '../../../src/view/api';
import { createView, type GivenDecision, type ViewedCampaign } from '../../../src/view/app';
import { pageOf } from '../../../src/view/filter';
import { createIndex, type RolloutIndex } from '../../../src/view/rollouts';
import { compareActions } from '../../../src/view/shown';
import { campaignCommand } from '../../support/campaign-command';
import { writeStatus } from '../../../src/cli/watch/snapshot';
import { completeReport } from '../../../src/report/render';
import { openBrowser } from '../../support/browser';
import { startLoopback } from '../../support/loopback';
import { closedAfterwards } from '../../support/opened';
import { reportFixture } from '../../support/report-fixture';
import { brokenRollout, putRollouts, scoredRollout } from '../../support/scored-rollout';
import { eachTemporaryFolder } from '../../support/temporary-folder';
import { inSteps } from '../../support/stored-keys';

let home: string;
let store: ArtifactStore;
let index: RolloutIndex;

eachTemporaryFolder((made) => {
  home = made;
  store = inSteps(openFolderStore(join(home, 'artifacts')), 'demo');
  index = createIndex({ store, campaign: 'demo' });
});

const HOSTILE = '<script>alert(1)</script> \u202eevil\u001b[31m';
const said = (name: string, task: string, reward: number, text = 'hello', answer = 'gladly') =>
  ({
    ...scoredRollout({ name, task, reward }),
    messages: [
      { role: 'system', content: 'the written policy' },
      { role: 'user', content: text },
      { role: 'assistant', content: answer, toolCalls: [{ id: '1', name: 'find_item', arguments: { name: 'lamp' } }] },
      { role: 'tool', toolCallId: '1', content: 'item I-1' },
    ],
  }) as Rollout;
const batch = (title: string, rollouts: Rollout[]) => putRollouts(store, title, rollouts);
const pass = (attempt: number, lacking: string[], present: string[]) =>
  store.put({
    key: `labels/${attempt}`,
    producer: 'label',
    inputs: [],
    mediaType: 'application/json',
    body: JSON.stringify({
      attempt,
      totals: { total_failed: 1, total_passed: 1 },
      labels: {
        ask_first: {
          ...{ lacking_failed: lacking, present_failed: present, na_failed: [] },
          ...{ lacking_passed: [], present_passed: [], na_passed: [] },
        },
      },
      reasons: { ask_first: { [keyOf('a')]: { message: 1, reason: 'it was told' } } },
      failures: { [keyOf('a')]: { of: 'agent', message: 2, reason: 'it did not ask' } },
    }),
  });
const discovery = () => {
  const citations = [{ rollout: keyOf('a'), message: 3, says: 'it is found' }];
  const candidates = [{ name: 'ask_first', definition: 'It asks first.', examples: [], citations }];
  const body = JSON.stringify({ candidates, faults: [] });
  return store.put({ key: 'candidates/1', producer: 'discover', inputs: [], mediaType: 'application/json', body });
};
const keyOf = (name: string) => scoredRollout({ name, task: '', reward: 0 }).key;
const names = async (asked: Record<string, string>) =>
  (await pageOf(index, asked)).rollouts.map(({ id }) => Buffer.from(id, 'hex').toString().replaceAll('\0', ''));

async function twoBatches(): Promise<void> {
  await batch('base rollouts', [
    said('a', 't1', 0, 'where is my ORDER'),
    said('b', 't2', 1),
    { ...brokenRollout('t3'), key: keyOf('c') },
  ]);
  await batch('grpo_target: training step 3', [
    { ...said('d', 't1', 0.5), branch: 'twin' } as Rollout,
    said('c', 't3', 1),
  ]);
  await index.refresh();
}

test('rollouts are filtered by what they are, and listed once; a broken one that was scored later is scored', async () => {
  await twoBatches();
  expect(await names({})).toEqual(['a', 'b', 'c', 'd']);
  expect(await names({ stage: 'training' })).toEqual(['d', 'c']);
  expect(await names({ stage: 'base rollouts', outcome: 'broken' })).toEqual(['c']);
  expect(await names({ arm: 'grpo_target', outcome: 'failed' })).toEqual(['d']);
  expect(await names({ task: 't1', attempt: '0' })).toEqual(['a', 'd']);
  expect(await names({ stop: 'agent_stop', outcome: 'success' })).toEqual(['b', 'c']);
  expect(await names({ text: 'my order' })).toEqual(['a']);
  expect(await names({ text: 'written policy' })).toEqual([]);
  expect(await names({ said: 'LAMP', task: 't2' })).toEqual(['b']);
  expect(await names({ branch: 'twin' })).toEqual(['d']);
  const { facets, total } = await pageOf(index, {});
  expect(total).toBe(4);
  expect(facets['outcome']).toEqual([
    { value: 'failed', count: 2 },
    { value: 'success', count: 2 },
  ]);
});

test('of those behind a figure only its batches are listed, and what the router chose is a filter', async () => {
  const routed = (name: string, task: string, chosen: string) =>
    ({
      ...said(name, task, 1),
      routed: { chosen, probabilities: {}, policy: { base: 'base@1', adapters: [] } },
    }) as Rollout;
  const { sha256 } = await batch('test: trace', [routed('a', 't1', 'base'), routed('b', 't2', 'one+other')]);
  await batch('test: base', [said('c', 't1', 1)]);
  await index.refresh();
  const { rollouts } = await pageOf(index, {}, new Set([sha256]));
  expect(rollouts.map(({ task, outcome }) => `${task} ${outcome}`)).toEqual(['t1 success', 't2 success']);
  expect(await names({ chosen: 'base' })).toEqual(['a']);
});

test('labels are those of half the passes at least, and come while a campaign runs', async () => {
  await twoBatches();
  await pass(1, [keyOf('a')], [keyOf('b')]);
  await pass(2, [keyOf('a'), keyOf('b')], []);
  await pass(3, [], [keyOf('a'), keyOf('b')]);
  await index.refresh();
  expect(await names({ label: 'ask_first' })).toEqual(['a']);
  expect(index.beginningOf(keyOf('a'))).toMatchObject({ message: 2, votes: 3 });
});

test('reference actions are paired with calls: made, with wrong arguments, missing; other calls come last', () => {
  const call = (name: string, item: string, count = 1) => ({ name, arguments: { item, count } });
  const toolCalls = [call('find', 'a'), call('cancel', 'b'), call('cancel', 'a')].map((one, id) => ({
    id: `${id}`,
    ...one,
  }));
  const expected = [{ name: 'cancel', arguments: { count: 1, item: 'a' } }, call('cancel', 'c'), call('return', 'a')];
  const compared = compareActions(expected, [{ role: 'assistant', content: '', toolCalls }]);
  expect(compared.map(({ state }) => state)).toEqual(['made', 'wrong arguments', 'missing', 'extra']);
  expect(compared[1]!.made).toContain('"b"');
});

describe('served', () => {
  const TOKEN = 'the token of the home';
  let listening: Listening;
  let state: string;
  const decisions: GivenDecision[] = [];
  beforeEach(async () => {
    await batch('base rollouts', [said('a', 't1', 0, HOSTILE)]);
    await pass(1, [keyOf('a')], []);
    await discovery();
    state = 'running';
    const campaign: ViewedCampaign = {
      ...{ index, store },
      page: async (): Promise<CampaignPage> => ({
        ...{ kind: 'campaign', title: 'demo', served: true, isLive: true },
        report: completeReport(reportFixture()),
        approvals: [
          {
            waiting: { what: 'capabilities', of: 'w', names: ['x'], since: 0 },
            selection: completeReport(reportFixture()).selection!,
          },
        ],
        links: { demo: 'http://127.0.0.1:1/demo' },
        live: {
          ...{ state, notes: [HOSTILE] },
          tree: [{ depth: 0, status: 'running', label: 'rollouts', detail: '3 of 4' }],
          curves: {
            trainings: [
              { name: 'x', curves: { points: [1, 2].map((step) => ({ step, reward: step / 4 })) }, heldOut: [] },
            ],
          },
          spent: [{ dollars: 1.5 }],
        },
      }),
      decide: async (decision) => (decisions.push(decision), { decided: ['approved: x'] }),
      behind: async (start) => new Set(start === 'nothing' ? [] : index.all().map(({ batch: { ref } }) => ref.sha256)),
    };
    const listed = { name: 'demo', state: 'running', changed: 0, base: undefined, shipped: undefined };
    const view = createView({
      token: TOKEN,
      home: async () => ({ kind: 'home', title: 'home', campaigns: [listed] }),
      campaign: async (name) => (name === 'demo' ? campaign : undefined),
      told: () => undefined,
    });
    listening = await listen(view, { host: '127.0.0.1', port: 0 });
  });
  afterEach(() => listening.close(0));

  const addressOf = (place = '') => `${listening.url}/demo/?token=${encodeURIComponent(TOKEN)}#${place}`;
  const cookieOf = () => `campaign-view-${new URL(listening.url).port}=${encodeURIComponent(TOKEN)}`;
  /** As fetch can't: with any Host header. */
  const ask = (path: string, headers: Record<string, string> = {}, body?: object) =>
    send(path, { cookie: cookieOf(), ...headers }, body);
  const send = (path: string, headers: Record<string, string>, body?: object) =>
    new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }>((resolve, reject) => {
      const sent = request(`${listening.url}${path}`, { method: body ? 'POST' : 'GET', headers }, (answer) => {
        let text = '';
        answer.on('data', (part) => (text += String(part)));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
      });
      sent.on('error', reject).end(body && JSON.stringify(body));
    });

  test('in a browser: live, decided there, and from a list to a conversation, in which a text is a text', async () => {
    await batch('test: one+other', [said('b', 't1', 1, 'hello', 'at once')]);
    const browser = closedAfterwards(await openBrowser());
    const page = await browser.open({ url: addressOf('approval') });
    await page.locator('.decision button', { hasText: 'Approve x' }).click();
    await page.waitForSelector('text=approved: x');
    expect(decisions.splice(0)).toEqual([{ verb: 'approve', what: ['x'], of: ['w'] }]);
    await page.locator('nav a', { hasText: 'Live' }).click();
    expect(await page.locator('.answer').innerText()).toBe('running');
    expect(await page.locator('main').innerText()).toContain('<script>alert(1)</script> \\u{202e}evil');
    await page.waitForSelector('svg path', { state: 'attached' });
    expect(await page.locator('.plain').innerText()).toContain('$1.50');
    state = 'cancelled';
    await page.waitForSelector('.answer:text-is("cancelled")');

    // From the list of campaigns to a conversation: a number, what is behind it, one of these.
    const first = await browser.open({ url: addressOf().replace('/demo/', '/') });
    await first.locator('tbody a', { hasText: 'demo' }).click();
    await first.locator('nav a', { hasText: 'Summary' }).click();
    await first.locator('td details.figure summary').first().click();
    await first.locator('td details.figure a').first().click();
    await first.waitForSelector('text=in the batches behind');
    await first.locator('tbody a').first().click();
    await first.waitForSelector('.messages');
    await first.close();

    // It begins with the failures of the routed policy, of which there are none.
    await page.locator('nav a', { hasText: 'Conversations' }).click();
    await page.waitForSelector('text=0 conversations');
    await page.locator('main p a', { hasText: 'all' }).click();
    await page.waitForSelector('tbody tr');
    // A name with a plus, as sums have.
    await page.locator('select[aria-label="arm"]').selectOption('one+other');
    await page.waitForSelector('text=1 conversations');
    await page.locator('select[aria-label="arm"]').selectOption('');
    await page.waitForSelector('text=2 conversations');
    await page.locator('input[aria-label="Said anywhere in it"]').fill('at once');
    await page.locator('input[aria-label="Said anywhere in it"]').blur();
    await page.waitForSelector('text=1 conversations');
    await page.locator('input[aria-label="Said anywhere in it"]').fill('');
    await page.locator('input[aria-label="Said anywhere in it"]').blur();
    await page.waitForSelector('text=2 conversations');
    await page.locator('select[aria-label="outcome"]').selectOption('failed');
    await page.waitForSelector('text=1 conversations');
    await page.locator('tbody a').click();
    await page.waitForSelector('.messages');
    expect(await page.locator('.cited').innerText()).toMatch(/gladly[^]*the failure begins here \(agent\)/);
    expect(await page.locator('.messages').innerText()).toContain('<script>alert(1)</script> \\u{202e}evil\\u{1b}[31m');
    // The neighbours in a list, by key.
    await page.locator('.steps a', { hasText: 'list' }).click();
    await page.locator('select[aria-label="outcome"]').selectOption('');
    await page.waitForSelector('text=2 conversations');
    await page.locator('tbody a').first().click();
    await page.waitForSelector('h2:has-text("failed")');
    await page.keyboard.press('j');
    await page.waitForSelector('h2:has-text("success")');
    await page.keyboard.press('k');
    await page.waitForSelector('h2:has-text("failed")');
    const address = page.url();
    await page.locator('article li a').click();
    await page.waitForSelector('h2:has-text("success")');
    const again = await browser.open({ url: addressOf(new URL(address).hash.slice(1)) });
    await again.waitForSelector('.messages');
    expect(browser.problems).toEqual([]);
  });

  test('a link from another site, such as Temporal’s UI, leads to the page in a browser that has the cookie', async () => {
    const link = `<a href="${listening.url}/demo/">the page</a>`;
    const elsewhere = closedAfterwards(await startLoopback((_, answer) => answer.end(link)));
    const browser = closedAfterwards(await openBrowser());
    const page = await browser.open({ url: addressOf('live') });
    await page.waitForSelector('.answer');
    expect(page.url()).not.toContain('token');
    await page.goto(elsewhere.url.replace('127.0.0.1', 'localhost'));
    await page.locator('a').click();
    await page.waitForSelector('nav a');
    const stranger = await browser.open({ url: listening.url });
    expect(await stranger.locator('body').innerText()).toContain('campaign view');
  });

  test('a conversation is whole: messages with calls, what it came to, labels, where the failure begins', async () => {
    const { text, headers } = await ask(`/demo/api/rollouts/${keyOf('a')}`);
    const shown = JSON.parse(text);
    expect(shown).toMatchObject({ task: 't1', outcome: 'failed', labels: ['ask_first'] });
    expect(shown.cited).toEqual([
      { message: 2, says: 'the failure begins here (agent): it did not ask' },
      { message: 1, says: 'lacks ask_first, 1 of 1 passes: it was told' },
      { message: 3, says: 'ask_first: it is found' },
    ]);
    expect(shown.messages[1].text).toBe(HOSTILE);
    expect(shown.messages[2].text).toBe('gladly\ncalls find_item({"name":"lamp"})');
    expect(shown.facts).toContainEqual(['analysis', 'lacks ask_first, 1 of 1 passes']);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    });
    expect((await ask('/demo/api/rollouts?figure=nothing')).text).toContain('"total":0');
    for (const nowhere of ['/demo/api/rollouts/ffffffff', '/demo/api/nothing', '/other/', '/other/api/page'])
      expect([nowhere, (await ask(nowhere)).status]).toEqual([nowhere, 404]);
  });

  test('nothing is answered without the token, which is given once and then a cookie of this address', async () => {
    const wrong = { cookie: cookieOf().replace('token', 'tok3n') };
    const other = { cookie: cookieOf().replace(/^[^=]+/, 'campaign-view-1') };
    const json = { 'content-type': 'application/json', origin: new URL(listening.url).origin };
    for (const headers of [{}, wrong, other])
      for (const [path, body] of [
        ['/'],
        ['/demo/'],
        ['/?token=x'],
        ['/demo/api/page'],
        ['/demo/api/page?token=the%20token%20of%20the%20home'],
        ['/demo/api/rollouts'],
        [`/demo/api/rollouts/${keyOf('a')}`],
        ['/nowhere'],
        ['/demo/api/approvals', { verb: 'approve', what: [], of: ['0'] }],
      ] as [string, object?][]) {
        const answer = await send(path, { ...(body && json), ...headers }, body);
        expect([path, answer.status, answer.text.includes('campaign view')]).toEqual([path, 401, true]);
        expect(answer.text).not.toContain('demo');
      }
    expect(decisions).toEqual([]);
    const { pathname, search } = new URL(addressOf());
    const given = await send(pathname + search, {});
    expect(given).toMatchObject({ status: 302, headers: { location: '/demo/' } });
    const [cookie = ''] = given.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Lax$/);
    expect((await send('/demo/api/page', { cookie: cookie.split(';')[0]! })).status).toBe(200);
  });

  test('another name for this machine is refused, and nobody decides but a page of this address', async () => {
    const own = new URL(listening.url).host;
    expect((await ask('/demo/api/page', { host: 'rebound.example' })).status).toBe(403);
    const json = { 'content-type': 'application/json' };
    const decision = { verb: 'approve', what: [], of: ['0'] };
    for (const headers of [json, { ...json, origin: 'http://other.example' }])
      expect((await ask('/demo/api/approvals', headers, decision)).status).toBeGreaterThanOrEqual(400);
    expect(decisions).toEqual([]);
    const given = await ask('/demo/api/approvals', { ...json, origin: `http://${own}` }, decision);
    expect(given).toMatchObject({ status: 200, text: '{"decided":["approved: x"]}' });
    expect(decisions).toEqual([decision]);
    const large = { ...decision, what: ['x'.repeat(70_000)] };
    expect((await ask('/demo/api/approvals', { ...json, origin: `http://${own}` }, large)).status).toBe(413);
    expect(decisions).toEqual([decision]);
    expect(await ask('/demo/api/approvals', { ...json, origin: `http://${own}` }, { verb: 'maybe' })).toMatchObject({
      status: 400,
      text: expect.stringContaining('verb'),
    });
  });
});

const idle = { drain: () => undefined, running: () => 0, stop: () => undefined };

test('`campaign show` prints a conversation, none of whose lines is wider than 60 columns or moves the cursor; `view` names a port that is taken', async () => {
  await batch('base rollouts', [said('a', 't1', 0, `${HOSTILE} ${'long words '.repeat(30)}`)]);
  const snapshot = {
    name: 'demo',
    runId: '1',
    status: 'COMPLETED',
    startedAt: 1,
    activities: [],
    children: [],
  };
  await writeStatus({ home, snapshot });
  const { text } = await campaignCommand(home, 'show', keyOf('a').slice(0, 10));
  expect(text).toContain('t1, attempt 0: failed');
  expect(text).toContain('calls find_item({"name":"lamp"})');
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(60);
  expect(text).not.toContain('\u001b');
  await expect(campaignCommand(home, 'show', 'ffffffffff')).rejects.toThrow('is no rollout');
  const other = await listen({ app: { fetch: () => new Response() }, ...idle }, { host: '127.0.0.1', port: 0 });
  const { port } = new URL(other.url);
  const taken = `nothing can listen on 127.0.0.1:${port} `;
  await expect(campaignCommand(home, 'view', 'demo', '--port', port)).rejects.toThrow(taken);
  await other.close(0);
});
