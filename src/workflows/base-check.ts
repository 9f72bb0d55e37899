/** A base model that can't work on the target stops a campaign before anything is spent, unless it was forced to go on. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { RollOutInput } from '../activities/types';
import { unsuitedText, type BaseCheck } from '../domain/base-check';
import type { FailureType } from '../domain/failures';
import type { Run } from './run';
import { rollouts } from './steps';

/** `batch`: the base rollouts. */
export async function checkBase({ config, status, force }: Run, batch: RollOutInput): Promise<BaseCheck> {
  const found = await status.gate.step(() =>
    rollouts(config, 'check the base model').checkBase({ rollouts: batch, baseModelPath: config.baseModel.path }),
  );
  if (found.problems.length > 0 && !force)
    throw ApplicationFailure.nonRetryable(unsuitedText(found), 'BaseUnsuited' satisfies FailureType);
  return found;
}
