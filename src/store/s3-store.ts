/**
 * The artifact store in an S3 bucket, for hosts that share no disk. A local cache of bounded size keeps the content that was read or written; every read
 * checks it against its sha256, as in a store on disk.
 */
import { createReadStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { type Backend, walk } from './backend';
import { openContentStore, RENEWED_MS } from './content-store';
import { asidePath, ifThere, makeFolder } from './durable-file';
import { objectPath } from './entries';
import { Objects } from './objects';
import { type Bucket, openBucket, parseS3 } from './s3-bucket';
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
  const bucket = openBucket(parseS3(url));
  const aside = join(cache, 'aside');
  const store = openContentStore({
    ...bucket,
    putFile: (path, file) => bucket.put(path, createReadStream(file)),
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

  async function send(sha: string, bytes: number, body: () => Uint8Array | Readable): Promise<string> {
    // Sending a small object takes no longer than asking for it.
    if (bytes > SMALL_BYTES) await isStored(sha);
    if (Date.now() - (stored.get(sha) ?? 0) < RENEWED_MS) return sha;
    await bucket.put(objectPath(sha), body());
    stored.set(sha, Date.now());
    damaged.delete(sha);
    return sha;
  }

  /** Removes the least recently used files of the cache after every tenth of its size. */
  async function trim(bytes: number): Promise<void> {
    added += bytes;
    if (added < cacheBytes / 10) return;
    added = 0;
    const files = await filesWithUse(cache);
    let over = files.reduce((sum, file) => sum + file.bytes / file.names, 0) - cacheBytes;
    let lastMs = 0;
    for (const { path, bytes, names, usedMs } of files.sort((a, b) => a.usedMs - b.usedMs)) {
      // The names of one file, which have one time, are removed together.
      if (over <= 0 && usedMs !== lastMs) return;
      // A file with a second name is in a folder that was given out, and programs read it there.
      if (Date.now() - usedMs <= (names > 1 ? DAY_MS : HOUR_MS)) continue;
      over -= bytes / names;
      lastMs = usedMs;
      await rm(path, { force: true });
    }
  }

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
      await trim(bytes.length);
      return send(await local.put(bytes), bytes.length, () => bytes);
    },
    async takeOver(file) {
      const { size } = await stat(file);
      await trim(size);
      return send(await local.takeOver(file), size, () => createReadStream(file));
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
