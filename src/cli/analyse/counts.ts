/**
 * Comparisons of failed and passed conversations that need no language model: how often each has a property (a tool, an error, a length, an end),
 * and where attempts at one task part.
 */
import { canonical } from '../../store/hash';
import { callText } from '../../domain/messages';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { countsOf, type Estimate, groupBy, median, wilsonInterval } from '../../domain/statistics';

export interface Difference {
  /** A property of conversations, as in "calls renew". */
  what: string;
  /** Conversations that have it. */
  failed: number;
  passed: number;
  /** The share of the failed ones less that of the passed ones; all intervals hold together with 95%. Without passed ones: the failed ones' share. */
  share: Estimate;
}

/**
 * Returns the properties that some conversations have and others do not; those that differ most clearly come first. Without a passed conversation it
 * returns all properties.
 */
export function differencesIn(rollouts: readonly ScoredRollout[]): Difference[] {
  const passes = rollouts.filter(isSuccess).length;
  const fails = rollouts.length - passes;
  const long = passes === 0 ? Infinity : median(rollouts.map(({ messages }) => messages.length));
  const holders = new Map<string, Set<ScoredRollout>>();
  for (const rollout of rollouts)
    for (const what of propertiesOf(rollout, long)) holders.set(what, (holders.get(what) ?? new Set()).add(rollout));
  // A property of one conversation only is no pattern, and would widen the intervals of the others.
  const least = passes === 0 ? 0 : 2;
  for (const [what, { size }] of holders) if (Math.min(size, rollouts.length - size) < least) holders.delete(what);
  const sameHolders = groupBy(holders, ([, having]) => rollouts.map((one) => (having.has(one) ? 1 : 0)).join(''));
  // Bonferroni's correction.
  const confidence = 1 - 0.05 / (passes === 0 ? 1 : sameHolders.size);
  const differences = [...sameHolders.values()].map((same): Difference => {
    const having = [...same[0]![1]];
    const passed = having.filter(isSuccess).length;
    const failed = having.length - passed;
    const what = same.map(([property]) => property).join(' and ');
    return { what, failed, passed, share: shareOf({ failed, fails, passed, passes, confidence }) };
  });
  // Differences whose interval contains 0 have the same first rank and are sorted by size: the interval of a rare property ends near 0.
  const rank = ({ share: { low, high, value } }: Difference) => [Math.max(low, -high, 0), Math.abs(value)] as const;
  return differences
    .filter(({ share }) => share.value !== 0)
    .sort((a, b) => rank(b)[0] - rank(a)[0] || rank(b)[1] - rank(a)[1] || (a.what < b.what ? -1 : 1));
}

/** Newcombe's interval of a difference of two shares, from Wilson's intervals of each. */
function shareOf(o: Record<'failed' | 'fails' | 'passed' | 'passes' | 'confidence', number>): Estimate {
  const { failed, fails, passed, passes, confidence } = o;
  const one = wilsonInterval({ successes: failed, trials: fails, confidence });
  if (passes === 0) return one;
  const other = wilsonInterval({ successes: passed, trials: passes, confidence });
  const value = one.value - other.value;
  return {
    value,
    low: value - Math.hypot(one.value - one.low, other.high - other.value),
    high: value + Math.hypot(one.high - one.value, other.value - other.low),
    n: fails + passes,
  };
}

/** Matches the beginning of a tool's result that reports an error, but no field such as `"error": null`. */
const ERROR =
  /^.{0,60}?(error|exception|traceback|fail(ed|ure)|invalid|no such|not found|denied|timed out)(?!\w*["']?:\s*(null|none|false|0|""|\[\]))/is;

export const isError = (result: string): boolean => ERROR.test(result);

/** The same for calls whose arguments are the same in another order. */
const keyOf = (call: { name: string; arguments: unknown }) => `${call.name} ${canonical(call.arguments)}`;

const callsOf = ({ messages }: Pick<ScoredRollout, 'messages'>) =>
  messages.flatMap((one, message) =>
    one.role === 'assistant'
      ? (one.toolCalls ?? []).map((call) => ({ ...call, message, text: callText(call), key: keyOf(call) }))
      : [],
  );

/** `long`: the median number of messages of all conversations. */
function propertiesOf(rollout: ScoredRollout, long: number): string[] {
  const { messages, reference } = rollout;
  const calls = callsOf(rollout);
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  const repeats = [...countsOf(calls.map(({ key }) => key)).values()].some((count) => count > 1);
  const made = new Set(calls.map(({ key }) => key));
  const missing = reference?.actions.filter((action) => !made.has(keyOf(action))) ?? [];
  const last = messages.findLast(({ role }) => role !== 'system');
  const words = messages.findLast(({ role }) => role === 'assistant')?.content.trim() ?? '';
  return [
    ...calls.map(({ name }) => `calls ${name}`),
    ...messages.flatMap((one) =>
      one.role === 'tool' && one.requestor === undefined && isError(one.content)
        ? [`gets an error from ${names.get(one.toolCallId) ?? 'a tool'}`]
        : [],
    ),
    ...(calls.length === 0 ? ['calls no tool'] : []),
    ...(repeats ? ['makes a call twice with the same arguments'] : []),
    ...missing.map(({ name }) => `does not make the reference's call of ${name}`),
    ...(missing.length > 0 ? ['does not make every call of its reference'] : []),
    ...(messages.length > long ? [`has more than ${long} messages, the median`] : []),
    ...(last?.role === 'tool' ? ['ends with the result of a tool'] : []),
    ...(last?.role === 'assistant' && last.toolCalls?.length ? ['ends with a call that has no result'] : []),
    ...(words.endsWith('?') ? ['ends with a question of the agent'] : []),
    ...(words === '' ? ['ends without words of the agent'] : []),
  ];
}

/** A failed and a passed attempt at one task, and where they part. */
export interface Parting {
  task: string;
  failed: string;
  passed: string;
  /** Calls that both begin with, in order and arguments. */
  same: number;
  /** The next call of each, and the index of its message; absent where there is none. */
  then: Record<'failed' | 'passed', { call: string; message: number } | undefined>;
}

/** Returns for each task with both outcomes the failed and the passed attempt that are alike for the most calls. */
export function partingsIn(rollouts: readonly ScoredRollout[]): Parting[] {
  return [...groupBy(rollouts, ({ task }) => task)].flatMap(([task, attempts]): Parting[] => {
    const known = attempts.map((attempt) => ({ attempt, calls: callsOf(attempt) }));
    const passed = known.filter(({ attempt }) => isSuccess(attempt));
    const pairs = known
      .filter(({ attempt }) => !isSuccess(attempt))
      .flatMap((one) => passed.map((other) => ({ one, other, same: sameCalls(one.calls, other.calls) })));
    const [first, ...others] = pairs;
    if (!first) return [];
    const { one, other, same } = others.reduce((best, pair) => (pair.same > best.same ? pair : best), first);
    const next = ({ calls }: typeof one) => {
      const call = calls[same];
      return call && { call: call.text, message: call.message };
    };
    const then = { failed: next(one), passed: next(other) };
    return [{ task, failed: one.attempt.key, passed: other.attempt.key, same, then }];
  });
}

function sameCalls(one: readonly { key: string }[], other: readonly { key: string }[]): number {
  const first = one.findIndex(({ key }, n) => key !== other[n]?.key);
  return first < 0 ? one.length : first;
}
