/**
 * Which campaign uses what of a store. Whatever a step puts or finds is noted in a journal of its campaign before that is told of the step's end, so
 * that what no other campaign uses can be deleted with it. Of entries that are older than the first note nothing is known: they count as used.
 */
import { groupBy } from '../domain/statistics';
import { sha256 } from './hash';
import type { ArtifactStore, Contents, Journal, StoredEntry } from './store';

/** Its records' keys are the campaigns that have notes, or had. */
const CAMPAIGNS = 'usage';
/** Its entry's age is that of the first note. */
const SINCE = 'usage/since';
const notesKey = (campaign: string): string => `usage/of/${campaign}`;
/** How a journal is noted, beside the keys of artifacts. */
const JOURNAL = 'journal:';

/** A store that notes; `close` ends its journals. */
export type NotingStore = ArtifactStore & { noted(): Promise<void>; close(): Promise<void> };

/** The same store, which notes what `campaign` uses; undefined where nobody's campaign asks. What a step comes to is told after `noted`. */
export function notingUsage(store: ArtifactStore, campaign: () => string | undefined): NotingStore {
  const journals = new Map<string, Promise<Journal>>();
  let begun: Promise<unknown> | undefined;
  /** What is being noted, or could not be, by campaign. */
  const unnoted = new Map<string, Map<string, Promise<void>>>();

  async function open(name: string): Promise<Journal> {
    const campaigns = await store.journal(CAMPAIGNS);
    await campaigns.append(name, {}).finally(() => campaigns.close());
    return store.journal(notesKey(name));
  }

  async function begin(): Promise<void> {
    const body = 'entries that are older were made when uses were not noted';
    begun ??= store.put({ key: SINCE, producer: 'usage', inputs: [], mediaType: 'text/plain', body });
    await begun.catch((error: unknown) => {
      begun = undefined;
      throw error;
    });
  }

  async function note(name: string, key: string): Promise<void> {
    const opening = journals.get(name) ?? open(name);
    journals.set(name, opening);
    opening.catch(() => journals.delete(name));
    const journal = await opening;
    if (journal.records().has(key)) return;
    await journal.append(key, {});
    if ((await store.records(notesKey(name))).has(key)) return;
    // A campaign of this name was deleted since this process opened its journal.
    if (journals.get(name) === opening) {
      journals.delete(name);
      void journal.close();
    }
    await note(name, key);
  }

  /** Does what uses the key, which is noted meanwhile and after. */
  async function noting<Result>(key: string, use: () => Promise<Result>): Promise<Result> {
    const name = campaign();
    if (name === undefined) return use();
    await begin();
    const keys = unnoted.get(name) ?? new Map<string, Promise<void>>();
    unnoted.set(name, keys);
    if (!keys.has(key)) keys.set(key, note(name, key));
    keys.get(key)!.then(
      () => keys.delete(key),
      () => undefined,
    );
    return use();
  }

  async function noted(): Promise<void> {
    const name = campaign();
    const keys = name === undefined ? undefined : unnoted.get(name);
    const ended = async ([key, first]: [string, Promise<void>]) => {
      await first.catch(() => note(name!, key));
      keys?.delete(key);
    };
    await Promise.all([...(keys ?? [])].map(ended));
  }

  return {
    ...store,
    noted,
    close: async () => {
      await Promise.allSettled([...unnoted.values()].flatMap((keys) => [...keys.values()]));
      for (const opening of journals.values()) await opening.then(({ close }) => close());
      journals.clear();
    },
    async find(key) {
      const ref = await store.find(key);
      return ref && noting(key, () => Promise.resolve(ref));
    },
    put: (artifact) => noting(artifact.key, () => store.put(artifact)),
    putFolder: (artifact) => noting(artifact.key, () => store.putFolder(artifact)),
    journal: (key, owner) => noting(JOURNAL + key, () => store.journal(key, owner)),
  };
}

/** The keys of artifacts and of journals that a campaign has noted. */
export async function notesOf(store: Pick<ArtifactStore, 'records'>, campaign: string) {
  const all = [...(await store.records(notesKey(campaign))).keys()];
  const journals = all.flatMap((key) => (key.startsWith(JOURNAL) ? [key.slice(JOURNAL.length)] : []));
  return { keys: all.filter((key) => !key.startsWith(JOURNAL)), journals };
}

export const keysNotedBy = async (store: Pick<ArtifactStore, 'records'>, campaign: string): Promise<string[]> =>
  (await notesOf(store, campaign)).keys;

/** Something in a store that takes room. */
export interface Share {
  /** The first part of its key: what it is. */
  kind: string;
  bytes: number;
  /** Campaigns that use it. */
  users: ReadonlySet<string>;
  /** Whether others may use it that nobody has noted. */
  mayBeUsed: boolean;
  /** What goes with it. */
  entry?: StoredEntry;
  journal?: string;
}

