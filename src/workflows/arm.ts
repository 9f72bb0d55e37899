/**
 * One baseline arm, whatever its kind. Invariant: every end is a result, a failure too, which holds it; but a cancellation, what is about the campaign as a whole and a crash
 * of the workflow itself.
 */
import { workflowInfo } from '@temporalio/workflow';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf } from '../domain/kinds';
import { bestIteration, type EndedArm, type EndedCapability, type Prepared } from '../domain/results';
import type { ArmKind } from './arms/arm';
import { ChildStatus, withOutcome } from './status';
import { childFailure, resultingReason } from './failures';
import { keep } from './steps';

export interface ArmInput {
  campaign: Campaign;
  prepared: Prepared;
  spec: Campaign['arms'][number];
  budget: number;
  capabilities: EndedCapability[];
}

/** The workflow over the kinds that there are. */
export const armWorkflow = (kinds: readonly ArmKind[]) =>
  function arm(input: ArmInput): Promise<EndedArm> {
    return withOutcome(() => developed(kinds, input));
  };

async function developed(kinds: readonly ArmKind[], { spec, ...input }: ArmInput): Promise<EndedArm> {
  const name = armName(spec);
  const status = new ChildStatus(name);
  const ended = { name, kind: spec.kind, workflowId: workflowInfo().workflowId };
  try {
    const kind = kindOf(kinds, spec);
    const outcome = await kind.open(spec, undefined)({ ...input, name, status });
    const { iterations } = outcome;
    const result = await keep(input.campaign, `what ${name} came to`, outcome);
    status.set('done', `${iterations.length} iterations`);
    const [first, best] = [iterations[0]?.heldOut.successRate, bestIteration(iterations)?.heldOut.successRate];
    return {
      ...{ ...ended, status: 'done', routable: kind.routable, rollouts: iterations.at(-1)?.rollouts ?? 0, result },
      ...(first !== undefined && best !== undefined && { heldOut: { first, best } }),
    };
  } catch (error) {
    const reason = resultingReason(error);
    status.set('failed', reason);
    const training = status.work && { training: status.work.training };
    throw childFailure({ ...ended, status: 'failed', routable: false, reason, ...training } satisfies EndedArm, error);
  }
}
