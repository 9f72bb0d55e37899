/** What an arm trains on where it is the target. Invariant: what it has spent before counts as its own: the budget holds for both together. */
import type { Identity } from '../../domain/kind';
import { part } from '../steps';
import { train, type TrainInput } from '../training';
import { stepsWithin, type ArmContext } from './arm';

interface OnTarget extends Pick<TrainInput, 'from' | 'teacher' | 'otherwise'> {
  maker: Identity;
  /** Training rollouts that the arm has cost already. */
  spent?: number;
}

/** One LoRA on the target's discovery tasks, with what is left of the budget. */
export async function trainOnTarget(
  { campaign, prepared, status, name, budget }: ArmContext,
  { spent = 0, ...input }: OnTarget,
): ReturnType<typeof train> {
  const { training, iterations } = await train({
    campaign,
    prepared,
    status,
    name,
    environment: campaign.target,
    tasks: part(prepared.plan, 'discovery'),
    heldOut: part(prepared.plan, 'heldOut'),
    steps: stepsWithin(campaign, budget - spent),
    ...input,
  });
  return { training, iterations: iterations.map((one) => ({ ...one, rollouts: spent + one.rollouts })) };
}
