/** The first two stages: base rollouts, then discovery, N labeling passes, selection. */
import { ApplicationFailure, isCancellation } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { armName } from '../domain/campaign';
import type { FailureType } from '../domain/failures';
import type { SelectionResult } from '../domain/results';
import { reasonOf } from './failure';
import { required, rollOutTarget, type Run } from './run';
import { analysis, basePolicy, control } from './steps';

export async function rolloutsStage(run: Run): Promise<void> {
  const { config, prepared, status, found } = run;
  status.detail('rollouts', `${prepared.tasks.discovery} train tasks, base model`);
  found.baseRollouts = await rollOutTarget(run, {
    purpose: 'base_rollouts',
    title: 'base rollouts',
    policy: basePolicy(prepared.base),
    tasks: 'discovery',
    attempts: config.rollouts.perTask,
    sampling: config.rollouts.sampling,
    maxSteps: config.rollouts.maxSteps,
  });
}

export async function selectionStage(run: Run): Promise<void> {
  const { config, status, found } = run;
  const { target, analyst, selection: rule } = config;
  const rollouts = required(found.baseRollouts).ref;
  const { ref: candidates, selects } = await status.gate.step(() =>
    analysis(config, 'discover candidate capabilities').discover({ target, analyst, rule, rollouts }),
  );
  const passes = selects === 'outright' ? undefined : await label(run, { rollouts, candidates });
  const { ref, selected } = await status.gate.step(() =>
    control('select').select({ rule, candidates, ...(passes && { labels: passes.labels }) }),
  );
  const taken = config.arms.map(armName).find((name) => selected.some(({ candidate }) => candidate.name === name));
  if (taken !== undefined)
    throw ApplicationFailure.nonRetryable(
      `arms: ${taken} is the name of a selected capability as well; give the arm another name`,
      'BadInput' satisfies FailureType,
    );
  const { labels = [], failedPasses = [] } = passes ?? {};
  found.selection = { candidates, labels, failedPasses, selection: ref, selected };
  const names = selected.map((s) => s.candidate.name).join(', ') || 'nothing selected';
  const failed = failedPasses.length > 0 ? `; ${failedPasses.length} of ${rule.passes} labeling passes failed` : '';
  status.detail('selection', names + failed);
}

/** N passes side by side. One that fails for good is left out: votes still count out of N. */
async function label(
  { config, status }: Run,
  { rollouts, candidates }: { rollouts: ArtifactRef; candidates: ArtifactRef },
): Promise<Pick<SelectionResult, 'labels' | 'failedPasses'>> {
  const { target, analyst, selection: rule, seed } = config;
  const ended = await status.gate.step(() =>
    Promise.all(
      Array.from({ length: rule.passes }, async (_, pass) => {
        try {
          const step = analysis(config, `labeling pass ${pass + 1} of ${rule.passes}`);
          return await step.label({ target, analyst, rollouts, candidates, pass, seed });
        } catch (error) {
          if (isCancellation(error)) throw error;
          return { pass, reason: reasonOf(error) };
        }
      }),
    ),
  );
  return {
    labels: ended.flatMap((one) => ('uri' in one ? [one] : [])),
    failedPasses: ended.flatMap((one) => ('uri' in one ? [] : [one])),
  };
}
