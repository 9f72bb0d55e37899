/**
 * Rollouts that broke for reasons outside the policy: of what, and when they are too many for their batch. Invariant: there is one rule for
 * all batches, and whoever says that rollouts broke says how many, of what and where.
 */
import { isRetryable, OutsideFailure, retryOf, type FailureType } from './failures';
import type { Rollout } from './rollout';

/** Broken rollouts whose type and message are the same but for names and numbers. */
export interface BrokenCause {
  type: string;
  /** Of one of them. */
  message: string;
  count: number;
  /** Its task. */
  task: string;
}

/** Characters of a cause's message: an environment's last words may be long. */
const LONGEST = 400;
/** Causes that are told one by one. */
export const TOLD = 3;

/** As long as nothing is scored, so many broken rollouts say that the rest would break too. */
const HOPELESS = 16;
/** Fewer broken ones are never too many where some are scored: in a small batch their share says little. */
const FEWEST = 4;

/** The one rule: whether a batch stops. `share`: `rollouts.maxBrokenShare` of the campaign. */
export const tooManyBroken = (o: { broken: number; scored: number; total: number; share: number }): boolean =>
  o.scored === 0 ? o.broken >= Math.min(HOPELESS, o.total) : o.broken >= FEWEST && o.broken > o.share * o.total;

/** The most frequent causes first. */
export function causesOf(found: readonly BrokenCause[]): BrokenCause[] {
  const causes = new Map<string, BrokenCause>();
  for (const { type, message, count, task } of found) {
    const key = `${type} ${message.replaceAll(task, '').replaceAll(/"[^"]*"|'[^']*'|\d+/g, '#')}`;
    const known = causes.get(key);
    if (known) known.count += count;
    else causes.set(key, { type, message: message.replaceAll(/\s+/g, ' ').slice(0, LONGEST), count, task });
  }
  return [...causes.values()].sort((a, b) => b.count - a.count);
}

export const causesIn = (records: readonly Rollout[]): BrokenCause[] =>
  causesOf(records.flatMap((one) => (one.status === 'broken' ? [{ ...one.error, count: 1, task: one.task }] : [])));

/** `242 BadEnvironment, as at task n-7: ...; 3 UserSimulatorFailed, ...; 2 of other causes`: of so many in all. */
export function causesText(causes: readonly BrokenCause[], broken: number): string {
  const others = causes.slice(0, TOLD).reduce((rest, { count }) => rest - count, broken);
  return [
    ...causes
      .slice(0, TOLD)
      .map(({ type, message, count, task }) => `${count} ${type}, as at task ${task}: ${message}`),
    ...(others > 0 ? [`${others} of other causes`] : []),
  ].join('; ');
}

/** The failure of a batch that lacks those that broke; undefined if none did. */
export function brokenFailure(records: readonly Rollout[], what: string): OutsideFailure | undefined {
  const broken = records.filter(({ status }) => status === 'broken');
  return broken.length === 0
    ? undefined
    : failureOf(broken, `${what}: ${broken.length} of ${records.length} rollouts broke`);
}

/** The failure of a batch that has stopped. */
export function tooManyFailure(
  broken: readonly Rollout[],
  { what, scored, total, share }: { what: string; scored: number; total: number; share: number },
): OutsideFailure {
  const first = `the first ${broken.length + scored} rollouts`;
  const limit = `${percent(share)} of ${total}, which is rollouts.maxBrokenShare`;
  return failureOf(
    broken,
    scored === 0
      ? `${what}: none of ${first} was scored`
      : `${what}: ${broken.length} of ${first} broke, more than ${limit}; mend the cause or raise the limit, what is scored is kept`,
  );
}

const percent = (share: number): string => `${Number((100 * share).toFixed(1))}%`;

/**
 * It may be tried again if one of them may. Its type is theirs where they have one in common, or were all outside; else the first one's, if that
 * would come again.
 */
function failureOf(broken: readonly Rollout[], text: string): OutsideFailure {
  const causes = causesIn(broken);
  const types = causes.map(({ type }) => type as FailureType);
  const outside = types.every((type) => retryOf(type) === 'outside');
  const type = !outside && types.some(isRetryable) && new Set(types).size > 1 ? 'RolloutsBroken' : types[0]!;
  return new OutsideFailure(type, `${text}: ${causesText(causes, broken.length)}`);
}
