/**
 * One baseline arm, whatever its kind. Invariant: every end is a result, a failure too, which holds it; but a cancellation, what is about the campaign as a whole and a crash
 * of the workflow itself.
 */
import { workflowInfo } from '@temporalio/workflow';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf } from '../domain/kinds';
import type { ArmResult, CapabilityResult, Prepared } from '../domain/results';
import { arms } from './arms';
import { childFailure, resultingReason } from './failures';
import { ChildStatus, withOutcome } from './status';

export interface ArmInput {
  campaign: Campaign;
  prepared: Prepared;
  spec: Campaign['arms'][number];
  budget: number;
  capabilities: CapabilityResult[];
}

export const campaignArm = (input: ArmInput): Promise<ArmResult> => withOutcome(() => runArm(input));

async function runArm({ spec, ...input }: ArmInput): Promise<ArmResult> {
  const name = armName(spec);
  const status = new ChildStatus(name);
  const result = { name, kind: spec.kind, workflowId: workflowInfo().workflowId };
  try {
    const outcome = await kindOf(arms, spec).open(spec, undefined)({ ...input, name, status });
    status.set('completed', `${outcome.iterations.length} iterations`);
    return { ...result, status: 'completed', ...outcome };
  } catch (error) {
    const reason = resultingReason(error);
    status.set('failed', reason);
    const training = status.work && { training: status.work.training };
    throw childFailure({ ...result, status: 'failed', reason, ...training }, error);
  }
}
