/**
 * Digests what an environment shows before the first answer, for keys: its description, and the tools and first messages of each task. An environment that
 * shows something else has other keys, even with the same `version`. A field that differs between two looks at the same task is in no key.
 */
import { digest } from '../store/hash';
import { createLimit } from '../domain/concurrency';
import type { Environment } from '../domain/environment';

/** A digest for each task; undefined for a task that could not be opened, of which no stored rollout is known. */
export type Shown = ReadonlyMap<string, string | undefined>;

type Look = Record<string, string>;
const lookOf = (shown: object): Look =>
  Object.fromEntries(
    Object.entries(shown).flatMap(([field, value]) => (value === undefined ? [] : [[field, digest(value)]])),
  );

const differing = (one: Look, other: Look): string[] =>
  Object.keys({ ...one, ...other }).filter((field) => one[field] !== other[field]);

const without = (look: Look, fields: ReadonlySet<string>): Look =>
  Object.fromEntries(Object.entries(look).filter(([field]) => !fields.has(field)));

interface Seen {
  itself: string;
  varying?: ReadonlySet<string>;
  tasks: Map<string, Promise<Look | undefined>>;
}
const all = new WeakMap<object, Map<string, Seen>>();

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

/** Opens each task once for a campaign and each process of the environment, and closes it again. */
export async function lookAt(o: Looking): Promise<Shown> {
  const { environment, tasks, seed, campaign = '', concurrency = AT_ONCE, signal } = o;
  const itself = await lookAtItself(environment);
  const show = environment.appearance?.task ?? startOf(environment);
  if (show === 'fixed') return new Map(tasks.map((task) => [task, itself]));
  if (tasks.length === 0) return new Map();
  const look = show;
  const seen = seenOf({ environment, campaign, itself });

  async function open(id: string): Promise<Look | undefined> {
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      try {
        return lookOf(await look({ id, seed }, signal));
      } catch {
        // The rollouts of the task report what is wrong with it.
        if (tries === TRIES) return undefined;
      }
    }
  }

  async function openOnce(task: string): Promise<Look | undefined> {
    const key = `${seed} ${task}`;
    const opening = seen.tasks.get(key) ?? open(task);
    seen.tasks.set(key, opening);
    // It may have been started by a batch that was cancelled since.
    const found = await opening.catch(() => open(task));
    if (!found) seen.tasks.delete(key);
    return found;
  }

  const limit = createLimit(concurrency);
  const each = <Result>(some: readonly string[], work: (task: string) => Promise<Result>): Promise<Result[]> =>
    Promise.all(some.map((task) => limit(() => work(task))));

  // Opens the first, the middle and the last task twice, to see which fields vary.
  const sample = [...new Set([0, 0.5, 1].map((at) => tasks[Math.floor(at * (tasks.length - 1))]!))];
  const sampled = await each(sample, openOnce);
  // If none can be opened, the others would fail as well.
  if (sampled.every((one) => one === undefined)) return new Map();
  if (!seen.varying) {
    const again = await each(sample, open);
    seen.varying = new Set(again.flatMap((one, n) => (one && sampled[n] ? differing(sampled[n], one) : [])));
  }
  const { varying } = seen;
  const looks = await each(tasks, openOnce);
  return new Map(tasks.map((task, n) => [task, looks[n] && digest([itself, without(looks[n], varying)])]));
}

function seenOf(o: { environment: Environment; campaign: string; itself: string }): Seen {
  const of = o.environment.appearance ?? o.environment;
  const campaigns = all.get(of) ?? new Map<string, Seen>();
  all.set(of, campaigns);
  const known = campaigns.get(o.campaign);
  const seen: Seen = known?.itself === o.itself ? known : { itself: o.itself, tasks: new Map() };
  campaigns.set(o.campaign, seen);
  return seen;
}

async function lookAtItself(environment: Environment): Promise<string> {
  const says = environment.appearance?.itself ?? (() => environment.describe());
  const [one, other] = [lookOf(await says()), lookOf(await says())];
  // Notes do not affect rollouts, and the plug-in is in the keys of batches.
  return digest(without(one, new Set([...differing(one, other), 'notes', 'plugin'])));
}

const startOf =
  (environment: Environment) =>
  async (task: { id: string; seed: number }, signal?: AbortSignal): Promise<object> => {
    const { start, close } = await environment.reset(task, signal);
    await close();
    return start;
  };
