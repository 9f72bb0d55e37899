/**
 * Where a failure begins, as several passes say it together. Invariants: the message comes from passes that blame whom most blame; nothing is
 * taken from the agent unless more passes say so, and of several messages the earliest counts.
 */
import type { FailureOrigin } from './capability';

export interface Beginning extends FailureOrigin {
  /** Passes that name this message, of those that blame the same. */
  votes: number;
  /** Passes that blame the same. */
  blaming: number;
}

/** `origins`: one of each pass that tells it, in the order of the passes. Undefined without any. The reason is the first that names the message. */
export function beginningOf(origins: readonly FailureOrigin[]): Beginning | undefined {
  const counts = (['agent', 'environment', 'user'] as const).map((of) => origins.filter((one) => one.of === of));
  const blaming = counts.reduce((most, own) => (own.length > most.length ? own : most));
  const step = commonest(blaming.map(({ message }) => message));
  const told = blaming.find(({ message }) => message === step?.message);
  return step && told && { ...told, votes: step.votes, blaming: blaming.length };
}

/** The message that most name, of several the earliest. */
export function commonest(messages: readonly number[]): { message: number; votes: number } | undefined {
  const counts = new Map<number, number>();
  for (const message of messages) counts.set(message, (counts.get(message) ?? 0) + 1);
  const [first] = [...counts].sort(([a, votesA], [b, votesB]) => votesB - votesA || a - b);
  return first && { message: first[0], votes: first[1] };
}
