/**
 * What the analyst's requests show, and how they are asked. Invariants: what stays the same from request to request stands first, byte for byte;
 * every rollout is in exactly one chunk; attempts at one task that ended differently stand side by side, in one chunk if they fit into one;
 * failures and successes are spread over all chunks; chunks are a function of the rollouts, whatever their order.
 */
import type { EnvironmentDescription } from '../../domain/environment';
import { OutsideFailure } from '../../domain/failures';
import type { ToolSchema } from '../../domain/messages';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { byTask, compactOne, type Lengths } from '../../domain/transcript';
import type { Work } from '../../domain/work';
import type { Prompts } from '../../language-model/prompts';
import type { Asking, LanguageModel, Ledger } from '../../language-model/types';

/** The analyst's options, opened. */
export interface Config {
  model: LanguageModel;
  prompts: Prompts;
  contextTokens: number;
  maxTokens: number;
  chunkTokens: number;
  labelsPerChunk: number;
  lengths: Lengths;
  repairs: number;
}

/** The target as prompts tell it. */
export const targetText = ({ policy, tools }: Pick<EnvironmentDescription, 'policy' | 'tools'>) => ({
  policy: policy.trim() || '(none is written down)',
  tools: tools.map(toolText).join('\n') || '(none)',
});

const toolText = ({ name, description, parameters, annotations }: ToolSchema): string =>
  `${name}${annotations?.readOnlyHint ? ' (changes nothing)' : ''}: ${description}\n  parameters: ${JSON.stringify(parameters)}`;

/** As the model's answers name them. */
export const byShortId = (
  rollouts: readonly ScoredRollout[],
  ids: ReadonlyMap<string, string>,
): Map<string, ScoredRollout> => new Map(rollouts.map((rollout) => [ids.get(rollout.key) ?? rollout.key, rollout]));

/**
 * What a model wrote, for people: `r14.16`, which only its prompt knew, is message 16 of a task and attempt; of the trajectory that the text is
 * about (`own`) the number is enough.
 */
export const readable = (text: string, rollouts: ReadonlyMap<string, ScoredRollout>, own: string): string =>
  text.replace(/\b(r\d+)(?:\.(\d+))?\b/g, (written, id: string, message?: string) => {
    const rollout = rollouts.get(id);
    if (!rollout) return written;
    const whole = `task ${rollout.task}, attempt ${rollout.attempt}`;
    if (message === undefined) return whole;
    return id === own ? `message ${message}` : `message ${message} of ${whole}`;
  });

/** Tokens that a request has left for what is not in `values`; its reply is allowed for, and a tenth for the estimate's error. */
export function roomLeft(
  { prompts, contextTokens, maxTokens }: Pick<Config, 'prompts' | 'contextTokens' | 'maxTokens'>,
  name: string,
  values: Record<string, string>,
): number {
  return Math.floor(0.9 * (contextTokens - maxTokens)) - promptTokens(prompts.render(name, values));
}

/** The same. @throws BadInput where not even one short trajectory fits. */
export function roomIn(
  config: Pick<Config, 'prompts' | 'contextTokens' | 'maxTokens'>,
  name: string,
  values: Record<string, string>,
): number {
  const room = roomLeft(config, name, values);
  if (room >= LEAST_ROOM) return room;
  const { contextTokens, maxTokens } = config;
  const rest = promptTokens(config.prompts.render(name, values));
  const wanted = maxTokens + Math.ceil((rest + LEAST_ROOM) / 0.9);
  throw new OutsideFailure(
    'BadInput',
    `analyst.contextTokens is ${contextTokens}, of which maxTokens are ${maxTokens} and prompt, policy and tools about ${rest}: ` +
      `no room for trajectories; set contextTokens to ${wanted} or more (and take a model that has them), or lower maxTokens`,
  );
}

export const promptTokens = (messages: readonly { content: string }[]): number =>
  messages.reduce((sum, { content }) => sum + tokensOf(content), 0);

/** One short trajectory. */
export const LEAST_ROOM = 1000;

/** Requests at once; each one that is done is progress. */
export async function askAll<Item, Answer>(o: {
  items: readonly Item[];
  step: string;
  ledger: Ledger;
  work: Work;
  /** Requests that are done, and those that will be made, beside these. */
  before?: number;
  after?: number;
  ask: (item: Item, asking: Asking) => Promise<Answer>;
}): Promise<Answer[]> {
  const { items, step, ledger, work, before = 0, after = 0, ask } = o;
  let done = before;
  const asking: Asking = { ledger, step, signal: work.signal };
  // The others go on where one fails: what is being paid for is kept, and found again when the step is tried again.
  const settled = await Promise.allSettled(
    items.map(async (item) => {
      const answer = await ask(item, asking);
      work.progress(++done, before + items.length + after);
      return answer;
    }),
  );
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  // What no retry mends comes before what one does.
  if (failures.length > 0) throw failures.find((one) => one instanceof OutsideFailure && !one.retryable) ?? failures[0];
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

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

/** What a request needs for a trajectory, and for its id in the list of those that are asked for. */
export function sizeIn(o: Parameters<typeof compactOne>[0]): Pick<Sized, 'tokens' | 'needed'> {
  const tokens = tokensOf(compactOne(o));
  return { tokens, needed: tokens + tokensOf(`${o.id}, `) };
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
    return { rollout, passed: isSuccess(rollout), ...sizeIn({ rollout, id, lengths }) };
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

/**
 * A chunk in parts of nearly equal length, none longer than `most`, in order. Attempts at one task that stand side by side stay in one part,
 * unless they alone are more than that: then each of their parts mixes outcomes.
 */
export function partsAtTasks(chunk: readonly ScoredRollout[], most: number): ScoredRollout[][] {
  const runs = runsOf(chunk).flatMap((run) => (run.length > most ? split(mixed(run), most) : [run]));
  const items = runs.flat();
  const borders = runs.reduce<number[]>((ends, run) => [...ends, (ends.at(-1) ?? 0) + run.length], [0]);
  for (let count = Math.ceil(items.length / most); ; count++) {
    const cuts = Array.from({ length: count + 1 }, (_, n) => nearest(borders, (n * items.length) / count));
    const parts = cuts.slice(1).map((end, n) => items.slice(cuts[n], end));
    // With as many parts as items each run is a part.
    if (parts.every(({ length }) => length <= most)) return parts.filter(({ length }) => length > 0);
  }
}

function runsOf(chunk: readonly ScoredRollout[]): ScoredRollout[][] {
  const runs: ScoredRollout[][] = [];
  for (const rollout of chunk) {
    const last = runs.at(-1);
    if (last?.[0]?.task === rollout.task) last.push(rollout);
    else runs.push([rollout]);
  }
  return runs;
}

const mixed = (run: readonly ScoredRollout[]): ScoredRollout[] =>
  interleaved(run.map((rollout) => ({ rollout, passed: isSuccess(rollout) }))).map(({ rollout }) => rollout);

/** Of two that are as near, the later. */
const nearest = (borders: readonly number[], place: number): number =>
  borders.reduce((best, border) => (Math.abs(border - place) <= Math.abs(best - place) ? border : best), 0);

/** Parts of nearly equal length, none longer than `most`, in order. */
export function split<Item>(items: readonly Item[], most: number): Item[][] {
  const parts = Math.ceil(items.length / most);
  return Array.from({ length: parts }, (_, n) =>
    items.slice(Math.round((n * items.length) / parts), Math.round(((n + 1) * items.length) / parts)),
  );
}
