/** Runs one arm (a baseline) of any kind. Returns its result, or throws it in a failure, as capability.ts does. */
import { workflowInfo } from '@temporalio/workflow';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf } from '../domain/kinds';
import type { ArmResult, CapabilityResult, Prepared } from '../domain/results';
import { arms } from './arms';
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
    throw status.failure({ ...result, status: 'failed' }, error);
  }
}
