/**
 * Where a failure begins, in an answer to a request for labels. Invariant: every failed trajectory has a beginning at a message that was shown,
 * and no passed one has.
 */
import { z } from 'zod';
import { failureOriginSchema, type FailureOrigin } from '../../domain/capability';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import type { Read } from '../../language-model/answer';
import { messageIn } from './checks';

/** `blamesOther`: it is put down to the environment or the user, whatever else is wrong with it. */
type ReadFailure = Read<FailureOrigin | undefined> & { blamesOther: boolean };

const given = z.record(z.string(), z.unknown());
const { of: culprit } = failureOriginSchema.shape;

export function readFailure(o: {
  id: string;
  given: unknown;
  rollouts: ReadonlyMap<string, ScoredRollout>;
}): ReadFailure {
  const { id, rollouts } = o;
  const at = `${id}.failure`;
  const rollout = rollouts.get(id);
  if (rollout && isSuccess(rollout)) {
    if (o.given === null || o.given === undefined) return { value: undefined, blamesOther: false };
    return { defects: [`${at}: ${id} PASSED, so there is no failure; write null and label it`], blamesOther: false };
  }
  const fields = given.safeParse(o.given).data;
  if (!fields)
    return {
      defects: [
        `${at} is ${JSON.stringify(o.given) ?? 'missing'}, but ${id} FAILED; write {"of": "agent", "message": the number of the message in which the failure begins, "reason": "..."}`,
      ],
      blamesOther: false,
    };
  const of = culprit.safeParse(fields['of']).data;
  const message = messageIn({ rollout: id, place: fields['message'] ?? null, at, rollouts });
  const reason = z.string().trim().min(1).safeParse(fields['reason']).data;
  const blamesOther = of !== undefined && of !== 'agent';
  if (of !== undefined && 'value' in message && reason !== undefined)
    return { value: { of, message: message.value, reason }, blamesOther };
  return {
    defects: [
      ...(of === undefined
        ? [`${at}.of is ${JSON.stringify(fields['of']) ?? 'missing'}; write "agent", "environment" or "user"`]
        : []),
      ...('defects' in message ? message.defects : []),
      ...(reason === undefined ? [`${at} has no reason; say in one line why the failure begins there`] : []),
    ],
    blamesOther,
  };
}
