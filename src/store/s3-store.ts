/**
 * The artifact store in an S3 bucket, for hosts that share no disk. A local cache of bounded size keeps the content that was read or written; every read
 * checks it against its sha256, as in a store on disk.
 */
import { rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Backend, openContentStore, RENEWED_MS, walk } from './content-store';
import { asidePath, ifThere, makeFolder } from './durable-file';
import { objectPath } from './entries';
import { sha256 } from './hash';
import { FileHashes, Objects } from './objects';
import { Bucket, parseS3 } from './s3-bucket';
import type { ArtifactStore } from './store';

const HOUR_MS = 3600 * 1000;
const DAY_MS = 24 * HOUR_MS;
const SMALL_BYTES = 1e6;

interface S3StoreOptions {
  /** `s3://bucket/prefix` */
  url: string;
  /** A local folder, which processes of this host may share. */
  cache: string;
  /** Limit in bytes. Files used within an hour, and folders handed out within a day, are kept even above it. */
  cacheBytes: number;
}

export function openS3Store({ url, cache, cacheBytes }: S3StoreOptions): ArtifactStore {
  const bucket = new Bucket(parseS3(url));
  const hashes = new FileHashes();
  const aside = join(cache, 'aside');
  const store = openContentStore({
    address: bucket.address,
    changedMs: (path) => bucket.changedMs(path),
    async read(path) {
      const stored = await bucket.get(path);
      if (!stored || stored.body.length === 0) return undefined;
      return { text: stored.body.toString(), version: stored.etag, changedMs: stored.changedMs };
    },
    // The tag is a digest of the text, so a renewed text must be another one.
    renew: (path, { text, version }) =>
      bucket.replaceIf(path, text.endsWith('\n') ? text.trimEnd() : `${text}\n`, version),
    create: (path, text) => bucket.create(path, text),
    remove: (path, version) => bucket.remove(path, version),
    async removeOlder(path, thanMs) {
      if (((await bucket.changedMs(path)) ?? Infinity) <= thanMs) await bucket.remove(path);
    },
    list: (prefix = '') => bucket.list(prefix),
    putFile: async (path, file) => bucket.upload(path, file, (await hashes.of(file)) ?? ''),
    async getFile(path, file) {
      await makeFolder(aside);
      const temporary = asidePath(aside);
      try {
        if (!(await bucket.download(path, temporary))) return false;
        await makeFolder(dirname(file));
        await rename(temporary, file);
        return true;
      } finally {
        await rm(temporary, { force: true });
      }
    },
    leftovers: () => Promise.resolve([]),
    objects: cachedObjects(bucket, { cache, cacheBytes }),
    folderPath: (sha) => join(cache, 'folders', sha),
  });
  let probed = false;
  return {
    ...store,
    isBucket: true,
    async id() {
      if (!probed) await bucket.probe();
      probed = true;
      return store.id();
    },
  };
}

function cachedObjects(bucket: Bucket, { cache, cacheBytes }: Omit<S3StoreOptions, 'url'>): Backend['objects'] {
  const aside = join(cache, 'aside');
  const local = new Objects(join(cache, 'objects'), aside);
  /** Times of writing of the objects that this process knows to be in the bucket, and the objects that it found damaged there. */
  const stored = new Map<string, number>();
  const damaged = new Set<string>();
  let added = Infinity;

  async function isStored(sha: string): Promise<boolean> {
    if (damaged.has(sha)) return false;
    const changedMs = stored.has(sha) ? undefined : await bucket.changedMs(objectPath(sha));
    if (changedMs !== undefined) stored.set(sha, changedMs);
    return stored.has(sha);
  }

  /** Returns true if the object is in the bucket and young enough that no sweep removes it within hours. */
  async function isYoung(sha: string, bytes: number): Promise<boolean> {
    // Sending a small object takes no longer than asking for it.
    if (bytes > SMALL_BYTES) await isStored(sha);
    return Date.now() - (stored.get(sha) ?? 0) < RENEWED_MS;
  }

  function notePut(sha: string): void {
    stored.set(sha, Date.now());
    damaged.delete(sha);
  }

  /** Removes old files from the cache after every tenth of its size. */
  async function trim(bytes: number): Promise<void> {
    added += bytes;
    if (added < cacheBytes / 10) return;
    added = 0;
    const files = await filesWithUse(join(cache, 'objects'));
    let over = files.reduce((sum, file) => sum + file.bytes, 0) - cacheBytes;
    // A file with a second name is in a folder that was given out, and programs read it there.
    const old = files
      .filter(({ usedMs, names }) => Date.now() - usedMs > (names > 1 ? DAY_MS : HOUR_MS))
      .sort((a, b) => a.usedMs - b.usedMs);
    const gone = new Set<string>();
    for (const file of old) {
      if (over <= 0) break;
      over -= file.bytes;
      gone.add(file.path);
      await rm(file.path, { force: true });
    }
    if (gone.size > 0)
      for (const { path, names, usedMs } of await filesWithUse(join(cache, 'folders')))
        if (names === 1 && Date.now() - usedMs > DAY_MS) await rm(path, { force: true });
  }

  /** Brings the object into the cache; returns false if it is damaged or missing. */
  async function fetch(sha: string): Promise<boolean> {
    if (await local.has(sha)) return true;
    if (damaged.has(sha)) return false;
    await makeFolder(aside);
    const file = asidePath(aside);
    try {
      if (!(await bucket.download(objectPath(sha), file))) {
        stored.delete(sha);
        return false;
      }
      if ((await local.hash(file)) !== sha) {
        damaged.add(sha);
        stored.delete(sha);
        return false;
      }
      await trim((await stat(file)).size);
      await local.takeOver(file);
      return true;
    } finally {
      await rm(file, { force: true });
    }
  }

  return {
    has: isStored,
    async put(body) {
      const bytes = Buffer.from(body);
      const sha = sha256(bytes);
      if (await isYoung(sha, bytes.length)) return sha;
      await trim(bytes.length);
      await local.put(bytes);
      await bucket.put(objectPath(sha), bytes, sha);
      notePut(sha);
      return sha;
    },
    async takeOver(file) {
      const { size } = await stat(file);
      await trim(size);
      const sha = await local.takeOver(file);
      if (await isYoung(sha, size)) return sha;
      await bucket.upload(objectPath(sha), file, sha);
      notePut(sha);
      return sha;
    },
    async read(sha) {
      return (await fetch(sha)) ? local.read(sha) : undefined;
    },
    async giveOut(sha, to) {
      return (await fetch(sha)) && local.giveOut(sha, to);
    },
  };
}

/** Returns the files below a folder, each with the time when it was last read or linked. */
async function filesWithUse(folder: string) {
  const files = (await walk(folder)).filter(({ isFolder }) => !isFolder);
  return Promise.all(
    files.map(async (file) => {
      const { atimeMs = 0, ctimeMs = 0 } = (await ifThere(stat(file.path))) ?? {};
      return { ...file, usedMs: Math.max(atimeMs, ctimeMs) };
    }),
  );
}
