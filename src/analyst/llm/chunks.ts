/**
 * How trajectories are dealt out to requests. Each is in exactly one chunk; attempts at one task that ended differently stand side by side, in one
 * chunk if they fit into one; failures and successes are spread over all chunks; chunks are a function of what is shown alone.
 */
import { tokensOf } from '../../domain/endpoints';
import { OutsideFailure } from '../../domain/failures';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { compactOne, type Lengths } from '../../domain/transcript';

/** Trajectories by the ids that the model knows: r1, r2, ... */
export type Shown = ReadonlyMap<string, ScoredRollout>;

/** `needed`: its tokens, and those of its id in the list of what is shown. */
type Load = Record<'tokens' | 'needed' | 'passed' | 'failed', number>;
type Limit = Pick<Load, 'tokens' | 'needed'>;

interface Attempt {
  id: string;
  rollout: ScoredRollout;
}
interface Unit extends Attempt {
  load: Load;
}
/** Attempts at one task with both outcomes (`groups`) come first. */
interface Chunk {
  load: Load;
  groups: Unit[];
  others: Unit[];
}

const NOTHING: Load = { tokens: 0, needed: 0, passed: 0, failed: 0 };
const plus = (a: Load, b: Load): Load => ({
  tokens: a.tokens + b.tokens,
  needed: a.needed + b.needed,
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
});
const loadOf = (units: readonly Unit[]): Load => units.map(({ load }) => load).reduce(plus, NOTHING);
const fits = (load: Load, limit: Limit): boolean => load.tokens <= limit.tokens && load.needed <= limit.needed;

const hasPassed = ({ rollout }: Attempt): boolean => isSuccess(rollout);
const hasFailed = (attempt: Attempt): boolean => !hasPassed(attempt);
const shownIn = (attempts: readonly Attempt[]): Shown => new Map(attempts.map(({ id, rollout }) => [id, rollout]));
const attemptsIn = (shown: Shown): Attempt[] => [...shown].map(([id, rollout]) => ({ id, rollout }));

export function sizeOf(o: { rollout: ScoredRollout; id: string; lengths: Lengths }): Limit {
  const tokens = tokensOf(compactOne(o).length);
  return { tokens, needed: tokens + tokensOf(`${o.id}, `.length) };
}

/**
 * Chunks of at most `tokens`; the longest trajectory may have more where `room`, the most that a request can hold with the ids, allows it.
 * `shown` is in the order of tasks.
 */
export function contrastChunks(o: { shown: Shown; tokens: number; room: number; lengths: Lengths }): Shown[] {
  const units = attemptsIn(o.shown).map((attempt): Unit => {
    const outcome = hasPassed(attempt) ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
    return { ...attempt, load: { ...outcome, ...sizeOf({ ...attempt, lengths: o.lengths }) } };
  });
  for (const { rollout, load } of units) if (load.needed > o.room) throw tooLong(rollout, load.needed, o.room);
  const limit = { tokens: Math.max(o.tokens, ...units.map(({ load }) => load.tokens)), needed: o.room };
  const tasks = byTask(units);
  const isMixed = (task: readonly Unit[]) => task.some(hasPassed) && task.some(hasFailed);
  const groups = tasks.filter(isMixed).flatMap((task) => piecesOf(task, limit));
  const others = tasks.filter((task) => !isMixed(task)).flat();
  const all = loadOf(units);
  for (let count = Math.max(Math.ceil(all.tokens / limit.tokens), Math.ceil(all.needed / limit.needed)); ; count++) {
    const chunks = deal(groups, others, limit, count);
    if (chunks) return chunks.map((chunk) => shownIn([...chunk.groups, ...interleaved(chunk.others)]));
  }
}

const tooLong = ({ task, key }: ScoredRollout, needed: number, room: number) =>
  new OutsideFailure(
    'BadInput',
    `analyst.contextTokens leaves room for trajectories of ${room} tokens, and one of task ${task} has ${needed} (${key}); ` +
      `raise contextTokens by ${Math.ceil((needed - room) / 0.9)} or more, or lower maxTokens`,
  );

/** Attempts that stand side by side and are of one task. */
function byTask<Item extends Attempt>(items: readonly Item[]): Item[][] {
  const tasks: Item[][] = [];
  for (const item of items) {
    const last = tasks.at(-1);
    if (last?.[0]?.rollout.task === item.rollout.task) last.push(item);
    else tasks.push([item]);
  }
  return tasks;
}

/** The attempts at a task as they are, or, where they are longer than a chunk, in parts that mix outcomes. */
function piecesOf(task: Unit[], limit: Limit): Unit[][] {
  if (fits(loadOf(task), limit)) return [task];
  const pieces: Unit[][] = [[]];
  for (const unit of interleaved(task)) {
    const last = pieces.at(-1) ?? [];
    if (fits(loadOf([...last, unit]), limit)) last.push(unit);
    else pieces.push([unit]);
  }
  return pieces;
}

/** Over `count` chunks: each goes where its outcome is rarest, the rarer outcome first. Undefined if they don't fit. */
function deal(groups: Unit[][], others: Unit[], limit: Limit, count: number): Chunk[] | undefined {
  const chunks = Array.from({ length: count }, (): Chunk => ({ load: NOTHING, groups: [], others: [] }));
  const place = (units: readonly Unit[], list: 'groups' | 'others', by: keyof Load): boolean => {
    const load = loadOf(units);
    const open = chunks.filter((chunk) => fits(plus(chunk.load, load), limit));
    const [lightest] = open.sort((a, b) => a.load[by] - b.load[by]);
    if (!lightest) return false;
    lightest[list].push(...units);
    lightest.load = plus(lightest.load, load);
    return true;
  };
  const [passed, failed] = [others.filter(hasPassed), others.filter(hasFailed)];
  const singles = passed.length < failed.length ? [...passed, ...failed] : [...failed, ...passed];
  const placed =
    groups.every((group) => place(group, 'groups', 'tokens')) &&
    singles.every((unit) => place([unit], 'others', hasPassed(unit) ? 'passed' : 'failed'));
  return placed ? chunks : undefined;
}

/** Both outcomes spread evenly, each in its order. */
const interleaved = <Item extends Attempt>(items: readonly Item[]): Item[] =>
  [items.filter(hasPassed), items.filter(hasFailed)]
    .flatMap((own) => own.map((item, n) => ({ item, at: (n + 0.5) / own.length })))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

/**
 * A chunk in parts of nearly equal length, none longer than `most`, in order. Attempts at one task that stand side by side stay in one part,
 * unless they alone are more than that: then each of their parts mixes outcomes.
 */
export function partsAtTasks(chunk: Shown, most: number): Shown[] {
  const runs = byTask(attemptsIn(chunk)).flatMap((task) => {
    if (task.length <= most) return [task];
    const singles = interleaved(task).map((one) => [one]);
    return evenParts(singles, most);
  });
  return evenParts(runs, most).map(shownIn);
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
