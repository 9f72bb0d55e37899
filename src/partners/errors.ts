/**
 * The one mapping from what a partner's endpoint does to failure types. Invariant: a refusal names the field of the campaign file that
 * mends it, and no message holds the key.
 */
import type { ChatModel } from '../domain/endpoints';
import { type FailureType, OutsideFailure } from '../domain/failures';
import { remedyOf, troubleOf } from '../language-model/endpoint';

export type Role = 'user' | 'judge';

const failures = {
  user: { failed: 'UserSimulatorFailed', rejected: 'UserSimulatorRejected' },
  judge: { failed: 'JudgeFailed', rejected: 'JudgeRejected' },
} as const satisfies Record<Role, Record<string, FailureType>>;

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
  const { what, status, reason } = troubleOf(error, key);
  const failure = (type: FailureType, problem: string) =>
    new OutsideFailure(type, `target.${role} (${model.model} at ${model.url}): ${problem}`);
  if (what === 'no connection' || what === 'no capacity') return failure('PartnerUnavailable', reason);
  if (what !== 'refused' || status === undefined) return failure(failed, reason);
  const fix = remedyOf({ field: `target.${role}`, apiKeyEnv: model.apiKeyEnv, status });
  return failure(rejected, fix ? `${reason}; ${fix}` : reason);
}
