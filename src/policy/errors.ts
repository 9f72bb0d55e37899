/** The one mapping from what the policy server, or the way to it, does to failure types. */
import { errors } from 'undici';
import { z } from 'zod';
import { OutsideFailure, reasonOf } from '../domain/failures';

/** vLLM tells it in words only. */
const CONTEXT_LENGTH = /maximum context length|context_length_exceeded/i;
const MAX_TEXT = 500;

const errorSchema = z.object({ error: z.object({ message: z.string(), code: z.unknown().optional() }) });

/** An answer with a status other than 2xx; OpenAI's shape where it has it. */
export function refusal({ url, status, text }: { url: string; status: number; text: string }): OutsideFailure {
  const { message: said, code } = errorOf(text);
  const message = `policy server ${url}: ${status} ${said}`;
  if (status >= 500) return new OutsideFailure('PolicyServerError', message);
  if (status === 429) return new OutsideFailure('PolicyServerBusy', message);
  if (status === 404) return new OutsideFailure('PolicyNotLoaded', message);
  if (code === 'context_length_exceeded' || CONTEXT_LENGTH.test(said)) {
    return new OutsideFailure('ContextLengthExceeded', message);
  }
  return new OutsideFailure('PolicyRequestRejected', message);
}

function errorOf(text: string): { message: string; code?: unknown } {
  try {
    return errorSchema.parse(JSON.parse(text)).error;
  } catch {
    return { message: text.slice(0, MAX_TEXT) };
  }
}

/** No answer, or not all of it. */
export function failedExchange({ url, error }: { url: string; error: unknown }): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
    return new OutsideFailure('PolicyServerTimeout', `policy server ${url}: no answer in time`, error);
  }
  return new OutsideFailure('PolicyServerUnavailable', `policy server ${url}: ${reasonOf(error)}`, error);
}

export const invalidAnswer = ({ url, text }: { url: string; text: string }): OutsideFailure =>
  new OutsideFailure('PolicyAnswerInvalid', `policy server ${url}: the answer is no JSON: ${text.slice(0, MAX_TEXT)}`);
