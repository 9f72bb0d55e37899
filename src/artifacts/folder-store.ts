/**
 * The artifact store in a folder. Invariants: `objects` are named by their content; `keys` and `provenance` are created once and stay
 * until what they name is found damaged beyond mending; a key appears only after its object and provenance are durable, and `find`
 * checks them (one read a process), so whatever it returns can be read.
 *
 *   objects/<2>/<sha256>            content, read-only          keys/<2>/<sha256 of key>.json   entry of the key
 *   provenance/<2>/<sha256>.json    entry of the first key that led to this content
 *   folders/<sha256>/               materialised folders        journals/<sha256 of key>.jsonl  unfinished work
 *   aside/                          what is being written         id                             the store's id
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve as absolutePath } from 'node:path';
import type { ArtifactRef } from '../domain/artifacts';
import { OutsideFailure } from '../domain/failures';
import { removeAsides } from './aside';
import { Checks, markOf } from './checks';
import { createFile, isCode, replaceFile } from './durable-file';
import { formatEntry, readEntry, removeEntry, type Entry } from './entries';
import { listFiles, listingOf, materialise, parseListing, TREE_MEDIA_TYPE, type Listing } from './folder-tree';
import { sha256 } from './hash';
import { openJournal, removeJournal } from './journal';
import { journalReader } from './journal-reader';
import { openObjects } from './objects';
import type { ArtifactStore, Provenance } from './store';

const ASIDE = 'aside';
const REMEDY = 'run the same `campaign run` again: it is made anew';

/** Removes what dead processes of this host left half-written in the store; returns how many files and folders. */
export const removeLeftovers = (root: string): Promise<number> => removeAsides(join(absolutePath(root), ASIDE));

