/**
 * The artifact store over a backend. Objects are named by their content. Entries of keys and of provenance are created once and stay until their object
 * is found damaged. A key is created after its object and provenance are durable, and `find` checks them, so that its result can be read.
 *
 *   objects/<2>/<sha256>            content, read-only          keys/<2>/<sha256 of key>.json   entry of the key
 *   provenance/<2>/<sha256>.json    entry of the first key that led to this content
 *   folders/<sha256>/               links to the files of folder artifacts, always on a local disk
 *   chunks/, trainings/, budget/    records of a campaign       batches/<setting>/              the batches of a setting
 *   id, format                      the store's id, and which keys it has
 *   bundles/<version>.js            workflow code of open campaigns (workers/versions.ts)
 *   campaigns/<name>/index/         keys that steps of a campaign found or made (campaign-index.ts)
 */
import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { ArtifactRef } from '../domain/artifacts';
import { forEachBounded } from '../domain/concurrency';
import { OutsideFailure } from '../domain/failures';
import type { Backend } from './backend';
import { addKey, isInStep } from './campaign-index';
import { collectGarbage } from './gc';
import { type Entry, formatEntry, keyPath, objectPath, parseEntry, provenancePath } from './entries';
import { sha256 } from './hash';
import { filesIn, isInside } from './objects';
import type { ArtifactStore, Provenance, RecordFiles } from './store';

/** Changes whenever keys change: results of another version would never be found, and would take space. */
const FORMAT = '4';

/** Entries and objects that are older are renewed when a step finds or puts them, since garbage is a day old. */
export const RENEWED_MS = 12 * 3600 * 1000;

const REMEDY = 'run the same `campaign run` again: it makes it again';
const FOLDER_MEDIA_TYPE = 'application/vnd.campaign.folder+json';

const TRANSFERS = 4;
const CONCURRENCY = 32;

const listingSchema = z.object({
  files: z.array(z.object({ path: z.string().refine(isInside), sha256: z.string(), bytes: z.number().int() })),
});
type Listing = z.infer<typeof listingSchema>;

