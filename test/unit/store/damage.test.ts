/** What is damaged in the store's folder is made again, or is an error that names the file: nothing else, and never silence. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import { sha256 } from '../../../src/store/hash';
import type { ArtifactStore } from '../../../src/store/store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { failing } from '../../support/failing';
import { temporaryStore } from '../../support/temporary-store';

let root: string;
let store: ArtifactStore;
temporaryStore((opened, folder) => ([store, root] = [opened, folder]));

const text = (key: string, body: string) => ({ key, body, producer: 'maker', inputs: [], mediaType: 'text/plain' });
const objectAt = (sha: string) => join(root, 'objects', sha.slice(0, 2), sha);
const keyAt = (key: string) => join(root, 'keys', sha256(key).slice(0, 2), `${sha256(key)}.json`);
const provenanceAt = ({ sha256: sha }: ArtifactRef) => join(root, 'provenance', sha.slice(0, 2), `${sha}.json`);
/** What no failure may leave behind. */
const aside = () => readdirSync(join(root, 'aside'));

/** Changes the file in place, later than the file system's clock tick in which it was written. */
async function change(path: string, how: (path: string) => void): Promise<void> {
  await sleep(20);
  how(path);
}
const writable = (path: string): string => {
  chmodSync(path, 0o644);
  return path;
};
const damages: Record<string, (path: string) => void> = {
  'has a flipped bit': (path) => {
    const bytes = readFileSync(path);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(writable(path), bytes);
  },
  'is cut short': (path) => truncateSync(writable(path), statSync(path).size >> 1),
  'is empty': (path) => truncateSync(writable(path), 0),
  'is gone': (path) => rmSync(path),
};
const each = Object.entries(damages);

function writeSource(): string {
  const folder = join(root, 'source');
  mkdirSync(join(folder, 'nested'), { recursive: true });
  writeFileSync(join(folder, 'config.json'), '{"rank":8}');
  writeFileSync(join(folder, 'nested', 'weights'), Buffer.alloc(100_000, 7));
  return folder;
}
const adapter = async (): Promise<ArtifactRef> =>
  store.putFolder({ key: 'adapter', producer: 'trainer', inputs: [], folder: writeSource() });
const weights = sha256(Buffer.alloc(100_000, 7));

describe('an object', () => {
  test.each(each)(
    'that %s is an error with its history; its key is forgotten, and it can be made again',
    async (_, damage) => {
      const ref = await store.put(text('batch/1', 'all the rollouts'));
      await change(objectAt(ref.sha256), damage);
      const failure = expect(store.read(ref)).rejects;
      await failure.toMatchObject({ type: 'ArtifactDamaged', retryable: false });
      for (const words of [ref.uri, objectAt(ref.sha256), "'maker'", "'batch/1'", 'campaign run'])
        await expect(store.read(ref)).rejects.toThrow(words);
      expect(await store.find('batch/1')).toBeUndefined();
      expect(existsSync(keyAt('batch/1'))).toBe(false);
      expect(await store.put(text('batch/1', 'all the rollouts'))).toEqual(ref);
      for (const anyone of [store, openFolderStore(root)]) {
        expect(await anyone.find('batch/1')).toEqual(ref);
        expect((await anyone.read(ref)).toString()).toBe('all the rollouts');
      }
      expect(aside()).toEqual([]);
    },
  );
});

describe('a folder artifact', () => {
  test.each(each)('one of whose objects %s is an error that names it, and can be put anew', async (_, damage) => {
    const ref = await adapter();
    await store.folder(ref);
    for (const sha of [weights, ref.sha256]) {
      await change(objectAt(sha), damage);
      await expect(store.folder(ref)).rejects.toMatchObject(
        failing('ArtifactDamaged', new RegExp(`${ref.uri}.*'trainer'.*'adapter'.*${objectAt(sha)}`)),
      );
      expect(await store.find('adapter')).toBeUndefined();
      rmSync(join(root, 'source'), { recursive: true });
      expect(await adapter()).toEqual(ref);
      expect(await openFolderStore(root).find('adapter')).toEqual(ref);
    }
    expect(sha256(readFileSync(join(await store.folder(ref), 'nested', 'weights')))).toBe(weights);
    expect(aside()).toEqual([]);
  });

  test.each(each)('given out, of which a file %s, is whole again once the artifact is', async (_, damage) => {
    const ref = await adapter();
    const file = join(await store.folder(ref), 'nested', 'weights');
    await change(file, damage);
    rmSync(join(root, 'source'), { recursive: true });
    // Where the file is a link, its object is damaged too; where it is gone, that is all.
    if (!(await store.find('adapter'))) expect(await adapter()).toEqual(ref);
    for (const anyone of [store, openFolderStore(root)]) await anyone.folder(ref);
    expect(sha256(readFileSync(file))).toBe(weights);
    expect(statSync(file).mode & 0o222).toBe(0);
    expect(aside()).toEqual([]);
  });
});

describe('entries', () => {
  test.each(each)('a key file that %s counts as forgotten, and the key can be put again', async (_, damage) => {
    const ref = await store.put(text('k', 'one'));
    await change(keyAt('k'), damage);
    expect(await store.resolve('k')).toBeUndefined();
    expect(await store.find('k')).toBeUndefined();
    expect(existsSync(keyAt('k'))).toBe(false);
    expect(await store.put(text('k', 'one'))).toEqual(ref);
    await change(keyAt('k'), damage);
    expect(await store.put(text('k', 'one'))).toEqual(ref);
    expect(await openFolderStore(root).find('k')).toEqual(ref);
    expect(aside()).toEqual([]);
  });

  test.each(each)('provenance that %s is an error that names it, until its key is found or put', async (_, damage) => {
    const input = await store.put(text('in', 'input'));
    const made = { ...text('k', 'body'), inputs: [input] };
    const ref = await store.put(made);
    for (const heal of [() => store.find('k'), () => store.put(made), () => store.put({ ...made, key: 'again' })]) {
      await change(provenanceAt(ref), damage);
      await expect(store.provenance(ref)).rejects.toMatchObject(failing('ArtifactDamaged', provenanceAt(ref)));
      if (existsSync(provenanceAt(ref)))
        await expect(store.resolve(ref.sha256.slice(0, 12))).rejects.toThrow(provenanceAt(ref));
      expect(await heal()).toEqual(ref);
      expect((await store.provenance(ref)).inputs).toEqual([input]);
    }
    expect(aside()).toEqual([]);
  });
});