export interface Usage {
  contents: Contents;
  /** The keys that each campaign has noted. */
  noted: ReadonlyMap<string, ReadonlySet<string>>;
  /** All that takes room: together what the store takes. */
  shares: Share[];
}

export async function usageOf(store: ArtifactStore): Promise<Usage> {
  const noted = new Map<string, ReadonlySet<string>>();
  for (const name of (await store.records(CAMPAIGNS)).keys()) {
    const keys = new Set((await store.records(notesKey(name))).keys());
    if (keys.size > 0) noted.set(name, keys);
  }
  const contents = await store.contents();
  const { entries, objects } = contents;
  const since = entries.find(({ key }) => key === SINCE)?.madeMs ?? Infinity;
  const users = usersOf(entries, noted);
  const shares: Share[] = [];
  const ofObjects = new Map<string, { kind: string; users: Set<string>; mayBeUsed: boolean }>();
  for (const entry of entries) {
    const kind = entry.key.split('/')[0]!;
    const own = users.get(entry) ?? new Set<string>();
    const mayBeUsed = entry.madeMs < since || own.size === 0;
    shares.push({ kind, bytes: entry.bytes, users: own, mayBeUsed, entry });
    for (const sha of entry.parts) {
      const known = ofObjects.get(sha) ?? { kind, users: new Set<string>(), mayBeUsed: false };
      own.forEach((name) => known.users.add(name));
      ofObjects.set(sha, { ...known, mayBeUsed: known.mayBeUsed || mayBeUsed });
    }
  }
  for (const [sha, bytes] of objects)
    shares.push({ bytes, ...(ofObjects.get(sha) ?? { kind: 'unreferenced', users: new Set(), mayBeUsed: false }) });
  shares.push(
    ...sharesOfJournals(
      contents,
      noted,
      entries.some(({ key, madeMs }) => madeMs < since && key !== SINCE),
    ),
  );
  return {
    contents,
    noted,
    shares: [...shares, { kind: 'rest', bytes: contents.rest, users: new Set(), mayBeUsed: true }],
  };
}

/** Who has noted an entry, or something that was made of it: what a figure leads back to is used as well. */
function usersOf(entries: readonly StoredEntry[], noted: Usage['noted']): Map<StoredEntry, Set<string>> {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]));
  const bySha = groupBy(entries, ({ ref }) => ref.sha256);
  const users = new Map<StoredEntry, Set<string>>();
  for (const [name, keys] of noted) {
    const waiting = [...keys].flatMap((key) => byKey.get(key) ?? []);
    for (let entry = waiting.pop(); entry; entry = waiting.pop()) {
      const own = users.get(entry) ?? new Set();
      if (own.has(name)) continue;
      users.set(entry, own.add(name));
      waiting.push(...entry.inputs.flatMap(({ sha256: sha }) => bySha.get(sha) ?? []));
    }
  }
  return users;
}

function sharesOfJournals({ journals }: Contents, noted: Usage['noted'], isOlder: boolean): Share[] {
  const known = new Map<string, { key: string; users: Set<string>; isNotes: boolean }>();
  const add = (key: string, name: string, isNotes: boolean) => {
    const users = known.get(sha256(key))?.users ?? new Set();
    known.set(sha256(key), { key, users: users.add(name), isNotes });
  };
  for (const [name, keys] of noted) {
    add(notesKey(name), name, true);
    for (const key of keys) if (key.startsWith(JOURNAL)) add(key.slice(JOURNAL.length), name, false);
  }
  return [...journals].map(([file, bytes]) => {
    const { key, users = new Set<string>(), isNotes = false } = known.get(file) ?? {};
    return {
      kind: 'journals',
      bytes,
      users,
      mayBeUsed: !isNotes && (isOlder || key === undefined),
      ...(key && { journal: key }),
    };
  });
}

/** Whether nobody but the campaign uses it. */
export const isAlone = ({ users, mayBeUsed }: Share, campaign: string): boolean =>
  users.has(campaign) && users.size === 1 && !mayBeUsed;

/**
 * Removes what the campaign alone uses. Entries go before what they refer to, and the campaign's notes last: interrupted at any moment, nothing
 * that another campaign uses is lost, and the same call once more ends it.
 */
export async function removeUsed(store: ArtifactStore, campaign: string): Promise<void> {
  const { shares } = await usageOf(store);
  const alone = shares.filter((share) => isAlone(share, campaign));
  for (const { entry } of alone) if (entry) await store.forget(entry.key);
  await store.sweep({ dryRun: false });
  for (const { journal } of alone) if (journal && journal !== notesKey(campaign)) await store.removeJournal(journal);
}

export const removeNotes = (store: ArtifactStore, campaign: string): Promise<void> =>
  store.removeJournal(notesKey(campaign));
