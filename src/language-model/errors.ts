/** The one mapping from what a language model's endpoint does to failure types. Invariant: a refusal names the field that mends it. */
import type { LanguageModelSpec } from '../domain/endpoints';
import { isFailure, OutsideFailure, type FailureType } from '../domain/failures';
import { keyOf, remedyOf, troubleOf } from './endpoint';

/** A model as errors name it: `field` is that of the campaign file, such as `analyst`. */
export interface Named {
  field: string;
  spec: LanguageModelSpec;
  key: string | undefined;
}

export const modelFailure = (
  { field, spec }: Pick<Named, 'field' | 'spec'>,
  failure: { type: FailureType; problem: string; retryAfterMs?: number | undefined },
): OutsideFailure => {
  const { type, problem, retryAfterMs } = failure;
  return new OutsideFailure(type, `${field} (${spec.model} at ${spec.url}): ${problem}`, undefined, retryAfterMs);
};

/** What every request would meet, as a refused key: it is about the campaign, and no capability's or pass's own. */
export function sentKeyOf(named: Pick<Named, 'field' | 'spec'>): string | undefined {
  const { field, spec } = named;
  try {
    return keyOf(`${field}.apiKeyEnv`, spec.apiKeyEnv);
  } catch (error) {
    if (!isFailure(error, 'BadInput')) throw error;
    throw modelFailure(named, { type: 'LanguageModelRejected', problem: error.message });
  }
}

/** No cause is passed on: what a client's error holds beside its message may be anything. */
export function failureOf(named: Named, error: unknown): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  const { what, status, reason, retryAfterMs } = troubleOf(error, named.key);
  if (what === 'no connection' || what === 'no capacity' || what === 'passing')
    return modelFailure(named, { type: 'LanguageModelUnavailable', problem: reason, retryAfterMs });
  if (what === 'failed' || status === undefined)
    return modelFailure(named, {
      type: 'LanguageModelFailed',
      problem: `${reason}${pageFix(named, reason)}`,
      retryAfterMs,
    });
  const problem = `${reason}; ${remedy(named, { status, reason })}`;
  return modelFailure(named, { type: 'LanguageModelRejected', problem });
}

const pageFix = ({ field }: Named, reason: string): string =>
  /an HTML page/.test(reason) ? `; if it goes on, correct ${field}.url: the API's own, such as https://HOST/v1` : '';

/** Each try is paid for. */
export const noMore = ({ field, spec }: Named, { failure, times }: { failure: OutsideFailure; times: number }) => {
  const fix = `raise ${field}.timeoutSeconds (${spec.timeoutSeconds}), lower ${field}.maxTokens (${spec.maxTokens}) or see to its endpoint`;
  const message = `${failure.message}; ${times} times in a row, so this question is not asked again: ${fix}, and run the same command`;
  return new OutsideFailure('RepliesLost', message);
};

export const silent = (named: Named): OutsideFailure => {
  const { timeoutSeconds } = named.spec;
  const problem = `no word of a reply for ${timeoutSeconds} s (${named.field}.timeoutSeconds)`;
  return modelFailure(named, { type: 'LanguageModelFailed', problem });
};

/** Fields of a request that not every model takes, and what is sent in their place. */
const REPLACED: Record<string, string> = { max_tokens: ', max_completion_tokens: N' };

function remedy({ field, spec }: Named, { status, reason }: { status: number; reason: string }): string {
  const known = remedyOf({ field, apiKeyEnv: spec.apiKeyEnv, status });
  if (known) return known;
  if (
    status === 413 ||
    /context.{0,20}(length|window|size)|(prompt|input|request).{0,20}too (long|large)/i.test(reason)
  )
    return `lower ${field}.contextTokens (${spec.contextTokens}), of which ${field}.maxTokens (${spec.maxTokens}) are the reply's`;
  const refused = [
    'max_tokens',
    'temperature',
    'seed',
    'stream_options',
    'stream',
    ...Object.keys(spec.parameters),
  ].find((name) => new RegExp(`\\b${name}\\b`).test(reason));
  return refused === undefined
    ? `correct ${field}.model or ${field}.parameters`
    : `if it does not take ${refused}, set ${field}.parameters: {${refused}: null${REPLACED[refused] ?? ''}}`;
}
