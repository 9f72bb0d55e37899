/**
 * A campaign: base rollouts -> discover -> label x N -> select -> one child per capability and per arm, side by side -> fit the router
 * -> final evaluation -> report. Invariant: what a step found is in the artifact store; the workflow holds references and summaries.
 */
import { executeChild, isCancellation, ParentClosePolicy, workflowInfo } from '@temporalio/workflow';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { ArmResult, CampaignRecord, CapabilityResult, RolloutSummary } from '../domain/results';
import type { Policy } from '../domain/rollout';
import { stages, type Stage } from '../domain/stages';
import { grpoTarget } from './arms';
import { CampaignStatus } from './campaign-status';
import { capability, reasonOf } from './capability';
import { searchAttributeNames, taskQueues, workflowIds, type CampaignInput, type CampaignResult } from './messages';
import { adapterPolicy, basePolicy, control, part, rollOut } from './steps';

const campaignAttribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
const capabilityAttribute = defineSearchAttributeKey(searchAttributeNames.capability, 'KEYWORD');

export async function campaign({ campaign: config, until }: CampaignInput): Promise<CampaignResult> {
  const startedAt = Date.now();
  const status = new CampaignStatus(config);
  const step = <T>(run: () => Promise<T>) => status.gate.step(run);
  const prepared = await step(() => control('check the parts and split the tasks').prepare({ campaign: config }));
  const record = { campaign: config, workflowId: workflowInfo().workflowId, startedAt, prepared };
  const found: Partial<CampaignRecord> = {};
  const { target } = config;
  const base = basePolicy(prepared.base);

  const run: Record<Stage, () => Promise<void>> = {
    rollouts: async () => {
      status.detail('rollouts', `${prepared.tasks.discovery} train tasks, base model`);
      found.baseRollouts = status.count(
        await step(() =>
          rollOut(config, {
            purpose: 'base rollouts',
            environment: target,
            policy: base,
            tasks: part(prepared.plan, 'discovery'),
            attempts: config.rollouts.perTask,
            sampling: config.rollouts.sampling,
          }),
        ),
      );
    },

    selection: async () => {
      const rolloutsRef = required(found.baseRollouts).ref;
      const rule = config.selection;
      const { ref: candidates } = await step(() =>
        control('discover candidate capabilities').discover({ target, rule, rollouts: rolloutsRef }),
      );
      const labels = await step(() =>
        Promise.all(
          Array.from({ length: rule.passes }, (_, pass) =>
            control(`labeling pass ${pass + 1} of ${rule.passes}`).label({
              target,
              rollouts: rolloutsRef,
              candidates,
              pass,
              seed: config.seed,
            }),
          ),
        ),
      );
      const { ref, selected } = await step(() => control('select').select({ rule, candidates, labels }));
      found.selection = { candidates, labels, selection: ref, selected };
      status.detail('selection', selected.map((s) => s.candidate.name).join(', ') || 'nothing selected');
    },

    capabilities: async () => {
      const { selected } = required(found.selection);
      const baseRollouts = required(found.baseRollouts).ref;
      const baseHeldOut = status.count(
        await step(() =>
          rollOut(config, {
            purpose: 'base on the held-out train tasks',
            environment: target,
            policy: base,
            tasks: part(prepared.plan, 'heldOut'),
            attempts: config.validation.trials,
          }),
        ),
      );
      found.baseHeldOut = baseHeldOut;
      const children = selected.map(({ candidate }) =>
        child<CapabilityResult>(
          'capability',
          candidate.name,
          { name: candidate.name, status: 'failed', rounds: [] },
          (options) =>
            executeChild(capability, {
              ...options,
              args: [{ campaign: config, prepared, candidate, baseRollouts, baseHeldOut }],
            }),
        ),
      );
      const steps = config.training.steps * selected.length;
      const arms = (steps > 0 ? config.arms : []).map((name) =>
        child<ArmResult>('arm', name, { name, status: 'failed' }, (options) =>
          executeChild(grpoTarget, { ...options, args: [{ campaign: config, prepared, steps }] }),
        ),
      );
      found.capabilities = await Promise.all(children);
      found.arms = await Promise.all(arms);
    },

    router: async () => {
      const options = policies().filter(({ option }) => option !== 'grpo_target');
      const outcomes = await evaluateEach(options, 'router', config.router.trials, 'outcome matrix');
      const fitted = await step(() =>
        control('fit the router').fitRouter({
          target,
          seed: config.seed,
          folds: config.router.folds,
          outcomes: outcomes.map(({ option, rollouts }) => ({ option, rollouts: rollouts.ref })),
        }),
      );
      found.router = { ...fitted, options: options.map(({ option }) => option), outcomes };
    },

    evaluation: async () => {
      const router = required(found.router).router;
      const { trials } = config.evaluation;
      const all = policies();
      const options = await evaluateEach(all, 'evaluation', trials, 'test');
      const { assignment, chosen } = await step(() =>
        control('route the test tasks').route({ target, router, plan: prepared.plan }),
      );
      const routed = await step(() =>
        Promise.all(
          chosen.map(async ({ option }) => ({
            option,
            rollouts: status.count(
              await rollOut(config, {
                purpose: `test: trace, routed to ${option}`,
                environment: target,
                policy: required(all.find((p) => p.option === option)).policy,
                tasks: { kind: 'assignment', assignment, option },
                attempts: trials,
                // Rollouts of its own: the routed policy is run, not looked up in the matrix.
                seed: config.seed + 1,
              }),
            ),
          })),
        ),
      );
      found.evaluation = { options, trace: { assignment, chosen: routed } };
    },
  };

  /** Base, every trained adapter, and the arms that trained: what one conversation can be given to. */
  function policies(): { option: string; policy: Policy }[] {
    const trained = [...(found.capabilities ?? []), ...(found.arms ?? [])];
    return [
      { option: 'base', policy: base },
      ...trained.flatMap(({ name, trained: t }) =>
        t ? [{ option: name, policy: adapterPolicy(prepared.base, t.best.adapter) }] : [],
      ),
    ];
  }

  async function evaluateEach(
    options: { option: string; policy: Policy }[],
    tasks: 'router' | 'evaluation',
    attempts: number,
    what: string,
  ): Promise<{ option: string; rollouts: RolloutSummary }[]> {
    return step(() =>
      Promise.all(
        options.map(async ({ option, policy }) => ({
          option,
          rollouts: status.count(
            await rollOut(config, {
              purpose: `${what}: ${option}`,
              environment: target,
              policy,
              tasks: part(prepared.plan, tasks),
              attempts,
            }),
          ),
        })),
      ),
    );
  }

  /** Runs a child; one that fails for good is a row of the report, not the end of the campaign. */
  async function child<R extends { workflowId: string; status: string; reason?: string; trained?: unknown }>(
    kind: 'capability' | 'arm',
    name: string,
    failed: Omit<R, 'workflowId' | 'reason'>,
    start: (options: ReturnType<typeof childOptions>) => Promise<R>,
  ): Promise<R> {
    const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
    status.child(workflowId, kind, name, 'running', '');
    let result: R;
    try {
      result = await start(childOptions(workflowId, kind, name));
    } catch (error) {
      if (isCancellation(error)) throw error;
      result = { ...failed, workflowId, reason: reasonOf(error) } as R;
    }
    status.child(workflowId, kind, name, result.trained ? 'done' : 'failed', result.reason ?? '');
    return result;
  }

  const childOptions = (workflowId: string, kind: string, name: string) => ({
    workflowId,
    taskQueue: taskQueues.control,
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    staticSummary: `${kind}: ${name}`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: campaignAttribute, value: config.name },
      { key: capabilityAttribute, value: name },
    ]),
  });

  for (const stage of stages) {
    await status.stage(stage, run[stage]);
    if (stage === until) break;
  }
  const complete: CampaignRecord = {
    ...record,
    ...found,
    baseRollouts: required(found.baseRollouts),
    stageSeconds: status.stageSeconds,
    finishedAt: Date.now(),
    ...(until && until !== 'evaluation' && { stoppedAfter: until }),
  };
  const { report, html } = await control('write the report').writeReport({ record: complete });
  return { report, html, status: complete.stoppedAfter ? 'stopped_at_stage' : 'completed' };
}

/** A stage reads what earlier stages left; the loop above runs them in order. */
function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a stage ran before the one it needs');
  return value;
}
