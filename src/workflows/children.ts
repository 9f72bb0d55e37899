/** The third stage runs one child per selected capability and per arm, side by side. */
import { TypedSearchAttributes, WorkflowIdReusePolicy } from '@temporalio/common';
import { CancellationScope, isCancellation, ParentClosePolicy, startChild, workflowInfo } from '@temporalio/workflow';
import { arms } from '../arms';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf, TARGET_TASKS } from '../domain/kinds';
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
import type { CapabilityInput } from './capability';
import { isCancelled, reasonOf, resultInFailure, toFailureReason } from './failures';
import { searchAttributes, workflowIds, workflowTypes } from './messages';
import { checkAdapters, required, rollOutTarget, type Run } from './run';
import { basePolicy } from './steps';

export async function capabilitiesStage(run: Run): Promise<void> {
  const { config: campaign, prepared, results } = run;
  const { selected, candidates, labels } = required(results.selection);
  results.capabilities = [];
  results.arms = [];
  if (selected.length === 0) return;
  if (selected.length > 1) await checkAdapters(run, selected.length);
  const baseRollouts = required(results.baseRollouts).ref;
  const baseHeldOut = await rollOutTarget(run, {
    purpose: 'held_out',
    title: 'base on the held-out train tasks',
    policy: basePolicy(prepared.base),
    tasks: 'validation',
    attempts: campaign.validation.trials,
  });
  results.baseHeldOut = baseHeldOut;
  const { steps, groupsPerStep, groupSize } = campaign.training;
  // Trace spends this if every selected capability yields an adapter.
  const fullBudget = steps * groupsPerStep * groupSize * selected.length;
  const isLater = (spec: Campaign['arms'][number]) => kindOf(arms, spec).buildsOnCapabilities?.(spec) ?? false;
  const [capabilities, ...ended] = await runTogether((track) => {
    const startArms = (specs: Campaign['arms'], budget: number, capabilities: CapabilityResult[]) =>
      Promise.all(specs.map((spec) => track(runArm(run, { campaign, prepared, spec, budget, capabilities }))));
    const running = Promise.all(
      selected.map(({ candidate }) => {
        const others = selected.flatMap(({ candidate: { name, definition } }) =>
          name === candidate.name ? [] : [{ name, definition }],
        );
        const input = {
          ...{ campaign, prepared, baseRollouts, candidates, baseHeldOut, candidate, others },
          ...(campaign.synthesizer.kind === TARGET_TASKS && { labels }),
        };
        return track(runCapability(run, input));
      }),
    );
    const atOnce = campaign.arms.filter((spec) => !isLater(spec));
    const later = campaign.arms.filter(isLater);
    return Promise.all([
      running,
      startArms(atOnce, fullBudget, []),
      running.then((done) => startArms(later, rolloutsOfTrace(done), done)),
    ]);
  });
  results.capabilities = capabilities;
  results.arms = comparedArms(run, ended.flat(), rolloutsOfTrace(capabilities));
}

/** Runs children that `start` passes to `track`. After a failure it cancels the others and waits for them: a campaign that is run again starts them again. */
async function runTogether<T>(start: (track: <R>(child: Promise<R>) => Promise<R>) => Promise<T>): Promise<T> {
  const scope = new CancellationScope();
  const children: Promise<unknown>[] = [];
  const track = <R>(child: Promise<R>): Promise<R> => {
    children.push(child);
    return child;
  };
  try {
    return await scope.run(() => start(track));
  } catch (error) {
    scope.cancel();
    await Promise.allSettled(children);
    throw error;
  }
}

/** Gives each arm its best iteration within the training rollouts of trace. An arm without one fails. */
function comparedArms({ config, status }: Run, ended: ArmResult[], spent: number): ArmResult[] {
  const inOrder = config.arms.flatMap((spec) => ended.find(({ name }) => name === armName(spec)) ?? []);
  return inOrder.map((arm) => {
    if (!arm.work || arm.status === 'failed') return arm;
    const best = bestIteration(withinBudget(arm.work.iterations, spent));
    if (best) return { ...arm, best };
    const reason = `none of its iterations is within the ${spent} training rollouts that trace spent`;
    status.child({ workflowId: arm.workflowId, kind: 'arm', name: arm.name }, 'failed', reason);
    return { ...arm, status: 'failed', reason };
  });
}

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

/** Runs a child to its result. `failed`: the result where its failure carries none. */
async function runChild<R extends ChildResult>(
  { config, status }: Run,
  { kind, input, failed }: { kind: CampaignChild['kind']; input: object; failed: Omit<R, 'workflowId' | 'reason'> },
): Promise<R> {
  const { name } = failed;
  const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
  const child: CampaignChild = { workflowId, kind, name };
  status.child(child, 'waiting');
  let result: R;
  try {
    const started = await startChild(workflowTypes[kind], { ...childOptions(config, child), args: [input] });
    status.child(child, 'running');
    result = (await started.result()) as R;
  } catch (error) {
    // A person may cancel one child in Temporal's UI: the others continue.
    const alone = isCancellation(error) && !CancellationScope.current().consideredCancelled;
    // Shown first, since `toFailureReason` may rethrow.
    if (isCancelled(error)) status.child(child, 'cancelled');
    else status.child(child, 'failed', reasonOf(error));
    const reason = () => (alone ? 'it was cancelled alone' : toFailureReason(error));
    result = resultInFailure<R>(error) ?? ({ ...failed, workflowId, reason: reason() } as R);
  }
  status.child(child, result.status, result.reason);
  return result;
}

const childOptions = (campaign: Campaign, { workflowId, kind, name }: CampaignChild) => ({
  workflowId,
  // A child of a terminated campaign may still run; the new one continues its training.
  workflowIdReusePolicy: WorkflowIdReusePolicy.TERMINATE_IF_RUNNING,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  staticSummary: `${kind}: ${name}`,
  typedSearchAttributes: new TypedSearchAttributes([
    { key: searchAttributes.campaign, value: campaign.name },
    { key: searchAttributes.child, value: name },
  ]),
});
