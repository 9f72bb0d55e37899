/** The last two stages: fit the router on the outcome matrix of the train split; evaluate every policy, the routed one too, on test. */
import { isCancellation } from '@temporalio/workflow';
import { policyNames } from '../domain/policy-names';
import type { EvaluationResult } from '../domain/results';
import type { Policy } from '../domain/rollout';
import { reasonOf } from './failure';
import { options, required, rollOutTarget, type Run } from './run';
import { rollouts } from './steps';

export async function routerStage(run: Run): Promise<void> {
  const { config, status, found } = run;
  const routable = options(run).filter((option) => option.routable);
  const outcomes = await Promise.all(
    routable.map(async ({ name, policy }) => ({
      option: name,
      policy,
      rollouts: await rollOutTarget(run, {
        purpose: 'outcome_matrix',
        title: `outcome matrix: ${name}`,
        policy,
        tasks: 'router',
        attempts: config.router.trials,
      }),
    })),
  );
  const fitted = await status.gate.step(() =>
    rollouts(config, 'fit the router').fitRouter({
      router: config.router,
      seed: config.seed,
      outcomes: outcomes.map((one) => ({ ...one, rollouts: one.rollouts.ref })),
    }),
  );
  found.router = {
    ...fitted,
    options: outcomes.map(({ option }) => option),
    outcomes: outcomes.map(({ option, rollouts: batch }) => ({ option, rollouts: batch })),
  };
}

export async function evaluationStage(run: Run): Promise<void> {
  const { router } = required(run.found.router);
  const all: { name: string; policy: Policy }[] = [...options(run), { name: policyNames.routed, policy: { router } }];
  const ended = await Promise.all(all.map((policy) => evaluate(run, policy)));
  run.found.evaluation = {
    policies: ended.flatMap((one) => ('rollouts' in one ? [one] : [])),
    failed: ended.flatMap((one) => ('reason' in one ? [one] : [])),
  };
}

/** One policy on the test tasks. All others are compared with base: without it there is no evaluation. */
async function evaluate(
  run: Run,
  { name, policy }: { name: string; policy: Policy },
): Promise<EvaluationResult['policies'][number] | EvaluationResult['failed'][number]> {
  const { trials } = run.config.evaluation;
  try {
    const title = `test: ${name}`;
    const batch = { purpose: 'test', title, policy, tasks: 'evaluation', attempts: trials } as const;
    return { name, rollouts: await rollOutTarget(run, batch) };
  } catch (error) {
    if (isCancellation(error) || name === policyNames.base) throw error;
    return { name, reason: reasonOf(error) };
  }
}