export function openContentStore(backend: Backend): ArtifactStore {
  const { objects } = backend;

  async function checkFormat(): Promise<void> {
    // The id is read first, because the format is written first.
    const [id, format] = [await backend.read('id'), await backend.read('format')];
    if (format === undefined ? id === undefined : format.text.trim() === FORMAT) return;
    const maker = format === undefined ? 'version 0.2' : `another version (format ${format.text}, not ${FORMAT})`;
    const fix = 'name a new one with --home (or CAMPAIGN_STORE), or use that version for it';
    throw new OutsideFailure(
      'BadInput',
      `${backend.address('')} was made by ${maker}, whose results this version can't use; ${fix}`,
    );
  }

  async function id(): Promise<string> {
    await checkFormat();
    const read = async () => (await backend.read('id'))?.text;
    let id = await read();
    if (id === undefined) {
      await backend.create('format', FORMAT);
      await backend.create('id', randomBytes(6).toString('hex'));
      id = await read();
    }
    if (id && /^[0-9a-f]{12}$/.test(id)) return id;
    const queues = 'the task queue control-... of its campaigns in Temporal has it';
    const fix = `write it there again (12 hexadecimal digits: ${queues}), or remove the file where no campaign of it runs`;
    throw new OutsideFailure('BadInput', `${backend.address('id')} does not hold the id of a store; ${fix}`);
  }

  async function find(key: string, { renews = isInStep() } = {}): Promise<ArtifactRef | undefined> {
    const path = keyPath(key);
    const file = await backend.read(path);
    if (file === undefined) return undefined;
    const entry = parseEntry(file.text);
    if (entry?.key === key) {
      const [isThere, earliest] = await Promise.all([isWhole(entry.ref), entryAt(provenancePath(entry.ref.sha256))]);
      if (isThere && earliest?.ref.sha256 !== entry.ref.sha256) await putProvenance(entry);
      if (isThere) {
        // Garbage collection removes old entries that no index names yet, and then their objects.
        const isOld = Date.now() - file.changedMs > RENEWED_MS;
        if (renews && isOld && !(await backend.renew(path, file))) return undefined;
        addKey(key);
        return entry.ref;
      }
    }
    // An entry that another process has written since stays.
    await backend.remove(path, file.version);
    return undefined;
  }

  async function put({ body, mediaType, ...provenance }: Parameters<ArtifactStore['put']>[0]): Promise<ArtifactRef> {
    const sha = sha256(body);
    const ref = { uri: `artifact:${sha}`, sha256: sha, bytes: Buffer.byteLength(body), mediaType };
    return putEntry({ ...only(provenance), ref }, objects.put(body));
  }

  async function putFolder({ folder, files: names, ...provenance }: Parameters<ArtifactStore['putFolder']>[0]) {
    const files: Listing['files'] = [];
    const take = async ([n, path]: [number, string]) => {
      const file = join(folder, path);
      files[n] = { path, sha256: await objects.takeOver(file), bytes: (await stat(file)).size };
    };
    const items = [...(await filesIn(folder, names)).entries()];
    await forEachBounded({ items, concurrency: TRANSFERS, work: take });
    const listing = JSON.stringify({ files } satisfies Listing);
    const sha = sha256(listing);
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const ref = { uri: `artifact-tree:${sha}`, sha256: sha, bytes, mediaType: FOLDER_MEDIA_TYPE };
    return putEntry({ ...only(provenance), ref }, objects.put(listing));
  }

  async function read(ref: ArtifactRef): Promise<Buffer> {
    const body = await objects.read(ref.sha256);
    if (!body) throw await damaged(ref, objectPath(ref.sha256));
    return body;
  }

  async function folderOf(ref: ArtifactRef): Promise<string> {
    if (!isFolder(ref)) throw new Error(`artifact ${ref.uri} is a file, not a folder; use read`);
    const listing = await listingOf(ref);
    if (!listing) throw await damaged(ref, objectPath(ref.sha256));
    const target = backend.folderPath(ref.sha256);
    await forEachBounded({
      items: listing.files,
      concurrency: TRANSFERS,
      work: async ({ path, sha256: sha }) => {
        if (!(await objects.giveOut(sha, join(target, path)))) throw await damaged(ref, objectPath(sha));
      },
    });
    return target;
  }

  async function provenance({ sha256: sha, uri }: ArtifactRef): Promise<Provenance> {
    const entry = await entryAt(provenancePath(sha));
    if (!entry) throw await damaged({ sha256: sha, uri }, provenancePath(sha));
    return only(entry);
  }

  async function resolve(prefix: string): Promise<ArtifactRef | undefined> {
    // This only looks: `find` removes damaged entries for the step that makes the artifact again.
    const byKey = await entryAt(keyPath(prefix));
    if (byKey || !/^[0-9a-f]{2,64}$/.test(prefix)) return byKey?.ref;
    const [file, ...others] = await backend.list(provenancePath(prefix).replace('.json', ''));
    if (!file || others.length > 0) return undefined;
    const entry = await entryAt(file.path);
    if (!entry) throw new OutsideFailure('ArtifactDamaged', `${backend.address(file.path)} is damaged; ${REMEDY}`);
    return entry.ref;
  }

  async function entryAt(path: string): Promise<Entry | undefined> {
    return parseEntry((await backend.read(path))?.text ?? '');
  }

  /** Writes the entry under its key once its content is stored. Returns the reference under the key: this one, or an earlier one. */
  async function putEntry(entry: Entry, content: Promise<unknown>): Promise<ArtifactRef> {
    // If one write fails, the other one ends first.
    for (const end of await Promise.allSettled([content, putProvenance(entry)]))
      if (end.status === 'rejected') throw end.reason;
    for (;;) {
      addKey(entry.key);
      if (await backend.create(keyPath(entry.key), formatEntry(entry))) return entry.ref;
      const earlier = await find(entry.key, { renews: true });
      if (earlier) return earlier;
    }
  }

  async function putProvenance(entry: Entry): Promise<void> {
    const path = provenancePath(entry.ref.sha256);
    while (!(await backend.create(path, formatEntry(entry)))) {
      const file = await backend.read(path);
      if (parseEntry(file?.text ?? '')?.ref.sha256 === entry.ref.sha256) return;
      if (file) await backend.remove(path, file.version);
    }
  }

  async function isWhole(ref: ArtifactRef): Promise<boolean> {
    if (!isFolder(ref)) return objects.has(ref.sha256);
    const listing = await listingOf(ref);
    const there = await Promise.all((listing?.files ?? []).map((file) => objects.has(file.sha256)));
    return listing !== undefined && there.every(Boolean);
  }

  async function listingOf({ sha256: sha }: ArtifactRef): Promise<Listing | undefined> {
    const body = await objects.read(sha);
    if (!body) return undefined;
    try {
      return listingSchema.parse(JSON.parse(body.toString('utf8')));
    } catch (cause) {
      const problem = 'is not the listing of a folder artifact; was a file taken for a folder?';
      throw new Error(`${backend.address(objectPath(sha))} ${problem}`, { cause });
    }
  }

  async function damaged(ref: Pick<ArtifactRef, 'uri' | 'sha256'>, path: string): Promise<OutsideFailure> {
    const file = backend.address(path);
    const what =
      (await backend.changedMs(path)) !== undefined
        ? `is damaged: ${file} does not hold what was put there`
        : `is not in the store ${backend.address('')}: there is no ${file}`;
    const made = await entryAt(provenancePath(ref.sha256));
    const origin = made ? `made by '${made.producer}' under the key '${made.key}'` : 'what made it can not be read';
    return new OutsideFailure('ArtifactDamaged', `artifact ${ref.uri} (${origin}) ${what}; ${REMEDY}`);
  }

  async function partsOf(ref: ArtifactRef): Promise<string[]> {
    // The files of a damaged listing are unknown, and the folder is made again.
    const listing = isFolder(ref) ? await listingOf(ref).catch(() => undefined) : undefined;
    return [ref.sha256, ...(listing?.files ?? []).map((file) => file.sha256)];
  }

  const files: RecordFiles = {
    create: (path, text) => backend.create(checkedPath(path), text),
    read: async (path) => (await backend.read(checkedPath(path)))?.text,
    async list(prefix) {
      const found = (await backend.list(prefix)).filter(({ path, isFolder }) => !isFolder && path.startsWith(prefix));
      return found.map(({ path, changedMs }) => ({ path, changedMs })).sort((a, b) => (a.path < b.path ? -1 : 1));
    },
    remove: async (path) => void (await backend.remove(checkedPath(path))),
    async removeFolder(path) {
      const work = async (file: { path: string }) => void (await backend.remove(file.path));
      await forEachBounded({ items: await files.list(`${checkedPath(path)}/`), concurrency: CONCURRENCY, work });
      await backend.remove(path);
    },
    putFile: (path, file) => backend.putFile(checkedPath(path), file),
    getFile: (path, file) => backend.getFile(checkedPath(path), file),
  };

  return {
    id,
    checkFormat,
    find: (key) => find(key),
    put,
    putFolder,
    read,
    folder: folderOf,
    provenance,
    resolve,
    forget: async (key) => void (await backend.remove(keyPath(key))),
    files,
    gc: (o) => collectGarbage({ backend, files, partsOf, ...o }),
  };
}

function checkedPath(path: string): string {
  if (isInside(path)) return path;
  throw new Error(`${JSON.stringify(path)} is no path in the store; join names with single slashes, without . and ..`);
}

const isFolder = ({ uri }: ArtifactRef): boolean => uri.startsWith('artifact-tree:');

const only = ({ key, producer, inputs }: Provenance): Provenance => ({ key, producer, inputs });
