/**
 * Digests what an environment shows before the first answer, for keys: its description, and the tools and first messages of each task. An environment that
 * shows something else has other keys, even with the same `version`.
 */
import { digest } from '../store/hash';
import { createLimit } from '../domain/concurrency';
import type { Environment, ResetResult } from '../domain/environment';
import { getOrMake } from '../domain/maps';

/** A digest for each task; undefined for a task that could not be opened, of which no stored rollout is known. */
export type Shown = ReadonlyMap<string, string | undefined>;

const digestEach = (shown: object): object =>
  Object.fromEntries(
    Object.entries(shown).flatMap(([field, value]) => (value === undefined ? [] : [[field, digest(value)]])),
  );

const TRIES = 2;
const AT_ONCE = 8;

interface Looking {
  environment: Environment;
  tasks: readonly string[];
  seed: number;
  /** Looks are shared within a campaign only, because a program may have changed since another one looked. */
  campaign?: string | undefined;
  concurrency?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Results of looking at tasks, by environment. */
const known = new WeakMap<object, Map<string, Promise<string | undefined>>>();

/** Opens each task once for a campaign, and closes it again. */
export async function lookAt(o: Looking): Promise<Shown> {
  const { environment, tasks, seed, campaign = '', concurrency = AT_ONCE, signal } = o;
  const { itself: describe = () => environment.describe(), task: show = startOf(environment) } =
    environment.appearance ?? {};
  // Notes do not affect rollouts, and the plug-in is in the keys of batches.
  const itself = digest(digestEach({ ...(await describe()), notes: undefined, plugin: undefined }));
  if (show === 'fixed') return new Map(tasks.map((task) => [task, itself]));

  const open = async (id: string): Promise<string | undefined> => {
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      try {
        return digest([itself, digestEach(await show({ id, seed }, signal))]);
      } catch {
        // The rollouts of the task report what is wrong with it.
        if (tries === TRIES) return undefined;
      }
    }
  };

  const of = environment.appearance ?? environment;
  const looks = getOrMake(known, of, () => new Map<string, Promise<string | undefined>>());
  async function openOnce(id: string): Promise<string | undefined> {
    const key = digest([campaign, itself, seed, id]);
    const opening = getOrMake(looks, key, () => open(id));
    // It may have been started by a batch that was cancelled since.
    const found = await opening.catch(() => open(id));
    if (found === undefined) looks.delete(key);
    return found;
  }
  // If neither can be opened, the others would fail as well.
  const ends = await Promise.all(tasks.filter((_, n) => n === 0 || n === tasks.length - 1).map(openOnce));
  if (ends.every((look) => look === undefined)) return new Map();
  const limit = createLimit(concurrency);
  return new Map(await Promise.all(tasks.map(async (id) => [id, await limit(() => openOnce(id))] as const)));
}

/** Returns a function that opens a task for its first messages and tools, and closes it. */
export const startOf =
  (environment: Environment) =>
  async (task: { id: string; seed: number }, signal?: AbortSignal): Promise<ResetResult> => {
    const { start, close } = await environment.reset(task, signal);
    await close();
    return start;
  };
