/**
 * The capability stage: one child per selected capability and per arm, side by side. Invariants: a child that fails for good is a row of the report;
 * when the stage fails, all children have ended, so that a restarted campaign does not find them running.
 */
import { defineSearchAttributeKey, TypedSearchAttributes, WorkflowIdReusePolicy } from '@temporalio/common';
import { CancellationScope, ParentClosePolicy, startChild, workflowInfo } from '@temporalio/workflow';
import { armName, type Campaign } from '../domain/campaign';
import type { Lacking } from '../domain/capability';
import { kindOf } from '../domain/kinds';
import { escapeMarkdown } from '../domain/plain-text';
import {
  type ArmResult,
  bestIteration,
  type CampaignChild,
  type CapabilityResult,
  type ChildResult,
  rolloutsOfTrace,
  withinBudget,
} from '../domain/results';
import type { ArmInput } from './arm';
import { arms } from './arms';
import type { CapabilityInput } from './capability';
import { endedIn, isCancelled, reasonOf, resultingReason } from './failures';
import { searchAttributeNames, workflowIds, workflowTypes } from './messages';
import { checkAdapters, required, rollOutTarget, type Run } from './run';
import { basePolicy } from './steps';

export async function capabilitiesStage(run: Run): Promise<void> {
  const { config: campaign, prepared, found } = run;
  const { selected, candidates } = required(found.selection);
  found.capabilities = [];
  found.arms = [];
  if (selected.length === 0) return;
  // Now it is known how many may be added up, and no training is spent yet.
  if (selected.length > 1) await checkAdapters(run, selected.length);
  const baseRollouts = required(found.baseRollouts).ref;
  const baseHeldOut = await rollOutTarget(run, {
    purpose: 'held_out',
    title: 'base on the held-out train tasks',
    policy: basePolicy(prepared.base),
    tasks: 'validation',
    attempts: campaign.validation.trials,
  });
  found.baseHeldOut = baseHeldOut;
  const { steps, groupsPerStep, groupSize } = campaign.training;
  const common = { campaign, prepared, baseRollouts, candidates, baseHeldOut };
  // What trace spends if every selected capability comes to an adapter.
  const most = steps * groupsPerStep * groupSize * selected.length;
  const children = new CancellationScope();
  const begun: Promise<unknown>[] = [];
  const begin = <R>(child: Promise<R>): Promise<R> => {
    begun.push(child);
    return child;
  };
  const startArms = (specs: Campaign['arms'], budget: number, capabilities: CapabilityResult[]) =>
    Promise.all(specs.map((spec) => begin(startArm(run, { campaign, prepared, spec, budget, capabilities }))));
  const isLater = (spec: Campaign['arms'][number]) => kindOf(arms, spec).buildsOnCapabilities?.(spec) ?? false;
  const later = campaign.arms.filter(isLater);
  const atOnce = campaign.arms.filter((spec) => !isLater(spec));
  const sideBySide = () => {
    const running = Promise.all(
      selected.map(({ candidate }) => {
        const others = selected.flatMap(({ candidate: other }) => (other === candidate ? [] : [wordsOf(other)]));
        return begin(startCapability(run, { ...common, candidate, others }));
      }),
    );
    return Promise.all([
      running,
      startArms(atOnce, most, []),
      running.then((done) => startArms(later, rolloutsOfTrace(done), done)),
    ]);
  };
  const [capabilities, ...ended] = await children.run(sideBySide).catch(async (error: unknown) => {
    children.cancel();
    await Promise.allSettled(begun);
    throw error;
  });
  found.capabilities = capabilities;
  found.arms = comparedArms(run, ended.flat(), rolloutsOfTrace(capabilities));
}

/** The arms in the order of the campaign file, each with its best iteration within the training rollouts that trace really spent. */
function comparedArms({ config }: Run, arms: ArmResult[], spent: number): ArmResult[] {
  const inOrder = config.arms.flatMap((spec) => arms.find(({ name }) => name === armName(spec)) ?? []);
  return inOrder.map((arm) => {
    if (!arm.iterations) return arm;
    const best = bestIteration(withinBudget(arm.iterations, spent));
    if (best) return { ...arm, best };
    const reason = `none of its iterations is within the ${spent} training rollouts that trace spent`;
    return { ...arm, status: 'failed', reason };
  });
}

const wordsOf = ({ name, definition }: Lacking): Lacking => ({ name, definition });

const campaignAttribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
const childAttribute = defineSearchAttributeKey(searchAttributeNames.child, 'KEYWORD');

export async function startCapability(run: Run, input: CapabilityInput): Promise<CapabilityResult> {
  const { name } = input.candidate;
  const failed = (reason: string, workflowId: string): CapabilityResult => {
    return { name, workflowId, status: 'failed', reason, rounds: [] };
  };
  return child(run, { kind: 'capability', name, args: [input], failed });
}

export async function startArm(run: Run, input: ArmInput): Promise<ArmResult> {
  const { kind } = input.spec;
  const name = armName(input.spec);
  const failed = (reason: string, workflowId: string): ArmResult => {
    return { name, kind, workflowId, status: 'failed', reason };
  };
  return child(run, { kind: 'arm', name, args: [input], failed });
}

interface Child<R> extends Pick<CampaignChild, 'kind' | 'name'> {
  args: unknown[];
  failed: (reason: string, workflowId: string) => R;
}

/** Runs a child to its result, or makes one of its failure; one whose result is kept is not run. */
async function child<R extends ChildResult>(run: Run, o: Child<R>): Promise<R> {
  const { kind, name } = o;
  const { status, kept } = run;
  const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
  const ref: CampaignChild = { workflowId, kind, name };
  status.child(ref, 'waiting');
  const known = kept.find((one) => one.workflowId === workflowId) as R | undefined;
  const result = known ?? (await runChild(run, ref, o));
  status.child(ref, result.status, result.reason);
  return result;
}

async function runChild<R>({ config, status }: Run, ref: CampaignChild, { args, failed }: Child<R>): Promise<R> {
  try {
    const started = await startChild(workflowTypes[ref.kind], { ...childOptions(config, ref), args });
    status.child(ref, 'running');
    return (await started.result()) as R;
  } catch (error) {
    if (isCancelled(error)) status.child(ref, 'cancelled');
    else status.child(ref, 'failed', reasonOf(error));
    return endedIn<R>(error) ?? failed(resultingReason(error), ref.workflowId);
  }
}

const childOptions = (campaign: Campaign, o: CampaignChild) => ({
  workflowId: o.workflowId,
  // A child of a campaign that was terminated may still be running: its training saved every step, and this one continues from there.
  workflowIdReusePolicy: WorkflowIdReusePolicy.TERMINATE_IF_RUNNING,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  staticSummary: escapeMarkdown(`${o.kind}: ${o.name}`),
  typedSearchAttributes: new TypedSearchAttributes([
    { key: campaignAttribute, value: campaign.name },
    { key: childAttribute, value: o.name },
  ]),
});
