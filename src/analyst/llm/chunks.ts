/**
 * How trajectories are dealt out to requests. Invariants: each is in exactly one chunk; attempts at one task that ended differently stand side by
 * side, in one chunk if they fit into one; failures and successes are spread over all chunks; chunks are a function of what is shown alone.
 */
import { tokensOf } from '../../domain/endpoints';
import { OutsideFailure } from '../../domain/failures';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { compactOne, type Lengths } from '../../domain/transcript';

type Shown = ReadonlyMap<string, ScoredRollout>;
type Entry = [id: string, rollout: ScoredRollout];

interface Load {
  tokens: number;
  /** What a request needs for it: its tokens, and those of its id in the list of what is shown. */
  needed: number;
  passed: number;
  failed: number;
}
interface Unit extends Load {
  entry: Entry;
}
/** Attempts at one task with both outcomes come first. */
interface Chunk extends Load {
  groups: Unit[];
  others: Unit[];
}
/** What `tokens` and `needed` of a chunk may come to. */
interface Limit {
  tokens: number;
  room: number;
}

const sumOf = (loads: readonly Load[]): Load => {
  const sum: Load = { tokens: 0, needed: 0, passed: 0, failed: 0 };
  for (const load of loads) for (const field of Object.keys(sum) as (keyof Load)[]) sum[field] += load[field];
  return sum;
};

const fits = (loads: readonly Load[], limit: Limit): boolean => {
  const { tokens, needed } = sumOf(loads);
  return tokens <= limit.tokens && needed <= limit.room;
};

export function sizeOf(o: { rollout: ScoredRollout; id: string; lengths: Lengths }): Pick<Load, 'tokens' | 'needed'> {
  const tokens = tokensOf(compactOne(o).length);
  return { tokens, needed: tokens + tokensOf(`${o.id}, `.length) };
}

/**
 * Chunks of at most `tokens`; the longest trajectory may have more where `room`, the most that a request can hold with the ids, allows it.
 * `shown` is in the order of tasks.
 */
export function contrastChunks(o: { shown: Shown; tokens: number; room: number; lengths: Lengths }): Shown[] {
  const units = [...o.shown].map((entry): Unit => {
    const [id, rollout] = entry;
    const passed = isSuccess(rollout) ? 1 : 0;
    return { entry, passed, failed: 1 - passed, ...sizeOf({ rollout, id, lengths: o.lengths }) };
  });
  for (const { entry, needed } of units) if (needed > o.room) throw tooLong(entry[1], needed, o.room);
  const limit = { tokens: Math.max(o.tokens, ...units.map(({ tokens }) => tokens)), room: o.room };
  const tasks = runsOf(units, ({ entry }) => entry[1].task);
  const isMixed = (task: readonly Unit[]) => task.some(isPassed) && !task.every(isPassed);
  const groups = tasks.filter(isMixed).flatMap((task) => piecesOf(task, limit));
  const others = tasks.filter((task) => !isMixed(task)).flat();
  const all = sumOf(units);
  for (let count = Math.max(Math.ceil(all.tokens / limit.tokens), Math.ceil(all.needed / limit.room)); ; count++) {
    const chunks = deal({ groups, others, limit, count });
    if (chunks) return chunks.map((chunk) => shownIn([...chunk.groups, ...interleaved(chunk.others, isPassed)]));
  }
}

const isPassed = ({ passed }: Unit): boolean => passed > 0;
const shownIn = (units: readonly Unit[]): Shown => new Map(units.map(({ entry }) => entry));

const tooLong = ({ task, key }: ScoredRollout, needed: number, room: number) =>
  new OutsideFailure(
    'BadInput',
    `analyst.contextTokens leaves room for trajectories of ${room} tokens, and one of task ${task} has ${needed} (${key}); ` +
      `raise contextTokens by ${Math.ceil((needed - room) / 0.9)} or more, or lower maxTokens`,
  );

