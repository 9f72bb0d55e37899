/**
 * The artifact store in a folder. `objects` are named by their content; `keys` and `provenance` are created once and stay until what they name
 * is found damaged; a key appears only after its object and provenance are durable, and `find` checks them (one read a process), so whatever
 * it returns can be read.
 *
 *   objects/<2>/<sha256>            content, read-only          keys/<2>/<sha256 of key>.json   entry of the key
 *   provenance/<2>/<sha256>.json    entry of the first key that led to this content
 *   folders/<sha256>/               links to the files of folder artifacts
 *   journals/<sha256 of key>.jsonl  unfinished work             aside/                          what is being written
 *   id                              the store's id
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join, resolve as absolutePath } from 'node:path';
import type { ArtifactRef } from '../domain/artifacts';
import { OutsideFailure } from '../domain/failures';
import { createFile, ifThere, leftoversIn, replaceFile } from './durable-file';
import { type Entry, formatEntry, type Listing, listingSchema, parseEntry } from './entries';
import { sha256 } from './hash';
import { contentsOf, sweep } from './folder-contents';
import { journalReader, openJournal } from './journal';
import { filesIn, Objects } from './objects';
import type { ArtifactStore, Provenance } from './store';

const REMEDY = 'run the same `campaign run` again: it is made anew';
const FOLDER_MEDIA_TYPE = 'application/vnd.campaign.folder+json';

/** Removes what dead processes of this host left half-written in the store; returns how many files and folders. */
export async function removeLeftovers(root: string): Promise<number> {
  const left = await leftoversIn(join(absolutePath(root), 'aside'));
  for (const path of left) await rm(path, { recursive: true, force: true });
  return left.length;
}

