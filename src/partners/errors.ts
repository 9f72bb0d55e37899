/**
 * The one mapping from what a partner's endpoint does to failure types. Invariant: a refusal names the field of the campaign file that
 * mends it, and no message holds the key.
 */
import { APIConnectionError, APIError } from 'openai';
import type { ChatModel } from '../domain/chat-model';
import type { FailureType } from '../domain/failures';
import { OutsideFailure, reasonOf } from '../domain/failures';

export type Role = 'user' | 'judge';

const failures = {
  user: { failed: 'UserSimulatorFailed', rejected: 'UserSimulatorRejected' },
  judge: { failed: 'JudgeFailed', rejected: 'JudgeRejected' },
} as const satisfies Record<Role, Record<string, FailureType>>;

/** Rate limits, and servers that are starting or going down. */
const NO_CAPACITY = new Set([429, 502, 503, 504]);
/** 4xx that say nothing of the request. */
const PASSING = new Set([408, 409, 425]);

export interface Partner {
  role: Role;
  model: ChatModel;
  key: string | undefined;
}

/** An answer that came and can't be used. */
export const unusable = ({ role, model }: Partner, problem: string): OutsideFailure =>
  new OutsideFailure(failures[role].failed, `target.${role} (${model.model} at ${model.url}): ${problem}`);

export const lateAnswer = (partner: Partner): OutsideFailure =>
  unusable(partner, `no answer within ${partner.model.timeoutSeconds} s (target.${partner.role}.timeoutSeconds)`);

export function partnerFailure(partner: Partner, error: unknown): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  const { role, model, key } = partner;
  const { failed, rejected } = failures[role];
  const failure = (type: FailureType, problem: string) => {
    const message = `target.${role} (${model.model} at ${model.url}): ${problem}`;
    return new OutsideFailure(type, key ? message.replaceAll(key, '(key)') : message);
  };
  if (error instanceof APIConnectionError) return failure('PartnerUnavailable', reasonOf(rootOf(error)));
  if (!(error instanceof APIError) || error.status === undefined) return failure(failed, reasonOf(error));
  const { status, message } = error as APIError<number>;
  if (NO_CAPACITY.has(status)) return failure('PartnerUnavailable', message);
  if (status >= 500 || PASSING.has(status)) return failure(failed, message);
  const fix = remedy(partner, status);
  return failure(rejected, fix ? `${message}; ${fix}` : message);
}

/** fetch says "fetch failed", and why it did in its cause. */
function rootOf(error: Error): unknown {
  let root: unknown = error;
  while (typeof root === 'object' && root !== null && 'cause' in root && root.cause !== undefined) root = root.cause;
  return root;
}

function remedy({ role, model }: Partner, status: number): string | undefined {
  if (status === 404) return `correct target.${role}.model or target.${role}.url`;
  if (status !== 401 && status !== 403) return undefined;
  return model.apiKeyEnv === undefined
    ? `name the variable that holds its key in target.${role}.apiKeyEnv`
    : `put a key that is valid there into ${model.apiKeyEnv}`;
}
