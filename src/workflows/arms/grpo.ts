/** One LoRA, trained with GRPO: on the target itself, on the best capability alone, or on the environments of all capabilities, mixed. */
import { defineKind } from '../../domain/kinds';
import type { EndedCapability } from '../../domain/results';
import { part } from '../steps';
import { train } from '../training';
import { type Arm, type ArmKind, plannedWhole, stepsWithin, trainOnCapabilities, trainOnModules } from './arm';

export const grpoTarget: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'grpo_target',
    version: '1',
    options: {},
    open:
      (_options, maker) =>
      ({ campaign, prepared, status, name, budget }) =>
        train({
          campaign,
          prepared,
          status,
          name,
          maker,
          environment: campaign.target,
          tasks: part(prepared.plan, 'train'),
          heldOut: part(prepared.plan, 'validation'),
          steps: stepsWithin(campaign, budget),
        }),
  }),
  routable: false,
  starts: 'beside',
  trainsOnTarget: true,
  planned: plannedWhole,
};

export const grpoSingle: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'grpo_single',
    version: '1',
    options: {},
    open: (_options, maker) => async (context) => {
      const best = singles(context.capabilities).reduce((most, next) => (gainsMore(next, most) ? next : most));
      const { name, module } = best;
      if (!module) throw new Error(`${name} has an adapter and no calibrated environment`);
      const outcome = await trainOnModules(context, { modules: [module], maker });
      return { ...outcome, builtOn: [name] };
    },
  }),
  routable: false,
  starts: 'after',
  planned: plannedWhole,
};

type Trained = EndedCapability & Required<Pick<EndedCapability, 'trained'>>;

/** Those with an adapter. Throws if there is none. */
export function singles(capabilities: readonly EndedCapability[]): [Trained, ...Trained[]] {
  const [first, ...others] = capabilities.filter((one): one is Trained => one.trained !== undefined);
  if (!first) throw new Error('no capability came to an adapter');
  return [first, ...others];
}

/** By success, then by mean reward; of equals the first stays. */
function gainsMore(one: EndedCapability, other: EndedCapability): boolean {
  const gain = ({ trained }: EndedCapability, of: 'successRate' | 'meanReward') =>
    trained ? trained.target.after[of] - trained.target.before[of] : -Infinity;
  const difference = gain(one, 'successRate') - gain(other, 'successRate');
  return difference > 0 || (difference === 0 && gain(one, 'meanReward') > gain(other, 'meanReward'));
}

export const joint: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'joint',
    version: '1',
    options: {},
    open: (_options, maker) => (context) => trainOnCapabilities(context, { maker }),
  }),
  routable: false,
  starts: 'after',
  planned: plannedWhole,
};
