/**
 * The artifact store in a folder. Invariants: `objects` are named by their content; `keys` and `provenance` are created once and
 * never change; a key appears only after its object and provenance are durable, so whatever `find` returns can be read.
 *
 *   objects/<2>/<sha256>            content, read-only          keys/<2>/<sha256 of key>.json   entry of the key
 *   provenance/<2>/<sha256>.json    entry of the first key that led to this content
 *   folders/<sha256>/               materialised folders        journals/<sha256 of key>.jsonl  unfinished work
 */
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve as absolutePath } from 'node:path';
import { z } from 'zod';
import { artifactRefSchema, type ArtifactRef } from '../domain/artifacts';
import { createFile, isCode, replaceFile } from './durable-file';
import { listFiles, materialise, parseListing, TREE_MEDIA_TYPE, type Listing } from './folder-tree';
import { sha256 } from './hash';
import { openJournal } from './journal';
import type { ArtifactStore, Provenance } from './store';

const entrySchema = z.object({
  key: z.string(),
  producer: z.string(),
  inputs: z.array(artifactRefSchema),
  ref: artifactRefSchema,
});
type Entry = z.infer<typeof entrySchema>;

/** Opens the store in `root`, which is created on the first write. Several processes may use one folder. */
export function openFolderStore(root: string): ArtifactStore {
  const at = (...parts: string[]) => join(absolutePath(root), ...parts);
  const aside = at('aside');
  const objectPath = (sha: string) => at('objects', sha.slice(0, 2), sha);
  const provenancePath = (sha: string) => at('provenance', sha.slice(0, 2), `${sha}.json`);
  const keyPath = (key: string) => at('keys', sha256(key).slice(0, 2), `${sha256(key)}.json`);

  async function putObject(body: Uint8Array | string): Promise<string> {
    await mkdir(aside, { recursive: true });
    const sha = sha256(body);
    const path = objectPath(sha);
    if (!(await exists(path))) await replaceFile({ path, body, aside, mode: 0o444 });
    return sha;
  }

  /** Writes the entry under its key; returns the reference that stands there in the end, ours or an earlier one. */
  async function putEntry(entry: Entry): Promise<ArtifactRef> {
    const body = JSON.stringify(entry);
    await createFile({ path: provenancePath(entry.ref.sha256), body, aside });
    if (await createFile({ path: keyPath(entry.key), body, aside })) return entry.ref;
    return (await readEntry(keyPath(entry.key)))!.ref;
  }

  const find = async (key: string) => (await readEntry(keyPath(key)))?.ref;

  async function read(ref: ArtifactRef): Promise<Buffer> {
    const body = await readFile(objectPath(ref.sha256)).catch((error: unknown) => {
      throw isCode(error, 'ENOENT') ? new Error(`artifact ${ref.uri} is not in the store ${at()}`) : error;
    });
    if (sha256(body) !== ref.sha256) {
      throw new Error(
        `artifact ${ref.uri} is damaged: its bytes don't have its sha256; restore ${objectPath(ref.sha256)}`,
      );
    }
    return body;
  }

  return {
    find,
    read,

    async put({ body, mediaType, ...provenance }) {
      const done = await find(provenance.key);
      if (done) return done;
      const sha = await putObject(body);
      const ref = { uri: `artifact:${sha}`, sha256: sha, bytes: Buffer.byteLength(body), mediaType };
      return putEntry({ ...only(provenance), ref });
    },

    async putFolder({ folder, ...provenance }) {
      const done = await find(provenance.key);
      if (done) return done;
      const files: Listing['files'] = [];
      for (const { path, absolute } of await listFiles(folder)) {
        const body = await readFile(absolute);
        files.push({ path, sha256: await putObject(body), bytes: body.length });
      }
      const sha = await putObject(JSON.stringify({ files }));
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      return putEntry({
        ...only(provenance),
        ref: { uri: `artifact-tree:${sha}`, sha256: sha, bytes, mediaType: TREE_MEDIA_TYPE },
      });
    },

    async folder(ref) {
      if (!ref.uri.startsWith('artifact-tree:'))
        throw new Error(`artifact ${ref.uri} is a file, not a folder; use read`);
      const target = at('folders', ref.sha256);
      await mkdir(aside, { recursive: true });
      await materialise({ listing: parseListing(await read(ref)), target, aside, objectPath });
      return target;
    },

    async provenance(ref) {
      const entry = await readEntry(provenancePath(ref.sha256));
      if (!entry) throw new Error(`artifact ${ref.uri} is not in the store ${at()}`);
      return only(entry);
    },

    async resolve(prefix) {
      const byKey = await find(prefix);
      if (byKey || !/^[0-9a-f]{2,64}$/.test(prefix)) return byKey;
      const names = await readdir(at('provenance', prefix.slice(0, 2))).catch(() => []);
      const [name, ...others] = names.filter((candidate) => candidate.startsWith(prefix));
      if (name === undefined || others.length > 0) return undefined;
      return (await readEntry(at('provenance', prefix.slice(0, 2), name)))?.ref;
    },

    journal: (key) => openJournal(at('journals', `${sha256(key)}.jsonl`)),
  };
}

const only = ({ key, producer, inputs }: Provenance): Provenance => ({ key, producer, inputs });

const exists = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined;

async function readEntry(path: string): Promise<Entry | undefined> {
  try {
    return entrySchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
