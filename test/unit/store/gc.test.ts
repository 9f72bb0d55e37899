/** Garbage collection beside writers that find or make again what is a month old, in a folder whose files are aged. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { indexed } from '../../../src/store/campaign-index';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactStore } from '../../../src/store/store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { age } from '../../support/aged';
import { storedKeys } from '../../support/stored-keys';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
let store: ArtifactStore;
const open = () => openFolderStore(join(root, 'artifacts'));
eachTemporaryFolder((folder) => {
  root = folder;
  store = open();
});

const reply = (n: number | string) => ({
  ...{ key: `reply/${n}`, producer: 'test', inputs: [], mediaType: 'text/plain' },
  body: `body ${n} `.repeat(300),
});

/** Collects again and again, as another process does, until the work has ended. */
async function besideGc<Result>(work: () => Promise<Result>): Promise<Result> {
  const collector = open();
  let ended = false;
  const collecting = (async () => {
    while (!ended) await collector.gc({ dryRun: false });
  })();
  try {
    return await work();
  } finally {
    ended = true;
    await collecting;
  }
}

const lostOf = async (refs: readonly ArtifactRef[]): Promise<string[]> => {
  const fresh = open();
  const read = (ref: ArtifactRef) => (ref.uri.startsWith('artifact-tree:') ? fresh.folder(ref) : fresh.read(ref));
  const found = await Promise.allSettled(refs.map(read));
  return found.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
};

test('what a step finds or puts of old, unnamed entries can be read, and keeps its key', async () => {
  const some = Array.from({ length: 80 }, (_, n) => n);
  const folders = some.slice(0, 20).map((n) => {
    const folder = join(root, 'made', String(n));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'weights'), `weights ${n}`);
    return { key: `adapter/${n}`, producer: 'train', inputs: [], folder };
  });
  for (const n of some) await store.put(reply(n));
  await age(root);
  const refs = await besideGc(() =>
    indexed(store.files, 'one', async () => {
      const used: ArtifactRef[] = [];
      for (const n of some) {
        const found = n % 2 === 0 ? await store.find(reply(n).key) : undefined;
        used.push(found ?? (await store.put(reply(n))));
        if (folders[n]) used.push(await store.putFolder(folders[n]));
      }
      return used;
    }),
  );
  expect(await lostOf(refs)).toEqual([]);
  expect(await storedKeys(store)).toHaveLength(some.length + folders.length);
});

test('copies of given out folders go where links would do, and a dry run counts what goes', async () => {
  const folder = join(root, 'made');
  mkdirSync(folder);
  writeFileSync(join(folder, 'weights'), 'weights');
  const adapter = await indexed(store.files, 'one', () =>
    store.putFolder({ key: 'adapter', producer: 'train', inputs: [], folder }),
  );
  const given = await store.folder(adapter);
  rmSync(join(given, 'weights'));
  writeFileSync(join(given, 'weights'), 'weights');
  const lost = await store.put(reply('lost'));
  await age(join(root, 'artifacts'));
  const counted = await store.gc({ dryRun: true });
  // Entry, provenance and object of the reply, and the copy.
  expect(counted.files).toBe(4);
  expect(await store.gc({ dryRun: false })).toEqual(counted);
  await expect(store.read(lost)).rejects.toMatchObject({ type: 'ArtifactDamaged' });
  expect(await lostOf([adapter])).toEqual([]);
  expect((await store.gc({ dryRun: true })).files).toBe(0);
});