/** Neighbours with the same key. */
function runsOf<Item>(items: readonly Item[], keyOf: (item: Item) => string): Item[][] {
  const runs: Item[][] = [];
  for (const item of items) {
    const run = runs.at(-1);
    if (run?.[0] !== undefined && keyOf(run[0]) === keyOf(item)) run.push(item);
    else runs.push([item]);
  }
  return runs;
}

/** The attempts at a task as they are, or, where they are longer than a chunk, in parts that mix outcomes. */
function piecesOf(task: Unit[], limit: Limit): Unit[][] {
  if (fits(task, limit)) return [task];
  const pieces: Unit[][] = [[]];
  for (const unit of interleaved(task, isPassed)) {
    const last = pieces.at(-1) ?? [];
    if (fits([...last, unit], limit)) last.push(unit);
    else pieces.push([unit]);
  }
  return pieces;
}

/** Over `count` chunks: each goes where its outcome is rarest, the rarer outcome first. Undefined if they don't fit. */
function deal(o: { groups: Unit[][]; others: Unit[]; limit: Limit; count: number }): Chunk[] | undefined {
  const chunks = Array.from({ length: o.count }, (): Chunk => ({ groups: [], others: [], ...sumOf([]) }));
  const place = (units: readonly Unit[], list: 'groups' | 'others', by: keyof Load): boolean => {
    const load = sumOf(units);
    const open = chunks.filter((chunk) => fits([chunk, load], o.limit));
    if (open.length === 0) return false;
    const lightest = open.reduce((least, chunk) => (chunk[by] < least[by] ? chunk : least));
    lightest[list].push(...units);
    Object.assign(lightest, sumOf([lightest, load]));
    return true;
  };
  const passed = o.others.filter(isPassed);
  const failed = o.others.filter((unit) => !isPassed(unit));
  const singles = passed.length < failed.length ? [...passed, ...failed] : [...failed, ...passed];
  const placed =
    o.groups.every((group) => place(group, 'groups', 'tokens')) &&
    singles.every((unit) => place([unit], 'others', isPassed(unit) ? 'passed' : 'failed'));
  return placed ? chunks : undefined;
}

/** Both outcomes spread evenly, each in its order. */
function interleaved<Item>(items: readonly Item[], hasPassed: (item: Item) => boolean): Item[] {
  return [true, false]
    .flatMap((passed) => {
      const own = items.filter((item) => hasPassed(item) === passed);
      return own.map((item, n) => ({ item, at: (n + 0.5) / own.length }));
    })
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/**
 * A chunk in parts of nearly equal length, none longer than `most`, in order. Attempts at one task that stand side by side stay in one part,
 * unless they alone are more than that: then each of their parts mixes outcomes.
 */
export function partsAtTasks(chunk: Shown, most: number): Shown[] {
  const hasPassed = ([, rollout]: Entry) => isSuccess(rollout);
  const runs = runsOf([...chunk], ([, { task }]) => task).flatMap((run) =>
    run.length > most
      ? evenParts(
          interleaved(run, hasPassed).map((one) => [one]),
          most,
        )
      : [run],
  );
  return evenParts(runs, most).map((part) => new Map(part));
}

/** Runs that stay together, in parts of nearly equal length, none longer than `most`; no run is. */
function evenParts<Item>(runs: readonly Item[][], most: number): Item[][] {
  const items = runs.flat();
  const borders = runs.reduce<number[]>((ends, run) => [...ends, (ends.at(-1) ?? 0) + run.length], [0]);
  // Of two that are as near, the later.
  const nearest = (place: number) =>
    borders.reduce((best, border) => (Math.abs(border - place) <= Math.abs(best - place) ? border : best), 0);
  for (let count = Math.ceil(items.length / most); ; count++) {
    const cuts = Array.from({ length: count + 1 }, (_, n) => nearest((n * items.length) / count));
    const parts = cuts.slice(1).map((end, n) => items.slice(cuts[n], end));
    // With as many parts as items each run is a part.
    if (parts.every(({ length }) => length <= most)) return parts.filter(({ length }) => length > 0);
  }
}
