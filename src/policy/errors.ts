/** The one mapping from what the openai client throws to failure types. */
import { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai';
import { OutsideFailure, reasonOf } from '../rollout/failure';

/** vLLM tells it in words only. */
const CONTEXT_LENGTH = /maximum context length|context_length_exceeded/i;

/** Aborts are passed through: they are our own doing. */
export function policyFailure({ error, url }: { error: unknown; url: string }): unknown {
  if (error instanceof OutsideFailure) return error;
  if (error instanceof APIConnectionTimeoutError) {
    return new OutsideFailure('PolicyServerTimeout', `policy server ${url}: no answer in time`, error);
  }
  if (error instanceof APIConnectionError) {
    const cause = error.cause === undefined ? error.message : reasonOf(error.cause);
    return new OutsideFailure('PolicyServerUnavailable', `policy server ${url}: ${cause}`, error);
  }
  if (!(error instanceof APIError) || error.status === undefined) return error;
  const message = `policy server ${url}: ${error.message}`;
  if (error.status >= 500) return new OutsideFailure('PolicyServerError', message, error);
  if (error.status === 429) return new OutsideFailure('PolicyServerBusy', message, error);
  if (error.status === 404) return new OutsideFailure('PolicyNotLoaded', message, error);
  if (error.code === 'context_length_exceeded' || CONTEXT_LENGTH.test(error.message)) {
    return new OutsideFailure('ContextLengthExceeded', message, error);
  }
  return new OutsideFailure('PolicyRequestRejected', message, error);
}
