/** What two campaigns use of one store: what either alone uses goes with it, whatever is interrupted, and nothing else. */
import { lstatSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { walk } from '../../../src/artifacts/content-store';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { sha256 } from '../../../src/artifacts/hash';
import type { ArtifactStore } from '../../../src/artifacts/store';
import { isAlone, type NotingStore, notingUsage, removeNotes, removeUsed, usageOf } from '../../../src/artifacts/usage';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { age } from '../../support/aged';
import { closedAfterwards } from '../../support/opened';
import { eachTemporaryFolder } from '../../support/temporary-folder';

jest.setTimeout(2 * 60_000);

let root: string;
let store: ArtifactStore;
eachTemporaryFolder((folder) => {
  root = folder;
  store = openFolderStore(join(root, 'artifacts'));
});
const of = (campaign: string): NotingStore =>
  closedAfterwards(notingUsage(openFolderStore(join(root, 'artifacts')), () => campaign));
const json = (key: string, inputs: ArtifactRef[] = []) => ({
  ...{ key, producer: 'test', inputs, mediaType: 'application/json' },
  body: JSON.stringify(key.repeat(3000)),
});

/** Of a store that both work in: base rollouts and a batch that `b` uses only through what was made of it, and of each an adapter. */
async function worked() {
  const [a, b] = [of('a'), of('b')];
  const base = await a.put(json('rollouts/base'));
  await b.find('rollouts/base');
  const batch = await a.put(json('rollouts/batch', [base]));
  const trained = await a.put(json('training/0123456789abcdef', [batch]));
  await b.find('training/0123456789abcdef');
  const adapters: Record<string, ArtifactRef> = {};
  for (const [name, one] of Object.entries({ a, b })) {
    const folder = join(root, `checkpoint-${name}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'weights'), Buffer.alloc(200_000, name));
    adapters[name] = await one.putFolder({ key: `adapter/${name}`, producer: 'train', inputs: [batch], folder });
    const journal = await one.journal(`rollouts/unfinished-${name}`);
    await journal.append('r', {});
    await journal.close();
  }
  await a.put(json('reply/a'));
  await Promise.all([a.noted(), b.noted()]);
  return { base, batch, trained, adapters };
}

const keys = async () => (await store.contents()).entries.map(({ key }) => key).sort();
const ofB = ['adapter/b', 'rollouts/base', 'rollouts/batch', 'training/0123456789abcdef', 'usage/since'];

test('what a campaign alone uses goes; what another uses, or leads back to, stays whole', async () => {
  const { base, batch, trained, adapters } = await worked();
  await age(join(root, 'artifacts', 'objects'));
  await age(join(root, 'artifacts', 'provenance'));
  await removeUsed(store, 'a');
  await removeNotes(store, 'a');
  expect(await keys()).toEqual(ofB);
  for (const ref of [base, batch, trained]) await openFolderStore(join(root, 'artifacts')).read(ref);
  await store.folder(adapters['b']!);
  expect(await store.resolve(adapters['a']!.sha256)).toBeUndefined();
  expect((await store.records('rollouts/unfinished-a')).size).toBe(0);
  expect((await store.records('rollouts/unfinished-b')).size).toBe(1);
  const { noted, shares } = await usageOf(store);
  expect([...noted.keys()]).toEqual(['b']);
  expect(shares.filter(({ kind }) => kind === 'unreferenced')).toEqual([]);
});

test('interrupted anywhere, nothing of the other is lost, and the same call ends it', async () => {
  await worked();
  for (let step = 0; ; step++) {
    let left = step;
    const stop = <Result>(work: () => Promise<Result>): Promise<Result> => {
      if (left-- > 0) return work();
      throw new Error('killed');
    };
    const killed: ArtifactStore = {
      ...store,
      forget: async (key) => stop(() => store.forget(key)),
      sweep: async (how) => stop(() => store.sweep(how)),
      removeJournal: async (key) => stop(() => store.removeJournal(key)),
    };
    const ended = await removeUsed(killed, 'a').then(
      () => true,
      () => false,
    );
    expect(await keys()).toEqual(expect.arrayContaining(ofB));
    expect((await usageOf(store)).noted.has('a')).toBe(true);
    if (ended) break;
  }
  expect(await keys()).toEqual(ofB);
});

test('shares add up to what is on disk, of which an adapter counts once', async () => {
  const { adapters } = await worked();
  await store.folder(adapters['a']!);
  const { shares } = await usageOf(store);
  const inodes = new Map(
    (await walk(join(root, 'artifacts'))).map(({ path }) => [lstatSync(path).ino, lstatSync(path).blocks * 512]),
  );
  const onDisk = [...inodes.values()].reduce((sum, bytes) => sum + bytes, 0);
  expect(shares.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(onDisk);
  const adapter = shares.filter((share) => share.kind === 'adapter' && isAlone(share, 'a'));
  const bytes = adapter.reduce((sum, share) => sum + share.bytes, 0);
  expect(bytes).toBeGreaterThanOrEqual(200_000);
  expect(bytes).toBeLessThan(300_000);
});

test('entries older than the first note count as used, and so does what nobody has noted', async () => {
  await store.put(json('rollouts/old'));
  const file = sha256('rollouts/old');
  utimesSync(join(root, 'artifacts', 'keys', file.slice(0, 2), `${file}.json`), 1, 1);
  const a = of('a');
  await a.find('rollouts/old');
  await a.put(json('reply/a'));
  await a.noted();
  await store.put(json('reply/by nobody'));
  await removeUsed(store, 'a');
  expect(await keys()).toEqual(['reply/by nobody', 'rollouts/old', 'usage/since']);
});

test('a process that had the notes of a deleted campaign open notes those of the next one of that name', async () => {
  const a = of('a');
  await a.put(json('reply/1'));
  await a.noted();
  await removeUsed(store, 'a');
  await removeNotes(store, 'a');
  await a.put(json('reply/2'));
  await a.noted();
  expect([...((await usageOf(store)).noted.get('a') ?? [])]).toEqual(['reply/2']);
});

test('sweeping removes what no entry refers to, and copies where links would do; a dry run only counts it', async () => {
  const { adapters } = await worked();
  const lost = await store.put(json('reply/lost'));
  await store.forget('reply/lost');
  const folder = await store.folder(adapters['a']!);
  rmSync(join(folder, 'weights'));
  writeFileSync(join(folder, 'weights'), Buffer.alloc(200_000, 'a'));
  expect((await store.sweep({ dryRun: true })).files).toBe(0);
  await age(join(root, 'artifacts'));
  const counted = await store.sweep({ dryRun: true });
  expect(counted).toMatchObject({ files: 3 });
  expect((await store.read(lost)).length).toBe(lost.bytes);
  expect(await store.sweep({ dryRun: false })).toEqual(counted);
  await expect(store.read(lost)).rejects.toMatchObject({ type: 'ArtifactDamaged' });
  expect(await store.find('adapter/a')).toEqual(adapters['a']);
  expect((await store.sweep({ dryRun: true })).files).toBe(0);
});

/** What cannot be read of what was put, with what the second look says of each. */
const lostOf = async (refs: readonly ArtifactRef[]): Promise<string[]> => {
  const fresh = openFolderStore(join(root, 'artifacts'));
  const read = (ref: ArtifactRef) => (ref.uri.startsWith('artifact-tree:') ? fresh.folder(ref) : fresh.read(ref));
  const found = await Promise.allSettled(refs.map(read));
  return found.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
};

/** Sweeps over and over, as `prune` and `delete` of another process do, until the work has ended. */
async function besideSweeps<Result>(work: () => Promise<Result>): Promise<Result> {
  const sweeper = openFolderStore(join(root, 'artifacts'));
  let ended = false;
  const sweeping = (async () => {
    while (!ended) await sweeper.sweep({ dryRun: false });
  })();
  try {
    return await work();
  } finally {
    ended = true;
    await sweeping;
  }
}

test('what is put beside sweeps can be read', async () => {
  const some = Array.from({ length: 150 }, (_, n) => n);
  const refs = await besideSweeps(async () => {
    const put: ArtifactRef[] = [];
    for (const n of some) put.push(await store.put(json(`reply/${n}`)));
    return put;
  });
  expect(await lostOf(refs)).toEqual([]);
});

test('so can what is put once more after it was forgotten, and what is made of old files', async () => {
  const some = Array.from({ length: 60 }, (_, n) => n);
  const folders = some.map((n) => {
    const folder = join(root, 'made', String(n));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'weights'), `weights ${n}`);
    return { key: `adapter/${n}`, producer: 'train', inputs: [], folder };
  });
  for (const n of some) {
    await store.put(json(`reply/${n}`));
    await store.forget(`reply/${n}`);
  }
  await age(root);
  const refs = await besideSweeps(async () => {
    const put: ArtifactRef[] = [];
    for (const n of some) put.push(await store.put(json(`reply/${n}`)), await store.putFolder(folders[n]!));
    await lostOf(put); // what was given out stays too
    return put;
  });
  expect(await lostOf(refs)).toEqual([]);
});
