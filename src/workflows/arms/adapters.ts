/** Adapters of `trace` that an arm takes over. Invariant: what they have cost until then is counted as the arm's own. */
import { bestIteration, type CapabilityResult, type Iteration } from '../../domain/results';

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
