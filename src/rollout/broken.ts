/** What is said of a batch of which some rollouts stayed broken, where that will not do. */
import { isRetryable, OutsideFailure, type FailureType } from '../domain/failures';
import type { Rollout } from '../domain/rollout';

/**
 * The failure of a batch, with how many broke of what and how the first one did; undefined if none broke. It may be tried again if one of them
 * may: else it is of the first one's type, which would come again.
 */
export function brokenFailure(records: readonly Rollout[], what: string): OutsideFailure | undefined {
  const broken = records.flatMap((record) => (record.status === 'broken' ? [record] : []));
  const [first] = broken;
  if (!first) return undefined;
  const retryable = broken.find(({ error }) => isRetryable(error.type));
  const { task, error } = retryable ?? first;
  const types = [...new Set(broken.map((one) => one.error.type))].map(
    (type) => `${type} ${broken.filter((one) => one.error.type === type).length}`,
  );
  const text = `${broken.length} of ${records.length} rollouts of ${what} are broken (${types.join(', ')}), task ${task}: ${error.message}`;
  return new OutsideFailure(retryable ? 'RolloutsBroken' : (error.type as FailureType), text);
}
