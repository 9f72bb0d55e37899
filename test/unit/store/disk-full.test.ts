/** A full disk is told as such, leaves nothing half-written, and ends when there is room: on a real file system of one megabyte. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { diskFull } from '../../../src/store/durable-file';
import { openFolderStore, removeLeftovers } from '../../../src/store/open-store';
import type { ArtifactStore } from '../../../src/store/store';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { Chunks } from '../../../src/rollout/chunks';
import { failing } from '../../support/failing';

const mounted = (folder: string, options: string): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]).status === 0;

/** Mounting needs root, and the right to mount. */
const canMount = ((): boolean => {
  const folder = mkdtempSync(join(tmpdir(), 'can-mount-'));
  const can = mounted(folder, 'size=64k');
  if (can) execFileSync('umount', [folder]);
  rmSync(folder, { recursive: true });
  return can;
})();

let outside: string;
let disk: string;
let store: ArtifactStore;
beforeEach(() => {
  outside = mkdtempSync(join(tmpdir(), 'disk-full-'));
  disk = join(outside, 'disk');
  mkdirSync(disk);
});
afterEach(() => {
  if (canMount) spawnSync('umount', ['-l', disk]);
  rmSync(outside, { recursive: true, force: true });
});

/** Takes all but `left` bytes of the disk; returns how to give them back. */
function fill(left: number): () => void {
  const filler = join(disk, 'filler');
  const reserve = join(disk, 'reserve');
  if (left > 0) writeFileSync(reserve, Buffer.alloc(left));
  for (let bytes = 1 << 20; bytes >= 1; bytes >>= 1) {
    try {
      writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' });
    } catch {
      // A smaller piece may still have room.
    }
  }
  rmSync(reserve, { force: true });
  return () => rmSync(filler);
}

const files = (folder: string): string[] => {
  try {
    return readdirSync(join(disk, 'store', folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
};
const big = (key: string, fill_ = 1) => ({
  key,
  body: Buffer.alloc(200_000, fill_),
  producer: 'p',
  inputs: [],
  mediaType: 'x/y',
});
const full = (path: string) => failing('DiskFull', `the disk is full: no room for ${path}`, { retryable: true });

(canMount ? describe : describe.skip)('a disk that is full (needs root, to mount a small one)', () => {
  beforeEach(() => {
    if (!mounted(disk, 'size=1m')) throw new Error(`no tmpfs could be mounted at ${disk}`);
    store = openFolderStore(join(disk, 'store'));
  });

  test('put: nothing half-written stays, and the same call succeeds once there is room', async () => {
    await store.put({ ...big('small'), body: 'x' });
    const free = fill(100_000);
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(store.put(big('k'))).rejects.toMatchObject(full(join(disk, 'store', 'objects')));
    await expect(store.put(big('k'))).rejects.toThrow('(200000 bytes)');
    expect([files('aside'), files('objects').length, files('keys').length]).toEqual([[], 1, 1]);
    expect(await store.find('k')).toBeUndefined();
    free();
    const ref = await store.put(big('k'));
    expect(await store.read(ref)).toEqual(big('k').body);
  });

  test('putFolder, from another file system', async () => {
    const folder = join(outside, 'adapter');
    mkdirSync(folder);
    for (const n of [1, 2]) writeFileSync(join(folder, `${n}`), Buffer.alloc(150_000, n));
    const put = () => store.putFolder({ key: 'adapter', producer: 'p', inputs: [], folder });
    const free = fill(200_000);
    await expect(put()).rejects.toMatchObject(full(join(disk, 'store', 'objects')));
    expect([files('aside'), files('keys')]).toEqual([[], []]);
    free();
    const ref = await put();

    // The folder is links: it takes no room.
    expect(readdirSync(await store.folder(ref)).sort()).toEqual(['1', '2']);
  });

  test('chunks: a rollout that was acknowledged stays, and one that was not is appended again', async () => {
    const path = join('chunks', 'one', 'batch');
    const read = async () => [...(await new Chunks(store, path).read()).keys()];
    const rollout = (key: string, bytes = 10) => ({ key, text: 'x'.repeat(bytes) }) as unknown as ScoredRollout;
    const chunks = new Chunks(store, path);
    await chunks.append(rollout('before'));
    const free = fill(50_000);
    const large = ['a', 'b', 'c', 'd', 'e'].map((key) => rollout(key, 20_000));
    for (const end of await Promise.allSettled(large.map((one) => chunks.append(one))))
      expect(end).toMatchObject({ status: 'rejected', reason: full(join(disk, 'store', path)) });
    expect(await read()).toEqual(['before']);
    expect(files('aside')).toEqual([]);
    free();
    await Promise.all(large.map((one) => chunks.append(one)));
    expect(await read()).toEqual(['before', 'a', 'b', 'c', 'd', 'e']);
  });
});

test('a quota is told as such, any other error stays what it is', () => {
  const withCode = (code: string) => Object.assign(new Error(code), { code });
  expect(diskFull(withCode('EDQUOT'), { path: 'file' })).toMatchObject({ type: 'DiskFull' });
  for (const other of [withCode('EIO'), undefined]) expect(diskFull(other, { path: 'file' })).toBe(other);
});

test('leftovers of dead processes are removed, those of living ones stay', async () => {
  const root = join(outside, 'store');
  expect(await removeLeftovers(root)).toBe(0);
  const aside = join(root, 'aside');
  mkdirSync(aside, { recursive: true });
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  const random = '0123456789abcdef';
  const put = (name: string, hoursAgo = 0) => {
    writeFileSync(join(aside, name), 'x');
    const time = Date.now() / 1000 - hoursAgo * 3600;
    utimesSync(join(aside, name), time, time);
    return name;
  };
  put(`${hostname()}-${dead}-${random}`);
  mkdirSync(join(aside, `${hostname()}-${dead}-${random.replace('0', '1')}`, 'nested'), { recursive: true });
  put('1234-abc', 25);
  put(`elsewhere-${dead}-${random}`, 25);
  const stay = [
    put(`${hostname()}-${process.pid}-${random}`),
    put(`${hostname()}-1-${random}`),
    put(`elsewhere-${dead}-${random.replace('0', '1')}`),
    put('1234-def', 23),
  ];
  expect(await removeLeftovers(root)).toBe(4);
  expect(readdirSync(aside).sort()).toEqual(stay.sort());
});
