/** The first two stages: base rollouts; selection of capabilities by discovery, N labeling passes and votes. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { armName } from '../domain/campaign';
import { PASS_SKIPPING_FAILURES, type FailureType } from '../domain/failures';
import type { SelectedCapability, SelectionResult } from '../domain/results';
import { failedWith, reasonOf } from './failures';
import { checkAdapters, checkBase, required, rollOutTarget, type Run } from './run';
import { basePolicy, batchOf, control, longControl, mapBounded, planTasks } from './steps';

export async function rolloutsStage(run: Run): Promise<void> {
  const { config, prepared, status, results } = run;
  const batch = {
    purpose: 'base_rollouts',
    title: 'base rollouts',
    policy: basePolicy(prepared.base),
    attempts: config.rollouts.perTask,
    sampling: config.rollouts.sampling,
    maxSteps: config.rollouts.maxSteps,
  } as const;
  const tasks = `${prepared.tasks.train} train tasks, base model`;
  status.detail('rollouts', tasks);
  const base = batchOf(config, { ...batch, environment: config.target, tasks: planTasks(prepared.plan, 'train') });
  if (run.trains) await checkAdapters(run, 1);
  const { problems, warnings } = (results.baseCheck = await checkBase(run, base));
  const forced = problems.length > 0 ? [tasks, 'unsuited, but forced'] : [tasks];
  status.detail('rollouts', [...forced, ...warnings].join('; '));
  results.baseRollouts = await rollOutTarget(run, { ...batch, tasks: 'train' });
  // The warnings are about the first rollouts, and later ones may contradict them.
  status.detail('rollouts', forced.join('; '));
}

export async function selectionStage(run: Run): Promise<void> {
  const { config, status, results } = run;
  const { name: campaign, budget, target, analyst, selection: rule, seed } = config;
  const rollouts = required(results.baseRollouts).ref;
  const { ref: candidates, selects } = await longControl(config, 'discover candidate capabilities').discover({
    ...{ campaign, budget, target, analyst, rule, rollouts, seed },
  });
  const passes = selects === 'outright' ? undefined : await label(run, { rollouts, candidates });
  const { labels = [], failedPasses = [] } = passes ?? {};
  const { ref: selection, selected } = await control(config, 'select').select({
    ...{ rule, rollouts, candidates },
    ...(passes && { labels }),
  });
  requireUniqueNames(run, selected);
  const failed = failedPassesText(failedPasses, rule.passes);
  const show = (capabilities: readonly SelectedCapability[]) => {
    const names = capabilities.map(({ candidate }) => candidate.name).join(', ');
    status.detail('selection', (names || 'nothing selected') + failed);
  };
  show(selected);
  results.selection = await approvedSelection(run, { candidates, labels, failedPasses, selection, selected });
  show(results.selection.selected);
}

/** Returns the selection without what a person rejects. */
async function approvedSelection(run: Run, selection: SelectionResult): Promise<SelectionResult> {
  const { config, status, results } = run;
  const { selected } = selection;
  if (!config.approval.capabilities || selected.length === 0) return selection;
  const names = selected.map(({ candidate }) => candidate.name);
  const decision = await status.approvals.ask(config, {
    waiting: { what: 'capabilities', of: selection.selection.sha256, names },
    capabilities: { rollouts: required(results.baseRollouts).ref, selection },
  });
  const rejected = decision.kind === 'approve' ? [] : (decision.names ?? names);
  return { ...selection, decision, selected: selected.filter(({ candidate }) => !rejected.includes(candidate.name)) };
}

/** Arms and capabilities are rows of one report. */
function requireUniqueNames({ config }: Run, selected: readonly SelectedCapability[]): void {
  const taken = config.arms.map(armName).find((name) => selected.some(({ candidate }) => candidate.name === name));
  if (taken === undefined) return;
  throw ApplicationFailure.nonRetryable(
    `arms: ${taken} is the name of a selected capability as well; give the arm another name`,
    'BadInput' satisfies FailureType,
  );
}

function failedPassesText(failed: SelectionResult['failedPasses'], passes: number): string {
  if (failed.length === 0) return '';
  const type: FailureType = 'BudgetSpent';
  const spent = failed.some(({ reason }) => reason.startsWith(type)) ? ': budget spent' : '';
  return `; ${failed.length} of ${passes} labeling passes failed${spent}`;
}

/** Runs N labeling passes. One that fails by itself is skipped, and votes still count out of N. */
async function label(
  { config }: Run,
  { rollouts, candidates }: { rollouts: ArtifactRef; candidates: ArtifactRef },
): Promise<Pick<SelectionResult, 'labels' | 'failedPasses'>> {
  const { name: campaign, budget, target, analyst, selection: rule, seed } = config;
  const passes = Array.from({ length: rule.passes }, (_, pass) => pass);
  const ended = await mapBounded(passes, async (pass) => {
    try {
      const step = longControl(config, `labeling pass ${pass + 1} of ${rule.passes}`);
      return await step.label({ campaign, budget, target, analyst, rollouts, candidates, pass, seed });
    } catch (error) {
      if (failedWith(error, ...PASS_SKIPPING_FAILURES) === undefined) throw error;
      return { pass, reason: reasonOf(error) };
    }
  });
  return {
    labels: ended.flatMap((one) => ('uri' in one ? [one] : [])),
    failedPasses: ended.flatMap((one) => ('uri' in one ? [] : [one])),
  };
}
