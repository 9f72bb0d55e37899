/** People's marks of where a failure begins, against the message that the passes say together. Invariant: only failures with both are compared. */
import type { LabelPass } from '../../domain/capability';
import { isMark, type HumanLabel } from './human-labels';
import { beginningsIn } from './tally';

/** Shares of the `compared` failures. */
export interface ComparedBegins {
  compared: number;
  same?: number;
  within1?: number;
  within2?: number;
}

/** Undefined where people marked none. */
export function compareBegins(o: {
  labels: readonly HumanLabel[];
  passes: readonly LabelPass[];
}): ComparedBegins | undefined {
  const marks = o.labels.filter(isMark);
  if (marks.length === 0) return undefined;
  const begins = beginningsIn(o.passes);
  const apart = marks.flatMap(({ conversation, message }) => {
    const own = begins.get(conversation);
    return own ? [Math.abs(own.message - message)] : [];
  });
  const compared = apart.length;
  if (compared === 0) return { compared };
  const within = (most: number) => apart.filter((distance) => distance <= most).length / compared;
  return { compared, same: within(0), within1: within(1), within2: within(2) };
}
