/** The contract of every store, with its files in a folder, and in a bucket that is all that its hosts share. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DeleteObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { setTimeout as sleep } from 'node:timers/promises';
import { indexed, keysOf, removeCampaign } from '../../src/store/campaign-index';
import { openFolderStore } from '../../src/store/open-store';
import { sha256 } from '../../src/store/hash';
import { openS3Store } from '../../src/store/s3-store';
import { Sequence } from '../../src/store/sequence';
import type { ArtifactStore } from '../../src/store/store';
import { failing } from '../support/failing';
import { startLoopback } from '../support/loopback';
import { bucket, type S3Server, s3ServerForTests } from '../support/s3-server';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { forEachBounded } from '../../src/domain/concurrency';
import { storedKeys } from '../support/stored-keys';
import { eachTemporaryFolder } from '../support/temporary-folder';

let server: S3Server;
let root: string;
let prefix: string;
let hosts = 0;
s3ServerForTests((started) => (server = started));
eachTemporaryFolder((made) => (root = made));
beforeEach(() => void (prefix = `test-${hosts++}`));

const text = (key: string, body: string) => ({ key, body, producer: 'test', inputs: [], mediaType: 'text/plain' });
const inDays = (days: number): number => Date.now() + days * 24 * 3600 * 1000;
const url = () => `s3://${bucket}/${prefix}`;
const openS3 = (cacheBytes = 1e9) => openS3Store({ url: url(), cache: join(root, `host-${hosts++}`), cacheBytes });
const openers: Record<string, () => ArtifactStore> = {
  folder: () => openFolderStore(join(root, 'store')),
  // Each on a host of its own.
  s3: () => openS3(),
};

/** Does the work by a clock that is so many hours ahead. */
async function later<Result>(hours: number, work: () => Promise<Result>): Promise<Result> {
  jest.useFakeTimers({
    now: Date.now() + hours * 3600 * 1000,
    doNotFake: ['setTimeout', 'setImmediate', 'nextTick', 'queueMicrotask', 'performance'],
  });
  try {
    return await work();
  } finally {
    jest.useRealTimers();
  }
}

