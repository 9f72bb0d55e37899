/**
 * How many rollouts a campaign will make, by stage and purpose. Invariant: the same arithmetic as the workflows; what an arm makes within the
 * budget of `trace`, its kind says. The lower ends are without a composite.
 */
import type { Campaign, Stage } from '../../domain/campaign';
import { sharedSteps } from '../../domain/capability';
import { kindOf } from '../../domain/kinds';
import type { Purpose } from '../../domain/rollout';
import type { Prepared } from '../../domain/results';
import { countSums } from '../../domain/policies';
import { registry, type Registry } from '../../registry';

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
  kinds = registry.arms,
}: {
  campaign: Campaign;
  tasks: Prepared['tasks'];
  capabilities: number;
  kinds?: Registry['arms'];
}): PlannedRollouts[] {
  const { rollouts, calibration, training, validation, router, evaluation } = campaign;
  const round = calibration.seeds * calibration.rolloutsPerSeed;
  // What is too hard is calibrated once more with hints on some of the rollouts; the others are there already.
  const hinted = calibration.seeds * Math.round(calibration.hintShare * calibration.rolloutsPerSeed);
  const perTraining = training.steps * training.groupsPerStep * training.groupSize;
  const budget = capabilities * perTraining;
  // Without a selected capability no arm is trained either.
  const arms = (capabilities > 0 ? campaign.arms : []).map((spec) => {
    const { planned, routable } = kindOf(kinds, spec);
    return { routable, ...planned(spec, { campaign, capabilities, budget }) };
  });
  const sum = (of: 'training' | 'heldOut') => arms.reduce((total, arm) => total + arm[of], 0);
  // Base and, of each adapter, every checkpoint; on seeds of its environment and on held-out tasks of the target.
  const onSeeds = (steps: number) => (checkpoints(steps, training.checkpointEvery) + 1) * validation.seeds;
  const onTarget = (capabilities > 0 ? 1 : 0) + capabilities + sum('heldOut');
  const heldOut = (capabilities * onSeeds(training.steps) + onTarget * tasks.heldOut) * validation.trials;
  const combined = compositesOf(campaign, capabilities);
  const shared = sharedSteps({ ...training, selected: capabilities, share: campaign.composites.share });
  // Of a composite on environments mixed the target's tasks choose the iteration.
  const ofComposite =
    2 * validation.seeds + (checkpoints(shared.composite, training.checkpointEvery) + 1) * tasks.heldOut;
  const combinedHeldOut =
    (capabilities * onSeeds(shared.each) + onTarget * tasks.heldOut + ofComposite) * validation.trials;
  const policies = 1 + capabilities;
  const sums = countSums(capabilities);
  const learned = capabilities > 1 ? router.moeGates.length : 0;
  const routable = arms.filter((arm) => arm.routable).length;
  const tested = policies + learned + arms.length + 1;
  const planned: PlannedRollouts[] = [
    counted('rollouts', 'base_rollouts', tasks.discovery * rollouts.perTask),
    {
      ...counted('capabilities', 'calibration', 0),
      rollouts: {
        low: capabilities * round,
        high: capabilities * (round + hinted) * calibration.maxRounds,
      },
    },
    { ...counted('capabilities', 'training', budget + sum('training')), kind: 'training' },
    upTo(counted('capabilities', 'held_out', heldOut), combined * combinedHeldOut),
    upTo(
      counted(
        'router',
        'outcome_matrix',
        (policies + sums.tried.low + learned + routable) * tasks.router * router.trials,
      ),
      (policies + sums.tried.high + learned + combined + routable) * tasks.router * router.trials,
    ),
    // Every policy alone, every sum, every arm, and trace.
    upTo(
      counted('evaluation', 'test', (tested + sums.options.low) * tasks.evaluation * evaluation.trials),
      (tested + sums.options.high + combined) * tasks.evaluation * evaluation.trials,
    ),
  ];
  return planned.filter((one) => one.rollouts.high > 0);
}

/** Composites that there may be: whether there is one is known after the selection. */
export function compositesOf({ composites, training }: Campaign, capabilities: number): number {
  const { composite } = sharedSteps({ ...training, selected: capabilities, share: composites.share });
  return capabilities > 1 && composite > 0 ? 1 : 0;
}

/** A trainer saves every so many steps and at its end. */
const checkpoints = (steps: number, every: number): number => Math.ceil(steps / every);

const upTo = (one: PlannedRollouts, high: number): PlannedRollouts => ({
  ...one,
  rollouts: { ...one.rollouts, high: Math.max(one.rollouts.high, high) },
});

const counted = (stage: Stage, purpose: Purpose, rollouts: number): PlannedRollouts => ({
  stage,
  purpose,
  kind: 'rollout',
  rollouts: { low: rollouts, high: rollouts },
});
