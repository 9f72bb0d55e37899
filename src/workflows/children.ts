/**
 * The capability stage: one child per selected capability and per arm, side by side. Invariants: one that fails for good is a row of the
 * report; when the stage fails, all of them have ended, so that the campaign that is started again does not meet them.
 */
import { CancellationScope, executeChild, ParentClosePolicy, sleep, workflowInfo } from '@temporalio/workflow';
import {
  defineSearchAttributeKey,
  TypedSearchAttributes,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/common';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf } from '../domain/kind';
import { bestIteration, rolloutsOfTrace, withinBudget, type ArmResult, type CapabilityResult } from '../domain/results';
import type { ArmInput } from './arm';
import type { ArmKind } from './arms/arm';
import type { CapabilityInput } from './capability';
import { reasonOf, resultingReason } from './failure';
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
  const children = new CancellationScope();
  const begun: Promise<unknown>[] = [];
  const begin = <R>(child: Promise<R>): Promise<R> => {
    begun.push(child);
    return child;
  };
  const armsThatStart = (when: ArmKind['starts'], budget: number, capabilities: CapabilityResult[]) =>
    campaign.arms
      .filter((spec) => kindOf(run.arms, spec).starts === when)
      .map((spec) => begin(arm(run, { campaign, prepared, spec, budget, capabilities })));
  const sideBySide = () => {
    const running = Promise.all(
      selected.map(({ candidate }) =>
        begin(capability(run, { campaign, prepared, candidate, baseRollouts, baseHeldOut })),
      ),
    );
    return Promise.all([
      running,
      Promise.all(armsThatStart('beside', most, [])),
      running.then((done) => Promise.all(armsThatStart('after', rolloutsOfTrace({ capabilities: done }), done))),
    ]);
  };
  const [capabilities, beside, after] = await children.run(sideBySide).catch(async (error: unknown) => {
    children.cancel();
    await Promise.allSettled(begun);
    throw error;
  });
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
    const options = { ...childOptions(config, { workflowId, kind, name }), args };
    result = await status.gate.step(() => {
      status.child(workflowId, kind, name, 'running', '');
      return afterItsEarlierRun(() => executeChild(kind, options) as Promise<R>);
    });
  } catch (error) {
    status.child(workflowId, kind, name, 'failed', reasonOf(error));
    result = o.failed(resultingReason(error), workflowId);
  }
  const done = result.status === 'trained' || result.status === 'done';
  status.child(workflowId, kind, name, done ? 'done' : 'failed', result.reason ?? '');
  return result;
}

const ENDING = { every: '5 seconds', looks: 60 } as const;

/** A campaign that somebody terminated leaves children behind that are still ending: they save what they have. They are waited for. */
async function afterItsEarlierRun<R>(start: () => Promise<R>): Promise<R> {
  for (let look = 1; ; look++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError) || look === ENDING.looks) throw error;
      await sleep(ENDING.every);
    }
  }
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
