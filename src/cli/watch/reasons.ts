/** Why something failed, in people's words. Invariant: what a person can act on, never a type's name where there are words for it. */
import { ApplicationFailure, TimeoutFailure } from '@temporalio/common';
import { failureTypes } from '../../domain/failures';
import { messageOf } from '../errors';

const LOST = 'its worker was lost';
const timeouts: Record<string, string> = {
  // A worker that hangs is given up like one that is gone.
  HEARTBEAT: LOST,
  START_TO_CLOSE: 'it took longer than its limit',
};
/** Those whose message says less than these words. */
const types: Record<string, string> = { WorkerDied: LOST, WorkerShutdown: 'its worker was stopped' };

/** Of the chain of causes the first that the project knows by its type, else the innermost. */
function causeOf(error: unknown): unknown {
  let at = error;
  while (!isKnown(at) && at instanceof Error && at.cause instanceof Error) at = at.cause;
  return at;
}

export function reasonInWords(error: unknown): string {
  const at = causeOf(error);
  if (at instanceof TimeoutFailure) return timeouts[at.timeoutType ?? ''] ?? messageOf(at);
  return at instanceof ApplicationFailure ? inWords(at.type ?? '', messageOf(at)) : messageOf(at);
}

export const inWords = (type: string, message: string): string => types[type] ?? message;

/** The type of that cause, where the project knows it. */
export function failureTypeOf(error: unknown): string | undefined {
  const at = causeOf(error);
  return at instanceof ApplicationFailure && isKnown(at) ? (at.type ?? undefined) : undefined;
}

const isKnown = (error: unknown): boolean =>
  error instanceof TimeoutFailure || (error instanceof ApplicationFailure && (error.type ?? '') in failureTypes);
