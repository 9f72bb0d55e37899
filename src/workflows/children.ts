/** The capability stage: one child per selected capability and per arm, side by side. One that fails for good is a row of the report. */
import { executeChild, isCancellation, ParentClosePolicy, workflowInfo } from '@temporalio/workflow';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { ArmResult, CapabilityResult } from '../domain/results';
import { grpoTarget } from './arms';
import { capability, reasonOf } from './capability';
import { searchAttributeNames, taskQueues, workflowIds } from './messages';
import { required, rollOutTarget, type Run } from './run';
import { basePolicy } from './steps';

const campaignAttribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
const capabilityAttribute = defineSearchAttributeKey(searchAttributeNames.capability, 'KEYWORD');

export async function capabilitiesStage(run: Run): Promise<void> {
  const { config: campaign, prepared, found } = run;
  const { selected } = required(found.selection);
  if (selected.length === 0) {
    found.capabilities = [];
    found.arms = [];
    return;
  }
  const baseRollouts = required(found.baseRollouts).ref;
  const baseHeldOut = await rollOutTarget(run, {
    purpose: 'base on the held-out train tasks',
    policy: basePolicy(prepared.base),
    tasks: 'heldOut',
    attempts: campaign.validation.trials,
  });
  found.baseHeldOut = baseHeldOut;
  const capabilities = selected.map(({ candidate }) =>
    child<CapabilityResult>(run, 'capability', { name: candidate.name, status: 'failed', rounds: [] }, (options) =>
      executeChild(capability, { ...options, args: [{ campaign, prepared, candidate, baseRollouts, baseHeldOut }] }),
    ),
  );
  // As many training rollouts as the capabilities together.
  const steps = campaign.training.steps * selected.length;
  const arms = campaign.arms.map((name) =>
    child<ArmResult>(run, 'arm', { name, status: 'failed' }, (options) =>
      executeChild(grpoTarget, { ...options, args: [{ campaign, prepared, steps }] }),
    ),
  );
  [found.capabilities, found.arms] = await Promise.all([Promise.all(capabilities), Promise.all(arms)]);
}

/** Runs a child to its result, or makes one of its failure. */
async function child<R extends CapabilityResult | ArmResult>(
  { config, status }: Run,
  kind: 'capability' | 'arm',
  failed: Omit<R, 'workflowId' | 'reason'>,
  start: (options: ReturnType<typeof childOptions>) => Promise<R>,
): Promise<R> {
  const { name } = failed;
  const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
  status.child(workflowId, kind, name, 'running', '');
  let result: R;
  try {
    result = await start(childOptions({ workflowId, campaign: config.name, kind, name }));
  } catch (error) {
    if (isCancellation(error)) throw error;
    result = { ...failed, workflowId, reason: reasonOf(error) } as R;
  }
  status.child(workflowId, kind, name, result.trained ? 'done' : 'failed', result.reason ?? '');
  return result;
}

const childOptions = (o: { workflowId: string; campaign: string; kind: string; name: string }) => ({
  workflowId: o.workflowId,
  taskQueue: taskQueues.control,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  staticSummary: `${o.kind}: ${o.name}`,
  typedSearchAttributes: new TypedSearchAttributes([
    { key: campaignAttribute, value: o.campaign },
    { key: capabilityAttribute, value: o.name },
  ]),
});