/** Opens the store in `folder`, which is created on the first write. Several processes may use one folder. */
export function openFolderStore(folder: string): ArtifactStore {
  const root = absolutePath(folder);
  const aside = join(root, 'aside');
  const objects = new Objects(join(root, 'objects'), aside);
  const readers = new Map<string, ReturnType<typeof journalReader>>();
  const entryPath = (kind: 'keys' | 'provenance', sha: string) => join(root, kind, sha.slice(0, 2), `${sha}.json`);
  const keyPath = (key: string) => entryPath('keys', sha256(key));
  const provenancePath = (sha: string) => entryPath('provenance', sha);
  const journalPath = (key: string) => join(root, 'journals', `${sha256(key)}.jsonl`);

  async function id(): Promise<string> {
    const path = join(root, 'id');
    const read = () => ifThere(readFile(path, 'utf8'));
    let id = await read();
    if (id === undefined) {
      await createFile({ path, body: randomBytes(6).toString('hex'), aside });
      id = await read();
    }
    if (id && /^[0-9a-f]{12}$/.test(id)) return id;
    const queues = 'the task queue control-... of its campaigns in Temporal has it';
    const fix = `write it there again (12 hexadecimal digits: ${queues}), or remove the file where no campaign of it runs`;
    throw new OutsideFailure('BadInput', `${path} does not hold the id of a store; ${fix}`);
  }

  async function find(key: string): Promise<ArtifactRef | undefined> {
    const path = keyPath(key);
    const inode = (await ifThere(stat(path)))?.ino;
    const text = await ifThere(readFile(path, 'utf8'));
    if (text === undefined) return undefined;
    const entry = parseEntry(text);
    if (entry?.key === key && (await isWhole(entry.ref))) {
      await keepProvenance(entry);
      return entry.ref;
    }
    // What another process has put there since stays.
    if ((await ifThere(stat(path)))?.ino === inode) await rm(path, { force: true });
    return undefined;
  }

  async function put({ body, mediaType, ...provenance }: Parameters<ArtifactStore['put']>[0]): Promise<ArtifactRef> {
    const known = await find(provenance.key);
    if (known) return known;
    const sha = await objects.put(body);
    const ref = { uri: `artifact:${sha}`, sha256: sha, bytes: Buffer.byteLength(body), mediaType };
    return putEntry({ ...only(provenance), ref });
  }

  async function putFolder({ folder, files: names, ...provenance }: Parameters<ArtifactStore['putFolder']>[0]) {
    const known = await find(provenance.key);
    if (known) return known;
    const files: Listing['files'] = [];
    for (const path of await filesIn(folder, names)) {
      const { size: bytes } = await stat(join(folder, path));
      files.push({ path, sha256: await objects.takeOver(join(folder, path)), bytes });
    }
    const sha = await objects.put(JSON.stringify({ files } satisfies Listing));
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    return putEntry({
      ...only(provenance),
      ref: { uri: `artifact-tree:${sha}`, sha256: sha, bytes, mediaType: FOLDER_MEDIA_TYPE },
    });
  }

  async function read(ref: ArtifactRef): Promise<Buffer> {
    const body = await objects.read(ref.sha256);
    if (!body) throw await damaged(ref, objects.path(ref.sha256));
    return body;
  }

  async function folderOf(ref: ArtifactRef): Promise<string> {
    if (!isFolder(ref)) throw new Error(`artifact ${ref.uri} is a file, not a folder; use read`);
    const listing = await listingOf(ref);
    if (!listing) throw await damaged(ref, objects.path(ref.sha256));
    const target = join(root, 'folders', ref.sha256);
    for (const { path, sha256: sha } of listing.files) {
      if (!(await objects.has(sha))) throw await damaged(ref, objects.path(sha));
      await objects.giveOut(sha, join(target, path));
    }
    return target;
  }

  async function provenance({ sha256: sha, uri }: ArtifactRef): Promise<Provenance> {
    const path = provenancePath(sha);
    const entry = await entryAt(path);
    if (!entry) throw await damaged({ sha256: sha, uri }, path);
    return only(entry);
  }

  async function resolve(prefix: string): Promise<ArtifactRef | undefined> {
    // A look only: what is damaged is forgotten by whoever would make it again.
    const byKey = await entryAt(keyPath(prefix));
    if (byKey || !/^[0-9a-f]{2,64}$/.test(prefix)) return byKey?.ref;
    const folder = join(root, 'provenance', prefix.slice(0, 2));
    const names = ((await ifThere(readdir(folder))) ?? []).filter((name) => name.startsWith(prefix));
    if (names.length !== 1) return undefined;
    const path = join(folder, names[0]!);
    const entry = await entryAt(path);
    if (!entry) throw new OutsideFailure('ArtifactDamaged', `${path} is damaged; ${REMEDY}`);
    return entry.ref;
  }

  async function records(key: string): Promise<ReadonlyMap<string, unknown>> {
    const read = readers.get(key) ?? journalReader(journalPath(key));
    readers.set(key, read);
    return read();
  }

  /** The entry in a file; undefined if it is damaged, or not there. */
  async function entryAt(path: string): Promise<Entry | undefined> {
    return parseEntry((await ifThere(readFile(path, 'utf8'))) ?? '');
  }

  /** Writes the entry under its key; returns the reference that stands there in the end, ours or an earlier one. */
  async function putEntry(entry: Entry): Promise<ArtifactRef> {
    await keepProvenance(entry);
    for (;;) {
      const path = keyPath(entry.key);
      if (await createFile({ path, body: formatEntry(entry), aside })) return entry.ref;
      const earlier = await find(entry.key);
      if (earlier) return earlier;
    }
  }

  /** Writes the provenance, unless it is there and whole. */
  async function keepProvenance(entry: Entry): Promise<void> {
    const path = provenancePath(entry.ref.sha256);
    if ((await entryAt(path))?.ref.sha256 === entry.ref.sha256) return;
    const write = { path, body: formatEntry(entry), aside };
    if (!(await createFile(write))) await replaceFile(write);
  }

  async function isWhole(ref: ArtifactRef): Promise<boolean> {
    if (!isFolder(ref)) return objects.has(ref.sha256);
    const listing = await listingOf(ref);
    for (const file of listing?.files ?? []) if (!(await objects.has(file.sha256))) return false;
    return listing !== undefined;
  }

  /** Undefined if it is damaged or missing. */
  async function listingOf({ sha256: sha }: ArtifactRef): Promise<Listing | undefined> {
    const body = await objects.read(sha);
    if (!body) return undefined;
    try {
      return listingSchema.parse(JSON.parse(body.toString('utf8')));
    } catch (cause) {
      const file = objects.path(sha);
      throw new Error(`${file} is not the listing of a folder artifact; was a file's artifact taken for a folder's?`, {
        cause,
      });
    }
  }

  /** What is wrong with `file`, which belongs to the artifact. */
  async function damaged(ref: Pick<ArtifactRef, 'uri' | 'sha256'>, file: string): Promise<OutsideFailure> {
    const what = (await ifThere(stat(file)))
      ? `is damaged: ${file} does not hold what was put there`
      : `is not in the store ${root}: there is no ${file}`;
    const made = await entryAt(provenancePath(ref.sha256));
    const origin = made ? `made by '${made.producer}' under the key '${made.key}'` : 'what made it can not be read';
    return new OutsideFailure('ArtifactDamaged', `artifact ${ref.uri} (${origin}) ${what}; ${REMEDY}`);
  }

  return {
    id,
    find,
    put,
    putFolder,
    read,
    folder: folderOf,
    provenance,
    resolve,
    records,
    forget: (key) => rm(keyPath(key), { force: true }),
    journal: (key) => openJournal(journalPath(key)),
    removeJournal: (key) => rm(journalPath(key), { force: true }),
    contents: () => contentsOf(root),
    sweep: (how) => sweep(root, how),
  };
}

const isFolder = ({ uri }: ArtifactRef): boolean => uri.startsWith('artifact-tree:');

const only = ({ key, producer, inputs }: Provenance): Provenance => ({ key, producer, inputs });