/** Opens the store in `root`, which is created on the first write. Several processes may use one folder. */
export function openFolderStore(root: string): ArtifactStore {
  const at = (...parts: string[]) => join(absolutePath(root), ...parts);
  const aside = at(ASIDE);
  const provenancePath = (sha: string) => at('provenance', sha.slice(0, 2), `${sha}.json`);
  const journalPath = (key: string) => at('journals', `${sha256(key)}.jsonl`);
  const keyPath = (key: string) => at('keys', sha256(key).slice(0, 2), `${sha256(key)}.json`);
  const checks = new Checks();
  const readers = new Map<string, ReturnType<typeof journalReader>>();
  const objects = openObjects({ root: at('objects'), folders: at('folders'), aside, checks });

  /** Writes the provenance, unless it is there and whole. */
  async function keepProvenance(entry: Entry): Promise<void> {
    const path = provenancePath(entry.ref.sha256);
    if (await checks.holds(path, async () => (await readEntry(path))?.entry?.ref.sha256 === entry.ref.sha256)) return;
    const body = formatEntry(entry);
    if (!(await createFile({ path, body, aside }))) await replaceFile({ path, body, aside });
  }

  /** Writes the entry under its key; returns the reference that stands there in the end, ours or an earlier one. */
  async function putEntry(entry: Entry): Promise<ArtifactRef> {
    await keepProvenance(entry);
    for (;;) {
      if (await createFile({ path: keyPath(entry.key), body: formatEntry(entry), aside })) return entry.ref;
      const earlier = await find(entry.key);
      if (earlier) return earlier;
    }
  }

  async function find(key: string): Promise<ArtifactRef | undefined> {
    const path = keyPath(key);
    const file = await readEntry(path);
    if (!file) return undefined;
    const { entry, identity } = file;
    if (entry?.key === key && (await isWhole(entry.ref))) {
      await keepProvenance(entry);
      return entry.ref;
    }
    await removeEntry({ path, identity, aside });
    return undefined;
  }

  async function isWhole(ref: ArtifactRef): Promise<boolean> {
    if (!isFolder(ref)) return objects.has(ref.sha256);
    const listing = await listingFor(ref);
    for (const file of listing?.files ?? []) if (!(await objects.has(file.sha256))) return false;
    return listing !== undefined;
  }

  async function listingFor({ sha256: sha }: ArtifactRef): Promise<Listing | undefined> {
    const body = await objects.read(sha);
    return body && parseListing({ body, file: objects.path(sha) });
  }

  /** What is wrong with `file`, which belongs to the artifact. */
  async function damaged(ref: ArtifactRef, file: string): Promise<OutsideFailure> {
    const what = (await markOf(file))
      ? `is damaged: ${file} does not hold what was put there`
      : `is not in the store ${at()}: there is no ${file}`;
    const made = (await readEntry(provenancePath(ref.sha256)).catch(() => undefined))?.entry;
    const origin = made ? `made by '${made.producer}' under the key '${made.key}'` : 'what made it can not be read';
    return new OutsideFailure('ArtifactDamaged', `artifact ${ref.uri} (${origin}) ${what}; ${REMEDY}`);
  }

  return {
    async id() {
      const path = at('id');
      const read = () => readFile(path, 'utf8');
      const id = await read().catch(async (error: unknown) => {
        if (!isCode(error, 'ENOENT')) throw error;
        await createFile({ path, body: randomBytes(6).toString('hex'), aside });
        return read();
      });
      if (/^[0-9a-f]{12}$/.test(id)) return id;
      const queues = 'the task queue control-... of its campaigns in Temporal has it';
      const fix = `write it there again (12 hexadecimal digits: ${queues}), or remove the file where no campaign of it runs`;
      throw new OutsideFailure('BadInput', `${path} does not hold the id of a store; ${fix}`);
    },

    find,

    async read(ref) {
      const body = await objects.read(ref.sha256);
      if (!body) throw await damaged(ref, objects.path(ref.sha256));
      return body;
    },

    async put({ body, mediaType, ...provenance }) {
      const done = await find(provenance.key);
      if (done) return done;
      const sha = await objects.put(body);
      const ref = { uri: `artifact:${sha}`, sha256: sha, bytes: Buffer.byteLength(body), mediaType };
      return putEntry({ ...only(provenance), ref });
    },

    async putFolder({ folder, files: names, ...provenance }) {
      const done = await find(provenance.key);
      if (done) return done;
      let bytes = 0;
      const store = async (absolute: string) => {
        const body = await readFile(absolute);
        bytes += body.length;
        return { sha256: await objects.put(body), bytes: body.length };
      };
      const sha = await objects.put(
        await listingOf({ files: await listFiles({ folder, ...(names && { files: names }) }), store }),
      );
      return putEntry({
        ...only(provenance),
        ref: { uri: `artifact-tree:${sha}`, sha256: sha, bytes, mediaType: TREE_MEDIA_TYPE },
      });
    },

    async folder(ref) {
      if (!isFolder(ref)) throw new Error(`artifact ${ref.uri} is a file, not a folder; use read`);
      const target = at('folders', ref.sha256);
      const listing = await listingFor(ref);
      if (!listing) throw await damaged(ref, objects.path(ref.sha256));
      const copy = async (file: { sha256: string; to: string }) => {
        if (!(await objects.copy(file))) throw await damaged(ref, objects.path(file.sha256));
      };
      await materialise({ listing, target, aside, checks, copy });
      return target;
    },

    async provenance(ref) {
      const path = provenancePath(ref.sha256);
      const entry = (await readEntry(path))?.entry;
      if (!entry) throw await damaged(ref, path);
      return only(entry);
    },

    async resolve(prefix) {
      // A look only: what is damaged is forgotten by whoever would make it again.
      const byKey = (await readEntry(keyPath(prefix)))?.entry?.ref;
      if (byKey || !/^[0-9a-f]{2,64}$/.test(prefix)) return byKey;
      const names = await readdir(at('provenance', prefix.slice(0, 2))).catch(() => []);
      const [name, ...others] = names.filter((candidate) => candidate.startsWith(prefix));
      if (name === undefined || others.length > 0) return undefined;
      const path = at('provenance', prefix.slice(0, 2), name);
      const file = await readEntry(path);
      if (file && !file.entry) throw new OutsideFailure('ArtifactDamaged', `${path} is damaged; ${REMEDY}`);
      return file?.entry?.ref;
    },

    journal: (key) => openJournal(journalPath(key)),
    async records(key) {
      const read = readers.get(key) ?? journalReader(journalPath(key));
      readers.set(key, read);
      return read();
    },
    removeJournal: (key) => removeJournal(journalPath(key)),
  };
}

const isFolder = ({ uri }: ArtifactRef): boolean => uri.startsWith('artifact-tree:');

const only = ({ key, producer, inputs }: Provenance): Provenance => ({ key, producer, inputs });
