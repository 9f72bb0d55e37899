/** What is trained on where it is synthesized environments: one, or several mixed. */
import type { TaskSet } from '../activities/types';
import type { Campaign } from '../domain/campaign';
import { mixtureSpec, sandboxSpec, type EnvironmentSpec } from '../domain/environment-spec';
import type { CapabilityResult, TrainedModule, TrainedOn } from '../domain/results';
import { acceptedWith, isCalibrated } from '../domain/synthesis-round';
import { HELD_OUT_SEEDS, seedsOfEach, TRAINING_SEEDS } from '../sandbox/seeds';
import { seeds as seedsOf } from './steps';

/** The version of a capability's environment that is within the bands, if one is. */
export function moduleOf({ rounds }: Pick<CapabilityResult, 'rounds'>): TrainedModule | undefined {
  const round = rounds.findLast(isCalibrated);
  if (!round) return undefined;
  const { hints, easier } = acceptedWith(round);
  return { module: round.module, hints: hints !== undefined, ...(easier !== undefined && { easier }) };
}

export type TrainedModules = readonly [TrainedModule, ...TrainedModule[]];

export interface Practice {
  environment: EnvironmentSpec;
  tasks: TaskSet;
  /** Seeds of the same, none of them an easier instance. */
  heldOut: TaskSet;
  trainedOn: TrainedOn[];
}

/** `count` training seeds, after the `seen` first ones of each: of several, two of one in a row. */
export function practiceOn(campaign: Campaign, modules: TrainedModules, o: { seen: number; count: number }): Practice {
  const { seen, count } = o;
  const [{ module, easier }, ...others] = modules;
  const training = { from: TRAINING_SEEDS + seen, count };
  const held = { from: HELD_OUT_SEEDS, count: campaign.validation.seeds };
  const trainedOn = modules.map((one) => ({
    module: one.module,
    seeds: seen + seedsOfEach(modules.length, count),
    ...(one.easier !== undefined && { easier: one.easier }),
  }));
  if (others.length === 0)
    return {
      environment: sandboxSpec(module),
      tasks: seedsOf(campaign, { ...training, easier }),
      heldOut: seedsOf(campaign, held),
      trainedOn,
    };
  const mixed = { kind: 'mixed', unlike: campaign.target } as const;
  return {
    environment: mixtureSpec(modules.map((one) => ({ module: one.module, hints: one.hints }))),
    tasks: { ...mixed, ...training, easier: modules.map((one) => one.easier ?? null) },
    heldOut: { ...mixed, ...held, easier: modules.map(() => null) },
    trainedOn,
  };
}
