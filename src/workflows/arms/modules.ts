/**
 * What an arm trains on where it is modules: those of the capabilities or others, one or several mixed. Invariant: held out are train tasks
 * of the target, whatever it trains on.
 */
import type { ArtifactRef } from '../../domain/artifacts';
import { mixtureSpec, sandboxSpec } from '../../domain/environment-spec';
import type { Identity } from '../../domain/kind';
import type { ArmOutcome, CapabilityResult } from '../../domain/results';
import { acceptedWith, isCalibrated } from '../../domain/synthesis-round';
import { seedsOfEach, TRAINING_SEEDS } from '../../sandbox/seeds';
import { part, seeds as seedsOf } from '../steps';
import { train } from '../training';
import { stepsWithin, type ArmContext } from './arm';

export interface TrainedModule {
  module: ArtifactRef;
  /** It is within the bands only with hints. */
  hints: boolean;
  /** Only with this share of easier instances. */
  easier?: number;
}

/** The version of a capability's environment that is within the bands, if one is. */
export function moduleOf({ rounds }: CapabilityResult): TrainedModule | undefined {
  const round = rounds.findLast(isCalibrated);
  if (!round) return undefined;
  const { hints, easier } = acceptedWith(round);
  return { module: round.module, hints: hints !== undefined, ...(easier !== undefined && { easier }) };
}

/** One LoRA on all of them, with the whole budget: as many seeds of each, two in a row. */
export async function trainOnModules(
  { campaign, prepared, name, budget, status }: ArmContext,
  { modules, maker }: { modules: readonly TrainedModule[]; maker: Identity },
): Promise<ArmOutcome> {
  const steps = stepsWithin(campaign, budget);
  const [first, ...others] = modules;
  if (!first) throw new Error('there is no module to train on');
  const seeds = { from: TRAINING_SEEDS, count: steps * campaign.training.groupsPerStep };
  const mixed = others.length > 0;
  const trained = await train({
    campaign,
    prepared,
    status,
    name,
    maker,
    environment: mixed
      ? mixtureSpec(modules.map(({ module, hints }) => ({ module, hints })))
      : sandboxSpec(first.module),
    tasks: mixed
      ? { kind: 'mixed', ...seeds, unlike: campaign.target, easier: modules.map(({ easier = null }) => easier) }
      : seedsOf(campaign, { ...seeds, easier: first.easier }),
    heldOut: part(prepared.plan, 'heldOut'),
    heldOutOn: campaign.target,
    steps,
    ...(modules.some(({ hints }) => hints) && { hints: { share: campaign.training.hintShare } }),
  });
  return {
    ...trained,
    trainedOn: modules.map(({ module, easier }) => ({
      module,
      seeds: seedsOfEach(modules.length, seeds.count),
      ...(easier !== undefined && { easier }),
    })),
  };
}
