/**
 * The index of `campaign view` over 100,000 rollouts: the slowest of its filters, how long making it takes, and reading it again:
 *
 *   node -r ./test/support/register.cjs bench/view.ts [--rollouts 100000]
 *
 * Prints one JSON object.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openFolderStore } from '../src/store/open-store';
import { sha256 } from '../src/store/hash';
import { inSteps } from '../test/support/stored-keys';
import { ROLLOUTS_MEDIA_TYPE } from '../src/rollout/read';
import { pageOf } from '../src/view/filter';
import { createIndex } from '../src/view/rollouts';

const { values } = parseArgs({ options: { rollouts: { type: 'string', default: '100000' } } });
const rollouts = Number(values.rollouts);
const BATCH = 1000;
const home = mkdtempSync(join(tmpdir(), 'bench-view-'));

const rollout = (n: number) => ({
  ...{ status: 'scored', key: sha256(String(n)), task: `task-${n % 997}`, attempt: n % 16 },
  messages: Array.from({ length: 6 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: `message ${at} of conversation ${n}: ${'what is said of an order and its items '.repeat(4)}`,
  })),
  ...{ stopReason: n % 7 === 0 ? 'max_steps' : 'user_stop', reward: n % 3 === 0 ? 1 : 0, breakdown: {}, rows: [] },
  ...{ steps: 5, usage: { promptTokens: 1, completionTokens: 1 }, seconds: 1 },
});

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return Math.round(performance.now() - begun);
}

async function main(): Promise<void> {
  const store = inSteps(openFolderStore(join(home, 'artifacts')), 'bench');
  for (let first = 0; first < rollouts; first += BATCH) {
    const lines = Array.from({ length: BATCH }, (_, n) => `${JSON.stringify(rollout(first + n))}\n`);
    const title = `arm-${(first / BATCH) % 7}: training step ${first / BATCH + 1}`;
    const batch = { key: `rollouts/${first}`, producer: `rollouts: ${title}`, inputs: [], body: lines.join('') };
    await store.put({ ...batch, mediaType: ROLLOUTS_MEDIA_TYPE });
  }
  const open = () => createIndex({ store, campaign: 'bench', file: join(home, 'bench', 'rollouts.jsonl') });
  const makeMs = await timed(() => open().refresh());
  const index = open();
  const readMs = await timed(() => index.refresh());
  const filters = [
    { arm: 'arm-3', outcome: 'solved' },
    { task: 'task-7', page: '1' },
    { stop: 'max_steps', attempt: '3', page: '20' },
    { text: 'conversation 99999' },
    { text: 'nobody says this' },
    {},
  ];
  const firstMs = await timed(() => pageOf(index, {}));
  const filterMs: number[] = [];
  for (const asked of filters) filterMs.push(await timed(() => pageOf(index, asked)));
  const saidMs = await timed(() => pageOf(index, { said: 'conversation 99999', arm: 'arm-3' }));
  const line = { bench: 'view', slowestMs: Math.max(...filterMs), wantedMs: 300, rollouts };
  console.log(JSON.stringify({ ...line, filterMs, firstMs, saidMs, makeMs, readMs }));
}

void main().finally(() => rmSync(home, { recursive: true, force: true }));
