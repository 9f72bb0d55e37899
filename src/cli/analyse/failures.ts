/**
 * What each failed conversation lacks, and where its failure begins. Invariant: message numbers are indexes into the conversation's messages
 * as they stand in the file; one that no message has is left out.
 */
import { beginningOf, commonest, type LabelPass } from '../../domain/capability';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { excerpt } from './excerpt';
import type { AnalysedFailure, LackedCapability } from './result';
import { numberOf, type Readings, type Votes } from './tally';

interface Input {
  rollouts: readonly ScoredRollout[];
  ids: ReadonlyMap<string, string>;
  passes: readonly LabelPass[];
  /** Of the passes. */
  readings: Readings;
}

export const failuresOf = (input: Input): AnalysedFailure[] =>
  input.rollouts.filter((rollout) => !isSuccess(rollout)).map((rollout) => failureOf(rollout, input));

function failureOf(rollout: ScoredRollout, { ids, passes, readings }: Input): AnalysedFailure {
  const { key, task, reward, messages } = rollout;
  const lacking = [...readings]
    .flatMap(([capability, votes]) => lackedIn({ rollout, passes, capability, votes: votes.get(key) }) ?? [])
    .sort((a, b) => b.votes - a.votes || (a.capability < b.capability ? -1 : 1));
  const told = passes.flatMap(({ failures }) => failures?.[key] ?? []);
  const begins = beginningOf(told.filter(({ message }) => message < messages.length));
  return {
    conversation: ids.get(key) ?? key,
    task,
    reward,
    messages: messages.length,
    lacking,
    ...(begins && {
      begins: {
        ...{ message: begins.message, votes: begins.votes, reason: begins.reason, of: begins.of },
        context: excerpt({ messages, around: begins.message }),
      },
    }),
  };
}

/** Undefined where no pass says LACKING. */
function lackedIn(o: {
  rollout: ScoredRollout;
  passes: readonly LabelPass[];
  capability: string;
  votes: Votes | undefined;
}): LackedCapability | undefined {
  const { rollout, passes, capability, votes } = o;
  if (!votes || votes.LACKING === 0) return undefined;
  const reasons = passes.flatMap((pass) => {
    const given = pass.reasons?.[capability]?.[rollout.key];
    if (!given || !pass.labels[capability]?.lacking_failed.includes(rollout.key)) return [];
    const { reason, message } = given;
    return [
      { pass: numberOf(pass), reason, ...(message !== undefined && message < rollout.messages.length && { message }) },
    ];
  });
  const step = commonest(reasons.flatMap(({ message }) => message ?? []));
  return {
    capability,
    votes: votes.LACKING,
    passes: votes.LACKING + votes.PRESENT + votes.NA,
    ...(step && { message: step.message }),
    reasons,
  };
}
