/** A home as the disk shows it, read without the program's own readers: they are what is tested. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import type { ArtifactRef } from '../../src/domain/artifacts';
import type { Home } from '../../src/cli/project';

export interface StoredKey {
  /** The file of the entry. */
  file: string;
  key: string;
  ref: ArtifactRef;
}

export const artifacts = (home: Home, ...parts: string[]): string => join(home.root, 'artifacts', ...parts);
export const objectFile = (home: Home, sha: string): string => artifacts(home, 'objects', sha.slice(0, 2), sha);
export const provenanceFile = (home: Home, sha: string): string =>
  artifacts(home, 'provenance', sha.slice(0, 2), `${sha}.json`);

/** Names in a folder; none if it is not there. */
export function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** All files below a folder; one that is renamed while we look is not there. */
export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries: Dirent[] = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** The keys of a store as they come: an entry never changes, so each is read once. */
export class StoredKeys {
  private readonly known = new Map<string, StoredKey>();
  constructor(private readonly home: Home) {}

  all(): StoredKey[] {
    const files = filesBelow(artifacts(this.home, 'keys'));
    return files.flatMap((file) => {
      const entry = this.known.get(file) ?? readKey(file);
      if (entry) this.known.set(file, entry);
      return entry ?? [];
    });
  }

  matching(pattern: RegExp): StoredKey[] {
    return this.all().filter(({ key }) => pattern.test(key));
  }
}

/** Undefined for one that is damaged or not there any more. */
function readKey(file: string): StoredKey | undefined {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as StoredKey & { entry?: StoredKey };
    const { key, ref } = value.entry ?? value;
    return typeof key === 'string' && typeof ref.sha256 === 'string' ? { file, key, ref } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the object's content; undefined if it is missing or damaged. */
export function wholeObject(home: Home, sha: string): string | undefined {
  const file = objectFile(home, sha);
  const body = existsSync(file) ? readFileSync(file) : undefined;
  return body && createHash('sha256').update(body).digest('hex') === sha ? body.toString('utf8') : undefined;
}

/** Folders of the learners. */
export function trainingsOf(home: Home): string[] {
  const root = join(home.root, 'trainings');
  return namesIn(root).flatMap((campaign) => namesIn(join(root, campaign)).map((name) => join(root, campaign, name)));
}

/** Lines of a training's metrics; a last one that is being written is left out. */
export function stepsOf(training: string): { step: number }[] {
  const file = join(training, 'metrics.jsonl');
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as { step: number });
}

/** Returns true if there is a chunk of an unfinished batch. */
export const hasChunks = (home: Home): boolean => filesBelow(artifacts(home, 'chunks')).length > 0;
