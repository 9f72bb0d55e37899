/** Budgets over several workers, in a folder and in a bucket. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../src/store/open-store';
import { openS3Store } from '../../src/store/s3-store';
import type { ArtifactStore } from '../../src/store/store';
import { total } from '../../src/domain/endpoints';
import { openLedger } from '../../src/llm/ledger';
import { settleSpending, spentOf } from '../../src/llm/spending';
import { bucket, sharedS3ForTests } from '../support/s3-server';
import { eachTemporaryFolder } from '../support/temporary-folder';

let root: string;
let hosts = 0;
sharedS3ForTests();
eachTemporaryFolder((made) => (root = made));
beforeEach(() => void (hosts += 1));

const openers: Record<string, () => ArtifactStore> = {
  folder: () => openFolderStore(join(root, 'store')),
  s3: () => openS3Store({ url: `s3://${bucket}/budget-${hosts}`, cache: join(root, 'cache'), cacheBytes: 1e9 }),
};

const REQUEST = { promptTokens: 90, cachedTokens: 0, completionTokens: 10 };
const TOKENS = 20_000;

/** Spends until the budget stops it; returns the number of payments. */
async function work(store: ArtifactStore, payments = Infinity): Promise<number> {
  const ledger = openLedger({ store, campaign: 'one', budget: { tokens: TOKENS }, role: 'user' });
  let paid = 0;
  const slot = async (): Promise<void> => {
    while (paid < payments) {
      const ended = new AbortController();
      await ledger.permit({ ended: ended.signal, field: 'target.user' });
      await sleep(1);
      paid += 1;
      await ledger.count({ usage: REQUEST, step: 'held_out' });
      ended.abort();
    }
  };
  const ends = await Promise.allSettled([slot(), slot()]);
  for (const end of ends)
    if (end.status === 'rejected' && (end.reason as { type?: string }).type !== 'BudgetSpent') throw end.reason;
  await settleSpending(store);
  return paid;
}

const spentIn = async (store: ArtifactStore) => total(await spentOf({ store, campaign: 'one' }));

describe.each(Object.keys(openers))('a budget in a %s', (kind) => {
  const open = openers[kind]!;

  test('is not exceeded by eight workers, and hardly anything of it is left', async () => {
    const paid = await Promise.all(Array.from({ length: 8 }, () => work(open())));
    const payments = paid.reduce((sum, one) => sum + one, 0);
    expect(payments * 100).toBeLessThanOrEqual(TOKENS);
    expect(payments * 100).toBeGreaterThan(0.9 * TOKENS);
    expect(await spentIn(open())).toEqual({ requests: payments, tokens: payments * 100, dollars: 0 });
    // A worker that stopped early has returned what it did not spend: another may spend that, and no more.
    const more = await work(open());
    expect((payments + more) * 100).toBeLessThanOrEqual(TOKENS);
    await expect(work(open())).resolves.toBe(0);
  });

  test('counts a record whose writing failed once, if it is there all the same', async () => {
    const store = open();
    let fails = 1;
    const create: typeof store.files.create = async (path, text) => {
      const created = await store.files.create(path, text);
      if (fails-- > 0) throw new Error('the answer was lost');
      return created;
    };
    const flaky = { ...store, files: { ...store.files, create } };
    const ledger = openLedger({ store: flaky, campaign: 'one', budget: {}, role: 'user' });
    await ledger.count({ usage: REQUEST, step: 'held_out' });
    expect(await spentIn(open())).toMatchObject({ requests: 1 });
    const others = await work(open(), 3);
    await settleSpending(flaky);
    expect(await spentIn(open())).toMatchObject({ requests: 1 + others });
  });
});

test('counts the slice of a worker that was killed as spent', async () => {
  const script = `
    const { openFolderStore } = require('./src/store/open-store');
    const { openLedger } = require('./src/llm/ledger');
    const store = openFolderStore(${JSON.stringify(join(root, 'store'))});
    const ledger = openLedger({ store, campaign: 'one', budget: { tokens: ${TOKENS} }, role: 'user' });
    (async () => {
      for (let paid = 1; ; paid += 1) {
        await ledger.permit({ ended: new AbortController().signal, field: 'target.user' });
        await ledger.count({ usage: ${JSON.stringify(REQUEST)}, step: 'held_out' });
        process.send(paid);
      }
    })();`;
  const register = join(__dirname, '../support/register.cjs');
  const file = join(root, 'worker.cjs');
  writeFileSync(file, script.replaceAll("'./src", `'${join(__dirname, '../../src')}`));
  const child = fork(file, { execArgv: ['-r', register] });
  let paid = 0;
  child.on('message', (count) => {
    paid = Number(count);
    if (paid >= 20) child.kill('SIGKILL');
  });
  await once(child, 'exit');
  expect(paid).toBeGreaterThanOrEqual(20);
  const { tokens } = await spentIn(openers['folder']!());
  expect(tokens).toBeGreaterThanOrEqual(paid * 100);
  const more = await work(openers['folder']!());
  const all = await spentIn(openers['folder']!());
  expect((paid + more) * 100).toBeLessThanOrEqual(all.tokens);
  expect(all.tokens).toBeLessThanOrEqual(TOKENS + 1);
});
