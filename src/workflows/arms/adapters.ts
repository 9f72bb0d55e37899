/** Adapters of `trace` that an arm takes over. Invariant: what they have cost until then is counted as the arm's own. */
import type { Campaign } from '../../domain/campaign';
import { bestIteration, type Iteration } from '../../domain/iterations';
import type { ArmOutcome, CapabilityResult } from '../../domain/results';
import { plannedTraining, stepRollouts, type ArmContext, type PlanContext, type PlannedArm } from './arm';

type Trained = CapabilityResult & Required<Pick<CapabilityResult, 'trained'>>;

/** Those with an adapter that was trained from the base model: a composite's holds others already. Throws if there is none. */
export function singles(capabilities: readonly CapabilityResult[]): [Trained, ...Trained[]] {
  const [first, ...others] = capabilities.filter((one): one is Trained => one.trained !== undefined && !one.parts);
  if (!first) throw new Error('no capability came to an adapter');
  return [first, ...others];
}

export interface TakenOver {
  capability: string;
  best: Iteration;
  /** Training rollouts that it was chosen from. */
  rollouts: number;
}

/** The best iteration of each within so many training rollouts; one that has none yet is left out. */
export const bestWithin = (capabilities: readonly Trained[], rollouts: number): TakenOver[] =>
  capabilities.flatMap(({ name, trained: { iterations } }) => {
    const within = iterations.filter((iteration) => iteration.rollouts <= rollouts);
    const [best, last] = [bestIteration(within), within.at(-1)];
    return best && last ? [{ capability: name, best, rollouts: last.rollouts }] : [];
  });

/** Training rollouts that one of several adapters may have cost, where `share` of the budget is the arm's own at least. */
const ofOne = (budget: number, share: number, adapters: number): number =>
  Math.round(((1 - share) * budget) / adapters);

/** The best of each within (1 - `share`) of the budget, as much for each, and what they cost together. Throws if there is none. */
export function takenOver(
  { name, budget, capabilities }: Pick<ArmContext, 'name' | 'budget' | 'capabilities'>,
  share: number,
): { taken: TakenOver[]; cost: number; builtOn: NonNullable<ArmOutcome['builtOn']> } {
  const trained = singles(capabilities);
  const limit = ofOne(budget, share, trained.length);
  const taken = bestWithin(trained, limit);
  if (taken.length === 0)
    throw new Error(
      `no adapter has a checkpoint within ${limit} training rollouts; lower share (${share}) of arm ${name}, or training.checkpointEvery`,
    );
  return {
    taken,
    cost: taken.reduce((sum, { rollouts }) => sum + rollouts, 0),
    builtOn: taken.map(({ capability, rollouts }) => ({ capability, rollouts })),
  };
}

/** Of an arm that takes them over and trains with the rest. */
export function plannedAfterAdapters(share: number, { campaign, capabilities, budget }: PlanContext): PlannedArm {
  const each = lastCheckpoint(campaign, ofOne(budget, share, capabilities));
  return plannedTraining(campaign, budget - capabilities * each);
}

/** Training rollouts of a capability up to its last checkpoint within so many. */
function lastCheckpoint(campaign: Campaign, rollouts: number): number {
  const { steps, checkpointEvery } = campaign.training;
  const within = Math.floor(rollouts / stepRollouts(campaign));
  return stepRollouts(campaign) * (within >= steps ? steps : within - (within % checkpointEvery));
}
