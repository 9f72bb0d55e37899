/** The capability stage: one child per selected capability and per arm, side by side. One that fails for good is a row of the report. */
import { executeChild, isCancellation, ParentClosePolicy, workflowInfo } from '@temporalio/workflow';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf } from '../domain/kind';
import { bestIteration, rolloutsOfTrace, withinBudget, type ArmResult, type CapabilityResult } from '../domain/results';
import type { ArmInput } from './arm';
import type { ArmKind } from './arms/arm';
import type { CapabilityInput } from './capability';
import { reasonOf } from './failure';
import { searchAttributeNames, taskQueues, workflowIds } from './messages';
import { required, rollOutTarget, type Run } from './run';
import { basePolicy } from './steps';

const campaignAttribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
const capabilityAttribute = defineSearchAttributeKey(searchAttributeNames.capability, 'KEYWORD');

export async function capabilitiesStage(run: Run): Promise<void> {
  const { config: campaign, prepared, found } = run;
  const { selected } = required(found.selection);
  found.capabilities = [];
  found.arms = [];
  if (selected.length === 0) return;
  const baseRollouts = required(found.baseRollouts).ref;
  const baseHeldOut = await rollOutTarget(run, {
    purpose: 'held_out',
    title: 'base on the held-out train tasks',
    policy: basePolicy(prepared.base),
    tasks: 'heldOut',
    attempts: campaign.validation.trials,
  });
  found.baseHeldOut = baseHeldOut;
  const { steps, groupsPerStep, groupSize } = campaign.training;
  // What trace spends if every selected capability comes to an adapter.
  const most = steps * groupsPerStep * groupSize * selected.length;
  const armsThatStart = (when: ArmKind['starts'], budget: number, capabilities: CapabilityResult[]) =>
    campaign.arms
      .filter((spec) => kindOf(run.arms, spec).starts === when)
      .map((spec) => arm(run, { campaign, prepared, spec, budget, capabilities }));
  const running = Promise.all(
    selected.map(({ candidate }) => capability(run, { campaign, prepared, candidate, baseRollouts, baseHeldOut })),
  );
  const [capabilities, beside, after] = await Promise.all([
    running,
    Promise.all(armsThatStart('beside', most, [])),
    running.then((done) => Promise.all(armsThatStart('after', rolloutsOfTrace({ capabilities: done }), done))),
  ]);
  const all = [...beside, ...after];
  const spent = rolloutsOfTrace({ capabilities, arms: all });
  const ended = all.map((result) => within(result, spent));
  found.capabilities = capabilities;
  // In the order of the campaign file.
  found.arms = campaign.arms.map((spec) => required(ended.find(({ name }) => name === armName(spec))));
}

/** An arm is compared at what trace really spent: its best iteration among those within so many training rollouts. */
function within(result: ArmResult, spent: number): ArmResult {
  if (result.status === 'failed') return result;
  const best = bestIteration(withinBudget(result.iterations ?? [], spent));
  if (best) return { ...result, best };
  const reason = `none of its iterations is within the ${spent} training rollouts that trace spent`;
  return { ...result, status: 'failed', reason };
}

async function capability(run: Run, input: CapabilityInput): Promise<CapabilityResult> {
  const { name } = input.candidate;
  const failed = (reason: string, workflowId: string): CapabilityResult => {
    return { name, workflowId, status: 'failed', rounds: [], reason };
  };
  return child(run, { kind: 'capability', name, args: [input], failed });
}

async function arm(run: Run, input: ArmInput): Promise<ArmResult> {
  const { kind } = input.spec;
  const name = armName(input.spec);
  const failed = (reason: string, workflowId: string): ArmResult => {
    return { name, kind, workflowId, status: 'failed', routable: false, reason };
  };
  return child(run, { kind: 'arm', name, args: [input], failed });
}

/** Runs a child to its result, or makes one of its failure. */
async function child<R extends CapabilityResult | ArmResult>(
  { config, status }: Run,
  o: {
    /** Also the type of its workflow. */
    kind: 'capability' | 'arm';
    name: string;
    args: unknown[];
    failed: (reason: string, workflowId: string) => R;
  },
): Promise<R> {
  const { kind, name, args } = o;
  const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
  status.child(workflowId, kind, name, 'waiting', '');
  let result: R;
  try {
    result = await status.gate.step(() => {
      status.child(workflowId, kind, name, 'running', '');
      return executeChild(kind, { ...childOptions(config, { workflowId, kind, name }), args }) as Promise<R>;
    });
  } catch (error) {
    if (isCancellation(error)) throw error;
    result = o.failed(reasonOf(error), workflowId);
  }
  const done = result.status === 'trained' || result.status === 'done';
  status.child(workflowId, kind, name, done ? 'done' : 'failed', result.reason ?? '');
  return result;
}

const childOptions = (campaign: Campaign, o: { workflowId: string; kind: string; name: string }) => ({
  workflowId: o.workflowId,
  taskQueue: taskQueues.control,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  staticSummary: `${o.kind}: ${o.name}`,
  typedSearchAttributes: new TypedSearchAttributes([
    { key: campaignAttribute, value: campaign.name },
    { key: capabilityAttribute, value: o.name },
  ]),
});
