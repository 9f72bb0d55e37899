/**
 * What an arm trains on where it is modules: those of the capabilities or others, one or several mixed. Invariant: held out are train tasks
 * of the target, whatever it trains on.
 */
import type { Identity } from '../../domain/kinds';
import type { ArmOutcome, TrainedModule } from '../../domain/results';
import { part } from '../steps';
import { practiceOn } from '../trained-module';
import { train } from '../training';
import { stepsWithin, type ArmContext } from './arm';

interface OnModules {
  modules: readonly TrainedModule[];
  maker: Identity;
}

/** One LoRA on all of them, with the whole budget: as many seeds of each, two in a row. */
export async function trainOnModules(
  { campaign, prepared, name, budget, status }: ArmContext,
  { modules, maker }: OnModules,
): Promise<ArmOutcome> {
  const steps = stepsWithin(campaign, budget);
  const [first, ...others] = modules;
  if (!first) throw new Error('there is no module to train on');
  const { environment, tasks, trainedOn } = practiceOn(campaign, [first, ...others], {
    seen: 0,
    count: steps * campaign.training.groupsPerStep,
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
    ...(modules.some(({ hints }) => hints) && { hints: { share: campaign.training.hintShare } }),
  });
  return { ...trained, trainedOn };
}

/** The same on the environments of all capabilities that have a calibrated one. Throws if none has. */
export async function trainOnCapabilities(context: ArmContext, rest: Omit<OnModules, 'modules'>): Promise<ArmOutcome> {
  const calibrated = context.capabilities.flatMap(({ name, module }) =>
    module ? [{ ...module, capability: name }] : [],
  );
  if (calibrated.length === 0) throw new Error('no capability has a calibrated environment to train on');
  const outcome = await trainOnModules(context, { ...rest, modules: calibrated });
  return { ...outcome, builtOn: calibrated.map(({ capability }) => capability) };
}
