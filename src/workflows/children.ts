/**
 * The capability stage runs one child per selected capability and per arm, side by side. A child that fails for good is a row of the report. When
 * the stage fails, it first waits for all children to end, so that a restarted campaign does not find them running.
 */
import { defineSearchAttributeKey, TypedSearchAttributes, WorkflowIdReusePolicy } from '@temporalio/common';
import { CancellationScope, ParentClosePolicy, startChild, workflowInfo } from '@temporalio/workflow';
import { armName, type Campaign } from '../domain/campaign';
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
import { isCancelled, reasonOf, resultInFailure, toFailureReason } from './failures';
import { searchAttributeNames, workflowIds, workflowTypes } from './messages';
import { checkAdapters, required, rollOutTarget, type Run } from './run';
import { basePolicy } from './steps';

export async function capabilitiesStage(run: Run): Promise<void> {
  const { config: campaign, prepared, found } = run;
  const { selected, candidates } = required(found.selection);
  found.capabilities = [];
  found.arms = [];
  if (selected.length === 0) return;
  // The policy server has to take the sum of all adapters; this is checked before any training is spent.
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
  // The training rollouts of trace if every selected capability yields an adapter.
  const most = steps * groupsPerStep * groupSize * selected.length;
  const children = new CancellationScope();
  const begun: Promise<unknown>[] = [];
  const begin = <R>(child: Promise<R>): Promise<R> => {
    begun.push(child);
    return child;
  };
  const startArms = (specs: Campaign['arms'], budget: number, capabilities: CapabilityResult[]) =>
    Promise.all(specs.map((spec) => begin(runArm(run, { campaign, prepared, spec, budget, capabilities }))));
  const isLater = (spec: Campaign['arms'][number]) => kindOf(arms, spec).buildsOnCapabilities?.(spec) ?? false;
  const later = campaign.arms.filter(isLater);
  const atOnce = campaign.arms.filter((spec) => !isLater(spec));
  const sideBySide = () => {
    const running = Promise.all(
      selected.map(({ candidate }) => {
        const others = selected.flatMap(({ candidate: other }) =>
          other === candidate ? [] : [{ name: other.name, definition: other.definition }],
        );
        return begin(runCapability(run, { ...common, candidate, others }));
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

/** Returns the arms in the order of the campaign file, each with its best iteration within the training rollouts that trace spent. */
function comparedArms({ config }: Run, arms: ArmResult[], spent: number): ArmResult[] {
  const inOrder = config.arms.flatMap((spec) => arms.find(({ name }) => name === armName(spec)) ?? []);
  return inOrder.map((arm) => {
    if (!arm.work || arm.status === 'failed') return arm;
    const best = bestIteration(withinBudget(arm.work.iterations, spent));
    if (best) return { ...arm, best };
    const reason = `none of its iterations is within the ${spent} training rollouts that trace spent`;
    return { ...arm, status: 'failed', reason };
  });
}

const campaignAttribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
const childAttribute = defineSearchAttributeKey(searchAttributeNames.child, 'KEYWORD');

const runCapability = (run: Run, input: CapabilityInput): Promise<CapabilityResult> =>
  runChild(run, {
    ...{ kind: 'capability', input },
    failed: { name: input.candidate.name, status: 'failed', rounds: [] },
  });

const runArm = (run: Run, input: ArmInput): Promise<ArmResult> =>
  runChild(run, {
    ...{ kind: 'arm', input },
    failed: { name: armName(input.spec), kind: input.spec.kind, status: 'failed' },
  });

/** Runs a child to its result. `failed` completes the result of one that throws none. A child whose earlier result is kept is not run. */
async function runChild<R extends ChildResult>(
  { config, status, kept }: Run,
  { kind, input, failed }: { kind: CampaignChild['kind']; input: object; failed: Omit<R, 'workflowId' | 'reason'> },
): Promise<R> {
  const { name } = failed;
  const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
  const ref: CampaignChild = { workflowId, kind, name };
  status.child(ref, 'waiting');
  let result = kept.find((one) => one.workflowId === workflowId) as R | undefined;
  try {
    if (!result) {
      const started = await startChild(workflowTypes[kind], { ...childOptions(config, ref), args: [input] });
      status.child(ref, 'running');
      result = (await started.result()) as R;
    }
  } catch (error) {
    if (isCancelled(error)) status.child(ref, 'cancelled');
    else status.child(ref, 'failed', reasonOf(error));
    result = resultInFailure<R>(error) ?? ({ ...failed, workflowId, reason: toFailureReason(error) } as R);
  }
  status.child(ref, result.status, result.reason);
  return result;
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
