/**
 * What one request shows. Invariants: every rollout is in exactly one chunk; attempts at one task that ended differently stand side by side,
 * in one chunk if they fit into one; failures and successes are spread over all chunks, so that each has contrast where there is enough of
 * both; a function of the rollouts, whatever their order.
 */
import { byTask, compactOne, type Lengths } from '../../domain/transcript';
import { OutsideFailure } from '../../domain/failures';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';

/** Tokens of a text, estimated. */
export const tokensOf = (text: string): number => Math.ceil(text.length / 4);

interface Sized {
  rollout: ScoredRollout;
  passed: boolean;
  tokens: number;
  /** Of the trajectory, and of its id in the list of those that are asked for. */
  needed: number;
}
/** What a chunk's `tokens` and what it needs of a request may come to. */
interface Limit {
  tokens: number;
  room: number;
}
/** Attempts at one task with both outcomes first. */
class Chunk {
  readonly groups: Sized[] = [];
  readonly others: Sized[] = [];
  tokens = 0;
  needed = 0;
  readonly counts = { passed: 0, failed: 0 };

  add(units: readonly Sized[], to: 'groups' | 'others'): void {
    this[to].push(...units);
    for (const { passed, tokens, needed } of units) {
      this.tokens += tokens;
      this.needed += needed;
      this.counts[passed ? 'passed' : 'failed']++;
    }
  }
}

/** Chunks of at most `tokens`; the longest rollout may have more than that where `room`, the most that a request can hold with the ids, allows it. */
export function contrastChunks({
  rollouts,
  ids,
  tokens,
  room,
  lengths,
}: {
  rollouts: readonly ScoredRollout[];
  ids: ReadonlyMap<string, string>;
  tokens: number;
  room: number;
  lengths: Lengths;
}): ScoredRollout[][] {
  const sized = [...rollouts].sort(byTask).map((rollout): Sized => {
    const id = ids.get(rollout.key) ?? rollout.key;
    const size = tokensOf(compactOne({ rollout, id, lengths }));
    return { rollout, passed: isSuccess(rollout), tokens: size, needed: size + tokensOf(`${id}, `) };
  });
  const tooLong = sized.find(({ needed }) => needed > room);
  if (tooLong) throw new OutsideFailure('BadInput', tooLongText(tooLong, room));
  const longest = sized.reduce((most, one) => Math.max(most, one.tokens), 0);
  const limit = { tokens: Math.max(tokens, longest), room };
  const attempts = byTaskOf(sized);
  const groups = attempts.filter(isMixed).flatMap((group) => pieces(group, limit));
  const others = attempts.filter((group) => !isMixed(group)).flat();
  for (let count = leastCount(sized, limit); ; count++) {
    const chunks = deal({ groups, others, limit, count });
    if (chunks)
      return chunks.map((chunk) => [...chunk.groups, ...interleaved(chunk.others)].map(({ rollout }) => rollout));
  }
}

function byTaskOf(sized: readonly Sized[]): Sized[][] {
  const tasks = new Map<string, Sized[]>();
  for (const one of sized) tasks.set(one.rollout.task, [...(tasks.get(one.rollout.task) ?? []), one]);
  return [...tasks.values()];
}

const isMixed = (group: readonly Sized[]) => group.some(({ passed }) => passed) && group.some(({ passed }) => !passed);
const leastCount = (sized: readonly Sized[], { tokens, room }: Limit): number => {
  const all = sizeOf(sized);
  return Math.max(Math.ceil(all.tokens / tokens), Math.ceil(all.needed / room));
};

type Size = Pick<Sized, 'tokens' | 'needed'>;
const sizeOf = (sized: readonly Size[]): Size => ({
  tokens: sized.reduce((total, { tokens }) => total + tokens, 0),
  needed: sized.reduce((total, { needed }) => total + needed, 0),
});
const fits = (sized: readonly Size[], limit: Limit): boolean => {
  const { tokens, needed } = sizeOf(sized);
  return tokens <= limit.tokens && needed <= limit.room;
};

const tooLongText = ({ rollout: { task, key }, needed }: Sized, room: number): string =>
  `analyst.contextTokens leaves room for trajectories of ${room} tokens, and one of task ${task} has ${needed} (${key}); ` +
  `raise contextTokens by ${Math.ceil((needed - room) / 0.9)} or more, or lower maxTokens`;

/** A group as it is, or, where it is longer than a chunk, in parts that mix its outcomes. */
function pieces(group: Sized[], limit: Limit): Sized[][] {
  if (fits(group, limit)) return [group];
  const parts: Sized[][] = [[]];
  for (const one of interleaved(group)) {
    const last = parts.at(-1) as Sized[];
    if (fits([...last, one], limit)) last.push(one);
    else parts.push([one]);
  }
  return parts;
}

/** Over `count` chunks: each goes where its outcome is rarest, the rarer outcome first. Undefined if they don't fit. */
function deal(o: { groups: Sized[][]; others: Sized[]; limit: Limit; count: number }): Chunk[] | undefined {
  const chunks = Array.from({ length: o.count }, () => new Chunk());
  const place = (units: readonly Sized[], to: 'groups' | 'others', load: (chunk: Chunk) => number): boolean => {
    const size = sizeOf(units);
    const lightest = chunks
      .filter((chunk) => fits([chunk, size], o.limit))
      .reduce<Chunk | undefined>((least, chunk) => (least && load(least) <= load(chunk) ? least : chunk), undefined);
    lightest?.add(units, to);
    return lightest !== undefined;
  };
  const passed = o.others.filter((one) => one.passed);
  const failed = o.others.filter((one) => !one.passed);
  const singles = passed.length < failed.length ? [...passed, ...failed] : [...failed, ...passed];
  const placed =
    o.groups.every((group) => place(group, 'groups', ({ tokens }) => tokens)) &&
    singles.every((one) => place([one], 'others', ({ counts }) => counts[one.passed ? 'passed' : 'failed']));
  return placed ? chunks : undefined;
}

/** Both outcomes spread evenly, each in its order. */
export function interleaved<One extends { passed: boolean }>(sized: readonly One[]): One[] {
  const placed = [true, false].flatMap((passed) => {
    const own = sized.filter((one) => one.passed === passed);
    return own.map((one, n) => ({ one, at: (n + 0.5) / own.length }));
  });
  return placed.sort((a, b) => a.at - b.at).map(({ one }) => one);
}