describe.each(Object.keys(openers))('a store in a %s', (kind) => {
  const open = openers[kind]!;

  test('has an id that is made once, even by simultaneous requests', async () => {
    const ids = new Set(await Promise.all(Array.from({ length: 6 }, () => open().id())));
    expect([...ids]).toEqual([expect.stringMatching(/^[0-9a-f]{12}$/)]);
  });

  test('is refused where another version has made it, which left no format or another one', async () => {
    const old = join(root, 'store');
    const write = (path: string, body: string) =>
      kind === 'folder'
        ? (mkdirSync(old, { recursive: true }), writeFileSync(join(old, path), body))
        : server.client.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}/${path}`, Body: body }));
    await expect(open().checkFormat()).resolves.toBeUndefined();
    await write('id', '0123456789ab');
    for (const format of [undefined, '3']) {
      if (format) await write('format', format);
      for (const refused of [open().checkFormat(), open().id()])
        await expect(refused).rejects.toMatchObject({ type: 'BadInput', retryable: false });
    }
    await write('format', '4');
    expect(await open().id()).toBe('0123456789ab');
    await write('id', 'another text');
    await expect(open().id()).rejects.toMatchObject({ type: 'BadInput' });
  });

  test('puts, finds, reads; the first artifact under a key stays', async () => {
    const store = open();
    const first = await store.put(text('k', 'one'));
    expect(await store.put(text('k', 'two'))).toEqual(first);
    expect(first).toEqual({
      uri: `artifact:${sha256('one')}`,
      sha256: sha256('one'),
      bytes: 3,
      mediaType: 'text/plain',
    });
    expect(await open().find('k')).toEqual(first);
    expect((await store.read(first)).toString()).toBe('one');
    expect(await store.find('other')).toBeUndefined();
  });

  test('of concurrent writers one wins and all get its reference', async () => {
    const stores = Array.from({ length: 8 }, () => open());
    const refs = await Promise.all(stores.map((store, n) => store.put(text('k', `body ${n}`))));
    expect(new Set(refs.map((ref) => ref.sha256)).size).toBe(1);
    expect(await stores[0]!.find('k')).toEqual(refs[0]);
  });

  test('knows the inputs of an artifact and resolves prefixes and keys', async () => {
    const store = open();
    const input = await store.put(text('in', 'input'));
    const ref = await store.put({ ...text('out', 'output'), inputs: [input] });
    expect(await store.provenance(ref)).toEqual({ key: 'out', producer: 'test', inputs: [input] });
    expect(await store.resolve(ref.sha256.slice(0, 10))).toEqual(ref);
    expect(await store.resolve('in')).toEqual(input);
    expect(await store.resolve('ffffffffff')).toBeUndefined();
    expect(await store.resolve('../keys')).toBeUndefined();
  });

  test('stores folders and materialises them once, also from two processes at once', async () => {
    const source = join(root, 'source');
    mkdirSync(join(source, 'nested'), { recursive: true });
    writeFileSync(join(source, 'config.json'), '{}');
    writeFileSync(join(source, 'empty'), '');
    writeFileSync(join(source, 'nested', 'weights'), Buffer.from([0, 255, 10]));
    const stores = [open(), open()];
    const ref = await stores[0]!.putFolder({ key: 'adapter', producer: 'train', inputs: [], folder: source });
    expect(ref.uri).toBe(`artifact-tree:${ref.sha256}`);
    expect(ref.bytes).toBe(5);
    expect(await open().find('adapter')).toEqual(ref);
    expect(readFileSync(join(await open().folder(ref), 'empty'))).toHaveLength(0);
    const folders = await Promise.all([...stores, ...stores].map((store) => store.folder(ref)));
    expect(new Set(folders).size).toBe(kind === 'folder' ? 1 : 2);
    expect(readFileSync(join(folders[0]!, 'nested', 'weights'))).toEqual(Buffer.from([0, 255, 10]));
    expect(statSync(join(folders[0]!, 'config.json')).mode & 0o222).toBe(0);
    await expect(stores[0]!.folder(await stores[0]!.put(text('file', 'x')))).rejects.toThrow('use read');
    symlinkSync('/', join(source, 'link'));
    await expect(stores[0]!.putFolder({ key: 'b', producer: 'p', inputs: [], folder: source })).rejects.toThrow('link');
  });

  test('stores only the named files of a folder', async () => {
    const source = join(root, 'source');
    mkdirSync(join(source, 'nested'), { recursive: true });
    for (const file of ['b', 'nested/a', 'optimizer']) writeFileSync(join(source, file), file);
    symlinkSync('/', join(source, 'link'));
    const store = open();
    const given = { producer: 'p', inputs: [], folder: source };
    const ref = await store.putFolder({ key: 'some', ...given, files: ['nested/a', 'b', 'b'] });
    expect(readdirSync(await store.folder(ref), { recursive: true }).sort()).toEqual(['b', 'nested', 'nested/a']);
    expect(await store.putFolder({ key: 'order', ...given, files: ['b', 'nested/a'] })).toEqual(ref);

    const put = (file: string) => store.putFolder({ key: 'none', ...given, files: ['b', file] });
    await expect(put('c')).rejects.toThrow(`${source} has no file 'c'`);
    await expect(put('../source/b')).rejects.toThrow("'../source/b' is not inside");
    await expect(put('link')).rejects.toThrow('not a plain file');
    await expect(put('nested')).rejects.toThrow('not a plain file');
    expect(await store.find('none')).toBeUndefined();
  });

  test('creates each record file once, even with simultaneous writers', async () => {
    const writers = Array.from({ length: 8 }, () => open().files);
    const created = await Promise.all(writers.map((files, n) => files.create('budget/one/0', `writer ${n}`)));
    expect(created.filter(Boolean)).toHaveLength(1);
    expect(await open().files.read('budget/one/0')).toBe(`writer ${created.indexOf(true)}`);
    expect(await open().files.read('budget/one/1')).toBeUndefined();
  });

  test('lists record files by prefix and removes them', async () => {
    const { files } = open();
    for (const path of ['budget/one/10', 'budget/one/2', 'budget/one2/0']) await files.create(path, path);
    const listed = await files.list('budget/one/');
    expect(listed.map(({ path }) => path)).toEqual(['budget/one/10', 'budget/one/2']);
    for (const { changedMs } of listed) expect(Math.abs(Date.now() - changedMs)).toBeLessThan(60_000);
    expect(await files.list('budget/one/2')).toHaveLength(1);
    expect(await files.list('chunks/')).toEqual([]);
    await files.remove('budget/one/10');
    await files.remove('budget/one/10');
    expect((await open().files.list('budget/')).map(({ path }) => path)).toEqual(['budget/one/2', 'budget/one2/0']);
    expect(await files.create('budget/one/10', 'again')).toBe(true);
    expect(() => files.create('budget/../keys/x', 'x')).toThrow('no path in the store');
  });

  test('removes the record files below a path', async () => {
    const { files } = open();
    for (const path of ['chunks/one/1', 'chunks/one/2/3', 'chunks/one2']) await files.create(path, path);
    await files.removeFolder('chunks/one');
    await files.removeFolder('chunks/none');
    expect((await open().files.list('chunks/')).map(({ path }) => path)).toEqual(['chunks/one2']);
  });

  test('keeps local files under paths, which are read-only from then on, and gives them to any host', async () => {
    const file = join(root, 'optimizer.pt');
    const large = Buffer.alloc(300_000, 'state ');
    writeFileSync(file, large);
    await open().files.putFile('states/1/checkpoint-1/optimizer.pt', file);
    const to = join(root, 'elsewhere', 'nested', 'optimizer.pt');
    const { files } = open();
    expect(await files.getFile('states/1/checkpoint-1/optimizer.pt', to)).toBe(true);
    expect(readFileSync(to)).toEqual(large);
    rmSync(file);
    await files.removeFolder('states/1');
    expect(readFileSync(to)).toEqual(large);
    expect(await open().files.getFile('states/1/checkpoint-1/optimizer.pt', to)).toBe(false);
  });

  test('writers of one sequence see the same texts in the same order, and each number once', async () => {
    const writers = Array.from({ length: 4 }, () => new Sequence(open().files, 'line'));
    const seen = await Promise.all(
      writers.map(async (sequence, writer) => {
        const texts: (string | undefined)[] = [];
        for (let n = 0; n < 5;) {
          const own = `${n} of ${writer}`;
          const added = await sequence.add(own);
          texts.push(added.isOwn ? own : added.text);
          if (added.isOwn) n += 1;
        }
        return texts;
      }),
    );
    const all = await new Sequence(open().files, 'line').read();
    expect(new Set(all).size).toBe(20);
    for (const texts of seen) expect(all.slice(0, texts.length)).toEqual(texts);
    const late = new Sequence(open().files, 'line');
    expect(await late.read()).toEqual(all);
    expect(await late.read()).toEqual([]);
    expect(await late.add('last')).toEqual({ isOwn: true });
    expect(await writers[0]!.read()).toEqual([...all.slice(seen[0]!.length), 'last']);
  });

  test('gc keeps indexed artifacts and their sources, and removes the rest once it is a day old', async () => {
    const store = open();
    const base = await store.put(text('base', 'base'));
    await indexed(store.files, 'one', () => store.put({ ...text('kept', 'kept'), inputs: [base] }));
    const folder = join(root, 'adapter');
    mkdirSync(folder);
    writeFileSync(join(folder, 'weights'), 'weights');
    await indexed(store.files, 'one', () => store.putFolder({ key: 'a', producer: 'p', inputs: [], folder }));
    await store.put(text('gone', 'gone'));
    await store.files.create('budget/one/1', 'spent');
    const keys = ['a', 'base', 'gone', 'kept'];

    expect(await open().gc({ dryRun: false })).toEqual({ files: 0, bytes: 0 });
    expect(await storedKeys(open())).toEqual(keys);
    const counted = await open().gc({ dryRun: true, nowMs: inDays(30) });
    // An entry, its provenance and its object.
    expect(counted.files).toBe(3);
    expect(await storedKeys(open())).toEqual(keys);
    expect(await open().gc({ dryRun: false, nowMs: inDays(30) })).toEqual(counted);
    expect(await storedKeys(open())).toEqual(['a', 'base', 'kept']);
    for (const key of ['base', 'kept']) await open().read((await open().find(key))!);
    await open().folder((await open().find('a'))!);
    expect(await store.files.read('budget/one/1')).toBe('spent');

    await removeCampaign(store.files, 'one');
    await open().gc({ dryRun: false, nowMs: inDays(30) });
    expect(await storedKeys(open())).toEqual([]);
    expect(await store.files.list('objects/')).toEqual([]);
    expect(await store.files.read('budget/one/1')).toBeUndefined();
  });

  test('a step that was cancelled, and one that still runs, have their keys in the index', async () => {
    const store = open();
    const failed = indexed(store.files, 'one', async () => {
      await store.put(text('reply', 'paid'));
      throw new Error('cancelled');
    });
    await expect(failed).rejects.toThrow('cancelled');
    expect(await keysOf(store.files, 'one')).toEqual(['reply']);
    await store.put(text('found', 'x'));
    jest.useFakeTimers({
      doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'setTimeout', 'Date'],
    });
    try {
      await indexed(store.files, 'two', async () => {
        await store.find('found');
        jest.advanceTimersByTime(10_000);
        for (let keys: string[] = []; keys.length === 0; keys = await keysOf(store.files, 'two')) await sleep(5);
      });
    } finally {
      jest.useRealTimers();
    }
    expect(await keysOf(store.files)).toEqual(['reply', 'found']);
  });

  // The S3 server answers one request at a time.
  const writes = kind === 's3' ? 150 : 500;
  test(`loses nothing of ${writes} writes when gc runs beside them`, async () => {
    const [store, collector] = [open(), open()];
    let ended = false;
    const collecting = (async () => {
      while (!ended) await collector.gc({ dryRun: false });
    })();
    const refs: ArtifactRef[] = [];
    const items = Array.from({ length: writes }, (_, n) => n);
    const work = async (n: number) => void refs.push(await store.put(text(`key ${n}`, `body ${n}`)));
    await forEachBounded({ items, concurrency: 16, work });
    ended = true;
    await collecting;
    const read = open();
    await forEachBounded({ items: refs, concurrency: 16, work: async (ref) => void (await read.read(ref)) });
    expect(await storedKeys(read)).toHaveLength(writes);
  }, 600_000);

  test('an artifact that is put again is not taken for the removed one', async () => {
    const store = open();
    const ref = await store.put(text('k', 'one'));
    await open().gc({ dryRun: false, nowMs: inDays(30) });
    expect(await open().find('k')).toBeUndefined();
    expect(await later(25, () => store.put(text('k', 'one')))).toEqual(ref);
    expect((await open().read(ref)).toString()).toBe('one');
  });
});

describe('a store in a bucket', () => {
  const put = (path: string, body: string) =>
    server.client.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}/${path}`, Body: body }));
  const paths = async (begin = '') => {
    const { Contents: files = [] } = await server.client.send(
      new ListObjectsV2Command({ Bucket: bucket, Prefix: `${prefix}/${begin}` }),
    );
    return files.map(({ Key: key }) => key!.slice(prefix.length + 1));
  };
  const objectPath = (sha: string) => `objects/${sha.slice(0, 2)}/${sha}`;

  test('an object that is damaged is an error that names it; its key is forgotten, and it is made again', async () => {
    const ref = await openS3().put(text('batch/1', 'all the rollouts'));
    await put(objectPath(ref.sha256), 'all the rollovts');
    const store = openS3();
    await expect(store.read(ref)).rejects.toMatchObject(
      failing('ArtifactDamaged', `${url()}/${objectPath(ref.sha256)} does not hold what was put there`),
    );
    expect(await store.find('batch/1')).toBeUndefined();
    expect(await store.put(text('batch/1', 'all the rollouts'))).toEqual(ref);
    const other = openS3();
    expect(await other.find('batch/1')).toEqual(ref);
    expect((await other.read(ref)).toString()).toBe('all the rollouts');
    await server.client.send(new DeleteObjectCommand({ Bucket: bucket, Key: `${prefix}/${objectPath(ref.sha256)}` }));
    expect(await openS3().find('batch/1')).toBeUndefined();
  });

  test('an entry that is damaged counts as forgotten', async () => {
    const ref = await openS3().put(text('k', 'one'));
    const [path] = await paths('keys/');
    await put(path!, '{"digest":"');
    expect(await openS3().find('k')).toBeUndefined();
    expect(await openS3().find('k')).toBeUndefined();
    expect(await openS3().put(text('k', 'one'))).toEqual(ref);
    expect(await openS3().find('k')).toEqual(ref);
  });

  test('a large file goes up in parts, and comes down whole on another host', async () => {
    const folder = join(root, 'adapter');
    mkdirSync(folder);
    const weights = Buffer.alloc(80 * 1024 ** 2, 'weights ');
    writeFileSync(join(folder, 'weights'), weights);
    const ref = await openS3().putFolder({ key: 'adapter', producer: 'train', inputs: [], folder });
    const there = readFileSync(join(await openS3().folder(ref), 'weights'));
    expect(sha256(there)).toBe(sha256(weights));
  });

  test('the cache stays within its limit, except for artifacts that were just used', async () => {
    const store = openS3(1_000_000);
    const cache = join(root, `host-${hosts - 1}`, 'objects');
    const cached = () => readdirSync(cache, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const refs: ArtifactRef[] = [];
    for (let n = 0; n < 6; n++) refs.push(await store.put(text(`k${n}`, String(n).repeat(400_000))));
    expect(cached().length).toBe(6);
    await later(2, async () => {
      await store.put(text('last', 'x'.repeat(400_000)));
      expect(cached().length).toBeLessThanOrEqual(3);
      for (const [n, ref] of refs.entries()) expect((await store.read(ref)).toString()).toBe(String(n).repeat(400_000));
    });
  });

  test('a folder that was given out stays whole for a day', async () => {
    const store = openS3(1_000_000);
    const source = join(root, 'adapter');
    mkdirSync(source);
    writeFileSync(join(source, 'weights'), 'w'.repeat(900_000));
    const folder = await store.folder(
      await store.putFolder({ key: 'adapter', producer: 'train', inputs: [], folder: source }),
    );
    const fill = (n: number) => store.put(text(`k${n}`, String(n).repeat(400_000)));
    await later(2, () => fill(1));
    expect(readFileSync(join(folder, 'weights'))).toHaveLength(900_000);
    rmSync(source, { recursive: true });
    await later(26, async () => void (await fill(2), await fill(3)));
    expect(readdirSync(folder)).toEqual([]);
  });

  test('an unavailable server is a transient failure', async () => {
    const store = openS3();
    const ref = await store.put(text('k', 'one'));
    await server.kill();
    const away = expect(openS3().find('k')).rejects;
    await away.toMatchObject({ type: 'StoreUnavailable', retryable: true });
    await server.start();
    expect(await openS3().find('k')).toEqual(ref);
  });

  test('a server that takes no notice of conditions is refused', async () => {
    const heedless = await startLoopback((request, response) => {
      request.resume().on('end', () => response.writeHead(200, { etag: '"1"' }).end());
    });
    process.env['AWS_ENDPOINT_URL_S3'] = heedless.url;
    try {
      await expect(openS3().id()).rejects.toMatchObject(
        failing('BadInput', /s3:.*ignores conditions of writes; take a server/),
      );
    } finally {
      Object.assign(process.env, server.env);
      await heedless.close();
    }
  });
});
