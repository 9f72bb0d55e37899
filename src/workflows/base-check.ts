/** What stops a campaign before anything is spent: a base model that can't work on the target, unless it was forced, and a policy server that takes no adapters. */
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

/** Of vLLM, which is told its ranks, modules and folders as it is started: the embedded server takes what the trainer makes. `summed`: so many as one. */
export async function checkAdapters({ config, prepared, status }: Run, summed: number): Promise<void> {
  if (config.policyServer.kind !== 'vllm') return;
  const { baseModel, training } = config;
  const lora = { r: training.lora.r, targetModules: training.lora.targetModules };
  await status.gate.step(() =>
    rollouts(config, summed === 1 ? 'try an adapter' : `try a sum of ${summed} adapters`).checkAdapters({
      ...{ base: prepared.base, baseModelPath: baseModel.path, lora, summed },
    }),
  );
}
