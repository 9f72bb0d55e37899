/**
 * Runs one baseline arm of any kind. Every outcome yields an ArmResult: it is returned, or carried in the details of the failure that is thrown. The
 * exceptions are a cancellation, a campaign-wide failure (failures.ts) and a defect of the workflow code.
 */
import { workflowInfo } from '@temporalio/workflow';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf } from '../domain/kinds';
import type { ArmResult, CapabilityResult, Prepared } from '../domain/results';
import { arms } from './arms';
import { childFailure, toFailureReason } from './failures';
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
    status.set('completed', `${outcome.work.iterations.length} iterations`);
    return { ...result, status: 'completed', ...outcome };
  } catch (error) {
    const reason = toFailureReason(error);
    status.set('failed', reason);
    const work = status.work && { work: status.work };
    throw childFailure({ ...result, status: 'failed', reason, ...work }, error);
  }
}
