/** Baseline arms that train: GRPO on the target itself, with as many training rollouts as the capabilities together. */
import { isCancellation, workflowInfo } from '@temporalio/workflow';
import type { Campaign } from '../domain/campaign';
import type { ArmResult, Prepared } from '../domain/results';
import { reasonOf } from './capability';
import { ChildStatus } from './child-status';
import { part } from './steps';
import { trainAndPick } from './training';

export interface ArmInput {
  campaign: Campaign;
  prepared: Prepared;
  /** Optimizer steps; each takes the same number of rollouts as a capability's step. */
  steps: number;
}

export async function grpoTarget({ campaign, prepared, steps }: ArmInput): Promise<ArmResult> {
  const status = new ChildStatus('grpo_target');
  const result: ArmResult = { name: 'grpo_target', workflowId: workflowInfo().workflowId, status: 'failed' };
  try {
    status.set('train', `${steps} steps, when a gpu slot is free`);
    result.trained = await trainAndPick(status.gate, {
      campaign,
      prepared,
      name: 'grpo_target',
      environment: campaign.target,
      tasks: part(prepared.plan, 'discovery'),
      heldOut: part(prepared.plan, 'heldOut'),
      steps,
    });
    result.status = 'trained';
    status.set('done', `step ${result.trained.best.step} is the best iteration`);
  } catch (error) {
    if (isCancellation(error)) throw error;
    result.reason = reasonOf(error);
    status.set('failed', result.reason);
  }
  return result;
}
