/** What is trained on where it is synthesized environments: one, or several mixed. */
import type { TaskSet } from '../activities/types';
import type { Campaign } from '../domain/campaign';
import { mixtureSpec, sandboxSpec, type EnvironmentSpec } from '../domain/kinds';
import type { CapabilityResult, TrainedModule, TrainedOn } from '../domain/results';
import { acceptedWithHints, isCalibrated } from '../domain/calibration';
import { HELD_OUT_SEEDS, seedsOfEach, TRAINING_SEEDS } from '../sandbox/seeds';
import { seeds as seedsOf } from './steps';

/** The version of a capability's environment that is within the bands, if one is. */
export function moduleOf({ rounds }: Pick<CapabilityResult, 'rounds'>): TrainedModule | undefined {
  const round = rounds.findLast(isCalibrated);
  return round && { module: round.module, hints: acceptedWithHints(round) };
}

export type TrainedModules = readonly [TrainedModule, ...TrainedModule[]];

export interface Practice {
  environment: EnvironmentSpec;
  tasks: TaskSet;
  /** Seeds of the same. */
  heldOut: TaskSet;
  trainedOn: TrainedOn[];
}

/** `count` training seeds, after the `seen` first ones of each: of several, two of one in a row. */
export function practiceOn(campaign: Campaign, modules: TrainedModules, o: { seen: number; count: number }): Practice {
  const { seen, count } = o;
  const [{ module }, ...others] = modules;
  const training = { from: TRAINING_SEEDS + seen, count };
  const held = { from: HELD_OUT_SEEDS, count: campaign.validation.seeds };
  const trainedOn = modules.map((one) => ({
    module: one.module,
    seeds: seen + seedsOfEach(modules.length, count),
  }));
  if (others.length === 0)
    return {
      environment: sandboxSpec(module),
      tasks: seedsOf(campaign, training),
      heldOut: seedsOf(campaign, held),
      trainedOn,
    };
  const mixed = { kind: 'mixed', unlike: campaign.target } as const;
  return {
    environment: mixtureSpec(modules.map((one) => ({ module: one.module, hints: one.hints }))),
    tasks: { ...mixed, ...training },
    heldOut: { ...mixed, ...held },
    trainedOn,
  };
}
