/** The best capability alone, with the whole budget: that whose adapter gains most on the held-out train tasks of the target. */
import { defineKind } from '../../domain/kind';
import type { CapabilityResult } from '../../domain/results';
import { plannedWhole, type Arm, type ArmKind } from './arm';
import { moduleOf } from '../trained-module';
import { trainOnModules } from './modules';

export const grpoSingle: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'grpo_single',
    version: '1',
    options: {},
    open: (_options, maker) => async (context) => {
      const best = singles(context.capabilities).reduce((most, next) => (gainsMore(next, most) ? next : most));
      const module = moduleOf(best);
      if (!module) throw new Error(`${best.name} has an adapter and no calibrated environment`);
      const outcome = await trainOnModules(context, { modules: [module], maker });
      return { ...outcome, builtOn: [best.name] };
    },
  }),
  routable: false,
  starts: 'after',
  planned: plannedWhole,
};

type Trained = CapabilityResult & Required<Pick<CapabilityResult, 'trained'>>;

/** Those with an adapter that was trained from the base model: a composite's holds others already. Throws if there is none. */
export function singles(capabilities: readonly CapabilityResult[]): [Trained, ...Trained[]] {
  const [first, ...others] = capabilities.filter((one): one is Trained => one.trained !== undefined && !one.parts);
  if (!first) throw new Error('no capability came to an adapter');
  return [first, ...others];
}

/** By success, then by mean reward; of equals the first stays. */
function gainsMore(one: CapabilityResult, other: CapabilityResult): boolean {
  const gain = ({ trained }: CapabilityResult, of: 'successRate' | 'meanReward') =>
    trained ? trained.target.after[of] - trained.target.before[of] : -Infinity;
  const difference = gain(one, 'successRate') - gain(other, 'successRate');
  return difference > 0 || (difference === 0 && gain(one, 'meanReward') > gain(other, 'meanReward'));
}
