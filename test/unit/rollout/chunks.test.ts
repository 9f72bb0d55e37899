/** The chunks of a batch that several workers play, and what of them is left after kills, damage and removal. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactStore } from '../../../src/store/store';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { Chunks } from '../../../src/rollout/chunks';
import { withFiles } from '../../support/counting-batch';
import { randomOf } from '../../support/faults-random';
import { scoredRollout } from '../../support/scored-rollout';
import { temporaryStore } from '../../support/temporary-store';

const PATH = 'chunks/one/batch';
let root: string;
let store: ArtifactStore;
temporaryStore((made, folder) => ([store, root] = [made, folder]));

const rollout = (n: number, reward = 0): ScoredRollout => scoredRollout({ name: `r${n}`, task: `t${n}`, reward });
const chunkFiles = () => readdirSync(join(root, PATH)).sort();
const stored = async () => [...(await new Chunks(openFolderStore(root), PATH).read()).values()];

test.each(Array.from({ length: 6 }, (_, n) => n))(
  'two workers whose writes are delayed agree on every rollout (%i)',
  async (seed) => {
    const random = randomOf('chunks', seed);
    const slow = withFiles(openFolderStore(root), {
      async create(path, text) {
        await sleep(random.between(0, 8));
        const isOwn = await store.files.create(path, text);
        await sleep(random.between(0, 8));
        return isOwn;
      },
    });
    const workers = [slow, slow].map((one) => new Chunks(one, PATH));
    const counted = await Promise.all(
      workers.map((chunks, worker) =>
        Promise.all(
          Array.from({ length: 12 }, async (_, n) => {
            await sleep(random.between(0, 30));
            return chunks.append(rollout(n, worker));
          }),
        ),
      ),
    );
    expect(counted[0]).toEqual(counted[1]);
    const byTask = new Map((await stored()).map((one) => [one.task, one]));
    expect(byTask.size).toBe(12);
    expect(counted[0]!.map(({ task }) => byTask.get(task))).toEqual(counted[0]);
  },
);

test('a damaged chunk is passed over, and what it held is written again', async () => {
  const chunks = new Chunks(store, PATH);
  for (const n of [0, 1, 2]) await chunks.append(rollout(n));
  const file = join(root, PATH, chunkFiles()[1]!);
  writeFileSync(file, readFileSync(file, 'utf8').replace('"t1"', '"t7"'));
  expect((await stored()).map(({ task }) => task)).toEqual(['t0', 't2']);
  const again = new Chunks(openFolderStore(root), PATH);
  await again.read();
  await again.append(rollout(1, 1));
  expect((await stored()).map(({ task, reward }) => [task, reward])).toEqual([['t0', 0], ['t2', 0], ['t1', 1]]); // prettier-ignore
});

test('chunks that another worker removes, as the batch is finished, are no failure', async () => {
  const chunks = new Chunks(store, PATH);
  await chunks.append(rollout(0));
  const writing = (async () => {
    for (let n = 1; n < 40; n++) expect(await chunks.append(rollout(n))).toEqual(rollout(n));
  })();
  let isWritten = false;
  writing.finally(() => (isWritten = true)).catch(() => undefined);
  while (!isWritten) {
    await openFolderStore(root).files.removeFolder(PATH);
    await sleep(50);
  }
  await writing;
});

test('a rollout that was acknowledged survives kill -9 of its process', async () => {
  const source = (path: string) => JSON.stringify(resolve(__dirname, '../../../src', path));
  const program = `
    const { openFolderStore } = require(${source('store/open-store.ts')});
    const { Chunks } = require(${source('rollout/chunks.ts')});
    const chunks = new Chunks(openFolderStore(process.argv[1]), ${JSON.stringify(PATH)});
    for (let n = 0; n < 1e5; n++)
      setTimeout(() => chunks.append({ key: String(n), text: 'x'.repeat(500) }).then(() => console.log(n)), n / 10);`;
  const hook = resolve(__dirname, '../../support/register.cjs');
  const writer = spawn(process.execPath, ['-r', hook, '-e', program, root], { stdio: ['ignore', 'pipe', 'inherit'] });
  let acknowledged = '';
  writer.stdout.on('data', (text: Buffer) => {
    acknowledged += text.toString();
    if (acknowledged.length > 2000) writer.kill('SIGKILL');
  });
  await once(writer, 'close');
  const seen = acknowledged.split('\n').slice(0, -1);
  expect(seen.length).toBeGreaterThan(100);
  const keys = new Set((await stored()).map(({ key }) => key));
  expect(seen.filter((key) => !keys.has(key))).toEqual([]);
});
