/**
 * What a campaign names by path, under names that mean the same on every machine: `given:<digest>/<name>`, files that were put into the store when it
 * started, and `project://<path>`, what comes with the project or lies beside it. Invariant: equal files have equal names.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { allowFolder } from '../domain/allowed';
import { OutsideFailure } from '../domain/failures';
import { digest, sha256 } from './hash';
import type { ArtifactStore } from './store';

/** Seen from src/ and from dist/. */
export const projectRoot = resolve(__dirname, '..', '..');

const PROJECT = 'project://';
const keyOf = (name: string): string => name.replace(':', '/');

/** Puts files into the store; their name. `files`: by their paths, all of which begin with `name`. */
export async function give(
  store: ArtifactStore,
  { name, files }: { name: string; files: Readonly<Record<string, Uint8Array | string>> },
): Promise<string> {
  const hashes = Object.entries(files).map(([path, body]) => [path, sha256(body)]);
  const contents = `given:${digest(Object.fromEntries(hashes))}`;
  // A store may keep what it is given as it lies: the user's own files are not for that.
  const folder = await mkdtemp(join(tmpdir(), 'given-'));
  try {
    for (const [path, body] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), body);
    }
    await store.putFolder({ key: keyOf(contents), producer: 'start', inputs: [], folder });
    return `${contents}/${name}`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Where the project is alone at the top, as in a container, nothing is beside it. */
const around = dirname(projectRoot) === '/' ? projectRoot : dirname(projectRoot);

/** The value with every path into the project, or to what lies beside it, under its name. */
export const portable = <Value>(value: Value): Value =>
  withTexts(value, (text) => (`${text}/`.startsWith(`${around}/`) ? PROJECT + relative(projectRoot, text) : text));

/** The value with paths of this machine in place of names. Throws ArtifactDamaged where the store does not have the files. */
export async function atHand<Value>(store: ArtifactStore, value: Value): Promise<Value> {
  const folders = new Map<string, string>();
  for (const [name] of (JSON.stringify(value) ?? '').matchAll(/\bgiven:[0-9a-f]{64}(?=\/)/g)) {
    const ref = await store.find(keyOf(name));
    const lost = 'what the campaign was given is not in the store any more; the same command puts it there';
    if (!ref) throw new OutsideFailure('ArtifactDamaged', `${keyOf(name)}: ${lost}`);
    const folder = await store.folder(ref);
    allowFolder(folder);
    folders.set(name, folder);
  }
  return withTexts(value, (text) => {
    const [name = '', file] = text.split('/');
    return folders.has(name) && file !== '..' ? join(folders.get(name)!, file!) : ofProject(text);
  });
}

const ofProject = (text: string): string =>
  text.startsWith(PROJECT) ? join(projectRoot, text.slice(PROJECT.length)) : text;

/** The value as a worker of this checkout gets it. */
export const received = <Value>(value: Value): Value => withTexts(portable(value), ofProject);

const withTexts = <Value>(value: Value, change: (text: string) => string): Value =>
  value === undefined
    ? value
    : (JSON.parse(JSON.stringify(value), (_, one: unknown) => (typeof one === 'string' ? change(one) : one)) as Value);
