/** The last two stages: fit the router on the outcome matrix of the train split; evaluate every policy and the routed one on test. */
import { control } from './steps';
import { policies, required, rollOutEach, rollOutTarget, type Run } from './run';

export async function routerStage(run: Run): Promise<void> {
  const { config, status, found } = run;
  const options = policies(run).filter(({ option }) => option !== 'grpo_target');
  const { trials, folds } = config.router;
  const outcomes = await rollOutEach(run, { options, purpose: 'outcome matrix', tasks: 'router', attempts: trials });
  const fitted = await status.gate.step(() =>
    control('fit the router').fitRouter({
      target: config.target,
      seed: config.seed,
      folds,
      outcomes: outcomes.map(({ option, rollouts }) => ({ option, rollouts: rollouts.ref })),
    }),
  );
  found.router = { ...fitted, options: options.map(({ option }) => option), outcomes };
}

export async function evaluationStage(run: Run): Promise<void> {
  const { config, prepared, status, found } = run;
  const { trials } = config.evaluation;
  const all = policies(run);
  const options = await rollOutEach(run, { options: all, purpose: 'test', tasks: 'evaluation', attempts: trials });
  const { router } = required(found.router);
  // Rollouts of its own: the routed policy is run, not looked up in the matrix.
  const seed = config.seed + 1;
  const { assignment, chosen } = await status.gate.step(() =>
    control('route the test tasks').route({ target: config.target, router, plan: prepared.plan, seed }),
  );
  const routed = await Promise.all(
    chosen.map(async ({ option }) => ({
      option,
      rollouts: await rollOutTarget(run, {
        purpose: `test: trace, routed to ${option}`,
        policy: required(all.find((p) => p.option === option)).policy,
        tasks: { kind: 'assignment', assignment, option },
        attempts: trials,
        seed,
      }),
    })),
  );
  found.evaluation = { options, trace: { assignment, chosen: routed } };
}
