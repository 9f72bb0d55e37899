/** Trains one adapter with GRPO on the target itself. */
import { defineKind } from '../../domain/kinds';
import { planTasks } from '../steps';
import { train } from '../training';
import { type Arm, type ArmKind, plannedWhole, stepsWithin } from './arm';

export const grpoTarget: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'grpo_target',
    version: '1',
    options: {},
    open:
      (_options, maker) =>
      async ({ campaign, prepared, status, name, budget }) => ({
        work: await train({
          campaign,
          prepared,
          status,
          name,
          maker,
          environment: campaign.target,
          tasks: planTasks(prepared.plan, 'train'),
          heldOut: planTasks(prepared.plan, 'validation'),
          steps: stepsWithin(campaign, budget),
        }),
      }),
  }),
  trainsOnTarget: true,
  planned: plannedWhole,
};
