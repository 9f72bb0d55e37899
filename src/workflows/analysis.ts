/** The first two stages: a look at the base model and its rollouts, then discovery, N labeling passes, selection. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { armName } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import { OF_A_PASS, type FailureType } from '../domain/failures';
import type { SelectionResult } from '../domain/results';
import { failedWith, reasonOf } from './failures';
import { checkAdapters, checkBase, required, rollOutTarget, type Run } from './run';
import { approvedSelection } from './approval';
import { basePolicy, batchOf, control, longControl, mapBounded, part } from './steps';

export async function rolloutsStage(run: Run): Promise<void> {
  const { config, prepared, status, found } = run;
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
  const base = batchOf(config, { ...batch, environment: config.target, tasks: part(prepared.plan, 'train') });
  if (run.trains) await checkAdapters(run, 1);
  const { problems, warnings } = (found.baseCheck = await checkBase(run, base));
  status.detail('rollouts', [tasks, ...(problems.length > 0 ? ['unsuited, but forced'] : []), ...warnings].join('; '));
  found.baseRollouts = await rollOutTarget(run, { ...batch, tasks: 'train' });
}

export async function selectionStage(run: Run): Promise<void> {
  const { config, status, found } = run;
  const { name: campaign, budget, target, analyst, selection: rule, seed } = config;
  const rollouts = required(found.baseRollouts).ref;
  const { ref: candidates, selects } = await longControl(config, 'discover candidate capabilities').discover({
    ...{ campaign, budget, target, analyst, rule, rollouts, seed },
  });
  const passes = selects === 'outright' ? undefined : await label(run, { rollouts, candidates });
  const { ref, selected } = await control(config, 'select').select({
    rule,
    rollouts,
    candidates,
    ...(passes && { labels: passes.labels }),
  });
  requireOtherNames(run, selected);
  const { labels = [], failedPasses = [] } = passes ?? {};
  const failed = failedPassesText(failedPasses, rule.passes);
  const say = (capabilities: readonly { candidate: Candidate }[]) =>
    status.detail('selection', (capabilities.map((s) => s.candidate.name).join(', ') || 'nothing selected') + failed);
  say(selected);
  found.selection = await approvedSelection(run, { candidates, labels, failedPasses, selection: ref, selected });
  say(found.selection.selected);
}

/** Arms and capabilities are rows of one report. */
function requireOtherNames({ config }: Run, capabilities: readonly { candidate: Candidate }[]): void {
  const taken = config.arms.map(armName).find((name) => capabilities.some(({ candidate }) => candidate.name === name));
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

/**
 * N passes side by side. One whose answers can't be used, or that may spend no more, is left out: votes still count out of N. What would
 * meet every pass (an endpoint that is away, an analyst's options that are wrong) fails the campaign.
 */
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
      if (failedWith(error, ...OF_A_PASS) === undefined) throw error;
      return { pass, reason: reasonOf(error) };
    }
  });
  return {
    labels: ended.flatMap((one) => ('uri' in one ? [one] : [])),
    failedPasses: ended.flatMap((one) => ('uri' in one ? [] : [one])),
  };
}
