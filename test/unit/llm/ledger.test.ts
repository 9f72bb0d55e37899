/** Replies that are kept and what was paid for them: over processes, kills and budgets. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import { OutsideFailure } from '../../../src/domain/failures';
import { languageModelSchema, type Budget } from '../../../src/domain/endpoints';
import { openLedger } from '../../../src/llm/ledger';
import { settleSpending, spentOf } from '../../../src/llm/spending';
import { openLanguageModel } from '../../../src/llm/model';
import { startChatServer, type ChatServer, type Play } from '../../support/chat-server';
import { askingBy } from '../../support/memory-ledger';
import { answered, chunk, event, inOrder, streamed, usageOf, written } from '../../support/model-endpoint';
import { closedAfterwards } from '../../support/opened';
import { newFolder } from '../../support/temporary-folder';

let home: string;
let server: ChatServer;
/** Each reply says how many there were before. */
const counting = () => streamed((n) => `reply ${n}`, { usage: usageOf(100, 20, 40), pauseMs: 5 });
beforeEach(async () => {
  home = newFolder();
  server = closedAfterwards(await startChatServer(counting()));
});

/** The lines that it wrote, and the signal that ended it. */
async function process(options: Record<string, string>): Promise<{ lines: string[]; signal: unknown }> {
  const given = { url: server.url, home, campaign: 'one', ...options };
  const words = Object.entries(given).flatMap(([name, value]) => [`--${name}`, value]);
  const program = [resolve(__dirname, '../../support/register.cjs'), resolve(__dirname, '../../support/ask-model.ts')];
  const child = spawn(globalThis.process.execPath, ['-r', ...program, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (bytes: Buffer) => (text += String(bytes)));
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { lines: text.split('\n').filter(Boolean), signal };
}
const spent = (campaign = 'one') => spentOf({ store: openFolderStore(home), campaign });
const price = { input: 10, cachedInput: 1, output: 100 };
/** Of one reply of `counting`. */
const paid = { promptTokens: 100, cachedTokens: 40, completionTokens: 20 };
const dollars = (60 * 10 + 40 * 1 + 20 * 100) / 1e6;

interface Asked {
  budget?: Budget;
  priced?: boolean;
  step?: string;
  ledger?: ReturnType<typeof openLedger>;
  /** Of the model's settings. */
  over?: object;
  signal?: AbortSignal;
}
const ask = async (seed: number, o: Asked = {}) => {
  const { budget = {}, priced = false, step = 'discovery', over, signal } = o;
  const store = openFolderStore(home);
  const ledger = o.ledger ?? openLedger({ store, campaign: 'one', budget, role: 'analyst' });
  const spec = languageModelSchema.parse({ url: server.url, model: 'm', ...(priced && { price }), ...over });
  const question = { messages: [{ role: 'user' as const, content: 'again?' }], seed };
  try {
    return await openLanguageModel('analyst', spec).ask(
      question,
      askingBy(ledger, { step, ...(signal && { signal }) }),
    );
  } finally {
    await settleSpending(store);
  }
};
/** What `requests` requests at a step cost. */
const line = (usage: object, { step = 'discovery', requests = 1 } = {}) => ({
  ...{ role: 'analyst', step, requests },
  ...usage,
});

test('what is spent is reported by step, in tokens and in dollars where there is a price', async () => {
  expect(await spent()).toEqual([]);
  await ask(1, { step: 'labels', priced: true });
  await ask(2, { step: 'discovery', priced: true });
  await ask(3, { step: 'labels' });
  await ask(3, { step: 'labels' });
  await ask(4, { step: 'merge' });
  const twice = { promptTokens: 200, cachedTokens: 80, completionTokens: 40, dollars, unpriced: 1 };
  expect(await spent()).toEqual([
    line({ ...paid, dollars }),
    line(twice, { step: 'labels', requests: 2 }),
    line(paid, { step: 'merge' }),
  ]);
});

describe('a full disk', () => {
  /** A store without room for replies and records as long as `isFull` is set. */
  function tight() {
    const store = openFolderStore(home);
    const disk = { isFull: true };
    const check = () => {
      if (disk.isFull) throw new OutsideFailure('DiskFull', 'no room');
    };
    const put: typeof store.put = async (artifact) => (check(), store.put(artifact));
    const create: typeof store.files.create = async (path, text) => (check(), store.files.create(path, text));
    const shared = { ...store, put, files: { ...store.files, create } };
    const ledger = (campaign = 'one', budget: Budget = {}) =>
      openLedger({ store: shared, campaign, budget, role: 'analyst' });
    return { disk, ledger, settle: () => settleSpending(shared) };
  }

  test('in the way of a reply: it waits for room and is not paid for again', async () => {
    const { disk, ledger, settle } = tight();
    await expect(ask(1, { ledger: ledger() })).rejects.toMatchObject({ type: 'DiskFull' });
    await expect(ask(1, { ledger: ledger() })).rejects.toMatchObject({ type: 'DiskFull' });
    await expect(settle()).rejects.toMatchObject({ type: 'DiskFull' });
    disk.isFull = false;
    expect(await ask(1, { ledger: ledger() })).toMatchObject({ text: 'reply 0' });
    await settle();
    expect(await ask(1)).toMatchObject({ text: 'reply 0' });
    expect(server.requests).toHaveLength(1);
    expect(await spent()).toEqual([line(paid)]);
  });
});

describe('a request that brings no reply', () => {
  const silent: Play = () => new Promise<undefined>(() => undefined);
  /** The prompt has six characters. */
  const lost = (completionTokens: number) => [line({ promptTokens: 2, cachedTokens: 0, completionTokens })];

  test('is counted by its text, where its reply broke off', async () => {
    const half = event(chunk({ reasoning_content: 'x'.repeat(8), content: 'y'.repeat(4) }));
    server.play = inOrder(written(half), counting());
    await expect(ask(1)).rejects.toMatchObject({ type: 'LanguageModelFailed' });
    expect(await spent()).toEqual(lost(3));
    await expect(ask(1, { budget: { tokens: 9 } })).rejects.toMatchObject({ type: 'BudgetSpent' });
    await ask(1, { budget: { tokens: 10 } });
  });

  test.each<[string, Play, number]>([
    ['in the middle of its reply', written(event(chunk({ content: 'y'.repeat(4) })), 'is silent'), 1],
    ['before the first word', silent, 0],
  ])('is counted where it is aborted %s', async (_, play, completionTokens) => {
    const stop = new AbortController();
    server.play = (body, response) => {
      setTimeout(() => stop.abort(new Error('stopped')), 200);
      return play(body, response);
    };
    await expect(ask(1, { signal: stop.signal })).rejects.toThrow('stopped');
    expect(await spent()).toEqual(lost(completionTokens));
  });

  test.each<[string, boolean, Play]>([
    ['refused', false, answered(500, 'no')],
    ['not answered at all', true, silent],
  ])('that was %s is counted: %s', async (_, isCounted, play) => {
    server.play = play;
    await expect(ask(1, { over: { timeoutSeconds: isCounted ? 1 : 300 } })).rejects.toThrow();
    expect(await spent()).toEqual(isCounted ? lost(0) : []);
  });
});

describe('a budget', () => {
  const spentAll = (text: string) => ({ type: 'BudgetSpent', message: expect.stringContaining(text) as string });

  test('of tokens that is spent lets nothing more be asked, in any process, and what was paid for stays', async () => {
    const budget = { tokens: 240 };
    const first = await ask(1, { budget });
    await ask(2, { budget });
    await expect(ask(3, { budget })).rejects.toMatchObject(spentAll('240 tokens on 2 requests'));
    expect(await ask(1, { budget })).toEqual(first);
    expect((await process({ ask: '1,3', tokens: '240' })).lines).toEqual(['reply 0', 'BudgetSpent']);
    expect(server.requests).toHaveLength(2);
    await ask(3, { budget: { tokens: 360 } });
  });

  test('of dollars counts by the price, and is refused where there is none', async () => {
    const budget = { dollars };
    await ask(1, { budget, priced: true });
    await expect(ask(2, { budget, priced: true })).rejects.toMatchObject(spentAll('0.0026 dollars on 1 requests'));
    const unpriced = { type: 'BadInput', message: expect.stringContaining('analyst.price') as string };
    await expect(ask(2, { budget })).rejects.toMatchObject(unpriced);
  });
});

test('killed before a reply is kept: it is asked again, and both payments are counted', async () => {
  expect(await process({ ask: '1', die: 'put' })).toEqual({ lines: [], signal: 'SIGKILL' });
  expect(await spent()).toEqual([line(paid, { step: 'step 1' })]);
  expect((await process({ ask: '1,1' })).lines).toEqual(['reply 1', 'reply 1']);
  expect(server.requests).toHaveLength(2);
  const twice = { promptTokens: 200, cachedTokens: 80, completionTokens: 40 };
  expect(await spent()).toEqual([line(twice, { step: 'step 1', requests: 2 })]);
});

test('two processes at one ledger: each reply is kept once, every payment is counted, and both go on from the same', async () => {
  const seeds = '1,2,3,4,5,6';
  const [a, b] = await Promise.all([process({ ask: seeds }), process({ ask: seeds })]);
  expect(a!.lines).toEqual(b!.lines);
  expect(new Set(a!.lines).size).toBe(6);
  const [even, odd] = await spent();
  expect(even!.requests + odd!.requests).toBe(server.requests.length);
  expect((await process({ ask: seeds })).lines).toEqual(a!.lines);
  expect(await spent()).toEqual([even, odd]);
});
