/**
 * What an arm trains on where it is modules: those of the capabilities or others, one or several mixed. Invariant: held out are train tasks
 * of the target, whatever it trains on.
 */
import type { Identity } from '../../domain/kind';
import type { ArmOutcome } from '../../domain/results';
import type { FixedPolicy } from '../../domain/rollout';
import { part } from '../steps';
import { moduleOf, practiceOn, type TrainedModule } from '../trained-module';
import { train, type TrainInput } from '../training';
import { stepsWithin, type ArmContext } from './arm';

interface OnModules {
  modules: readonly TrainedModule[];
  maker: Identity;
  /** The adapters whose sum it starts from. They have seen the first training seeds: it takes the next ones. */
  from?: FixedPolicy['adapters'];
  /** Training rollouts that the arm has cost already. */
  spent?: number;
  otherwise?: TrainInput['otherwise'];
}

/** One LoRA on all of them, with what is left of the budget: as many seeds of each, two in a row. */
export async function trainOnModules(
  { campaign, prepared, name, budget, status }: ArmContext,
  { modules, maker, from, spent = 0, otherwise = {} }: OnModules,
): Promise<ArmOutcome> {
  const steps = stepsWithin(campaign, budget - spent);
  const [first, ...others] = modules;
  if (!first) throw new Error('there is no module to train on');
  const { groupsPerStep } = campaign.training;
  const seen = from ? campaign.training.steps * groupsPerStep : 0;
  const { environment, tasks, trainedOn } = practiceOn(campaign, [first, ...others], {
    seen,
    count: steps * groupsPerStep,
  });
  const trained = await train({
    campaign,
    prepared,
    status,
    name,
    maker,
    environment,
    tasks,
    heldOut: part(prepared.plan, 'heldOut'),
    heldOutOn: campaign.target,
    steps,
    otherwise,
    ...(from && { from }),
    ...(modules.some(({ hints }) => hints) && { hints: { share: campaign.training.hintShare } }),
  });
  return {
    ...trained,
    iterations: trained.iterations.map((one) => ({ ...one, rollouts: spent + one.rollouts })),
    trainedOn,
  };
}

/** The same on the environments of all capabilities that have a calibrated one. Throws if none has. */
export async function trainOnCapabilities(context: ArmContext, rest: Omit<OnModules, 'modules'>): Promise<ArmOutcome> {
  const calibrated = context.capabilities.flatMap((capability) => {
    const module = moduleOf(capability);
    return module ? [{ ...module, capability: capability.name }] : [];
  });
  if (calibrated.length === 0) throw new Error('no capability has a calibrated environment to train on');
  const outcome = await trainOnModules(context, { ...rest, modules: calibrated });
  return { ...outcome, builtOn: calibrated.map(({ capability }) => ({ capability, rollouts: 0 })) };
}
