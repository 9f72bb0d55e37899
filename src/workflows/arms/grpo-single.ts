/** The best capability alone, with the whole budget: that whose adapter gains most on the held-out train tasks of the target. */
import { defineKind } from '../../domain/kinds';
import type { EndedCapability } from '../../domain/results';
import { plannedWhole, type Arm, type ArmKind } from './arm';
import { trainOnModules } from './modules';

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

/** Those with an adapter that was trained from the base model: a composite's holds others already. Throws if there is none. */
export function singles(capabilities: readonly EndedCapability[]): [Trained, ...Trained[]] {
  const [first, ...others] = capabilities.filter((one): one is Trained => one.trained !== undefined && !one.parts);
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
