/** Turns paths of a campaign file into places (domain/places.ts), which mean the same on every machine. Equal files have equal places. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { allowFolder } from '../domain/allowed';
import { OutsideFailure } from '../domain/failures';
import { isPlace, type Place, placeSchema } from '../domain/places';
import { withTemporaryFolder } from './durable-file';
import { digest, sha256 } from './hash';
import { isInside } from './objects';
import { projectRoot } from './project-root';
import type { ArtifactStore } from './store';

const keyOf = (contents: string): string => `given/${contents}`;

/** Puts files into the store and returns the place of `name`. The paths of `files` begin with `name`. */
export async function give(
  store: ArtifactStore,
  { name, files }: { name: string; files: Readonly<Record<string, Uint8Array | string>> },
): Promise<Place> {
  const hashes = Object.entries(files).map(([path, body]) => [path, sha256(body)]);
  const contents = digest(Object.fromEntries(hashes));
  // putFolder() may link the files and make them read-only, so it gets copies of the user's files.
  return withTemporaryFolder('given-', async (folder) => {
    for (const [path, body] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), body);
    }
    await store.putFolder({ key: keyOf(contents), producer: 'start', inputs: [], folder });
    return { $given: contents, path: name };
  });
}

/** The project's folder and its siblings; the project alone if it is at the top, as in a container. */
const around = dirname(projectRoot) === '/' ? projectRoot : dirname(projectRoot);

/** Returns the place of a path into the project or beside it, and any other path as it is. */
export const placeOf = (path: string): string | Place =>
  `${path}/`.startsWith(`${around}/`) ? { $project: relative(projectRoot, path) } : path;

/** Replaces places by paths of this machine. Throws ArtifactDamaged if the store does not have the files, BadInput for a path out of its folder. */
export async function atHand<Value>(store: ArtifactStore, value: Value): Promise<Value> {
  const folders = new Map<string, string>();
  for (const place of placesIn(value)) {
    const contents = '$given' in place ? place.$given : undefined;
    if (contents === undefined || folders.has(contents)) continue;
    const ref = await store.find(keyOf(contents));
    const lost = "the campaign's files are not in the store any more; the same command puts them there";
    if (!ref) throw new OutsideFailure('ArtifactDamaged', `${keyOf(contents)}: ${lost}`);
    const folder = await store.folder(ref);
    allowFolder(folder);
    folders.set(contents, folder);
  }
  return located(value, folders);
}

/** Replaces places of a value that holds no files of the store. */
export function located<Value>(value: Value, folders: ReadonlyMap<string, string> = new Map()): Value {
  return mapPlaces(value, (place) =>
    '$given' in place ? join(folders.get(place.$given)!, place.path) : join(projectRoot, place.$project),
  );
}

export function placesIn(value: unknown): Place[] {
  const found: Place[] = [];
  mapPlaces(value, (place) => found.push(place));
  return found;
}

function mapPlaces<Value>(value: Value, change: (place: Place) => unknown): Value {
  if (value === undefined) return value;
  return JSON.parse(JSON.stringify(value), (_, one: unknown) =>
    isPlace(one) ? change(checkedPlace(one)) : one,
  ) as Value;
}

/** Throws BadInput for a place that leads out of its folder. */
function checkedPlace(value: unknown): Place {
  const { data: place } = placeSchema.safeParse(value);
  const path = place && ('$given' in place ? place.path : place.$project.replace(/^\.\.(\/|$)/, ''));
  if (place && (isInside(path!) || ('$project' in place && path === ''))) return place;
  throw new OutsideFailure(
    'BadInput',
    `${JSON.stringify(value)} is no path in its folder; start the campaign again from its file`,
  );
}
