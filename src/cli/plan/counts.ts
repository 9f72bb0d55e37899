/**
 * How many rollouts a campaign will make, by stage and purpose. Invariant: the same arithmetic as the workflows, where every arm trains with
 * the budget of `trace` on the target and evaluates its checkpoints, as grpo_target does.
 */
import type { Campaign } from '../../domain/campaign';
import type { Purpose } from '../../domain/purposes';
import type { Prepared } from '../../domain/results';
import type { Stage } from '../../domain/stages';

/** `low` and `high` differ where a campaign decides on its way. */
export interface Range {
  low: number;
  high: number;
}

export interface PlannedRollouts {
  stage: Stage;
  purpose: Purpose;
  /** Whether a gradient follows: what a rollout costs depends on it. */
  kind: 'rollout' | 'training';
  rollouts: Range;
}

/** For `capabilities` that are selected, calibrated and trained. */
export function plannedRollouts({
  campaign,
  tasks,
  capabilities,
}: {
  campaign: Campaign;
  tasks: Prepared['tasks'];
  capabilities: number;
}): PlannedRollouts[] {
  const { rollouts, calibration, training, validation, router, evaluation } = campaign;
  const round = calibration.seeds * calibration.rolloutsPerSeed;
  // What is too hard is calibrated once more, with hints on some of the rollouts; the others are there already.
  const hinted = calibration.seeds * Math.round(calibration.hintShare * calibration.rolloutsPerSeed);
  const perTraining = training.steps * training.groupsPerStep * training.groupSize;
  // Without a selected capability no arm is trained either.
  const arms = capabilities > 0 ? campaign.arms.length : 0;
  // Base and, of each adapter, every checkpoint; on seeds of its environment and on held-out tasks of the target.
  const onSeeds = (checkpoints(training.steps, training.checkpointEvery) + 1) * validation.seeds;
  const armCheckpoints = checkpoints(training.steps * capabilities, training.checkpointEvery);
  const onTarget = (capabilities > 0 ? 1 : 0) + capabilities + arms * armCheckpoints;
  const heldOut = (capabilities * onSeeds + onTarget * tasks.heldOut) * validation.trials;
  const policies = 1 + capabilities;
  const planned: PlannedRollouts[] = [
    counted('rollouts', 'base_rollouts', tasks.discovery * rollouts.perTask),
    {
      ...counted('capabilities', 'calibration', 0),
      rollouts: { low: capabilities * round, high: capabilities * (round + hinted) * calibration.maxRounds },
    },
    { ...counted('capabilities', 'training', (1 + arms) * capabilities * perTraining), kind: 'training' },
    counted('capabilities', 'held_out', heldOut),
    counted('router', 'outcome_matrix', policies * tasks.router * router.trials),
    // Every policy alone, every arm, and trace.
    counted('evaluation', 'test', (policies + arms + 1) * tasks.evaluation * evaluation.trials),
  ];
  return planned.filter((one) => one.rollouts.high > 0);
}

/** A trainer saves every so many steps and at its end. */
const checkpoints = (steps: number, every: number): number => Math.ceil(steps / every);

const counted = (stage: Stage, purpose: Purpose, rollouts: number): PlannedRollouts => ({
  stage,
  purpose,
  kind: 'rollout',
  rollouts: { low: rollouts, high: rollouts },
});
