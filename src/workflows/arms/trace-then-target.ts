/** GRPO on the target from the sum of the capabilities' adapters. Invariant: adapters and target together spend what `trace` spent. */
import { z } from 'zod';
import { defineKind } from '../../domain/kind';
import type { FixedPolicy } from '../../domain/rollout';
import { part, rollOut } from '../steps';
import { train } from '../training';
import { plannedAfterAdapters, takenOver } from './adapters';
import { stepsWithin, type Arm, type ArmContext, type ArmKind, type PlanContext } from './arm';

const options = {
  /** Of the budget, for the target at least; the rest is the adapters'. */
  share: z
    .number()
    .gt(0)
    .lt(1)
    .default(1 / 3),
};

export const traceThenTarget: ArmKind = {
  ...defineKind<typeof options, Arm>({
    kind: 'trace_then_target',
    version: '1',
    options,
    open:
      ({ share }, maker) =>
      async (context) => {
        const { campaign, prepared, name, budget, status } = context;
        const { taken, cost } = takenOver(context, share);
        const from = taken.flatMap(({ best }) => best.policy.adapters);
        const heldOut = part(prepared.plan, 'heldOut');
        const { training, iterations } = await train({
          campaign,
          prepared,
          status,
          name,
          maker,
          environment: campaign.target,
          tasks: part(prepared.plan, 'discovery'),
          heldOut,
          steps: stepsWithin(campaign, budget - cost),
          from,
        });
        const sum = { step: 0, rollouts: cost, ...(await evaluated(context, { base: prepared.base, adapters: from })) };
        return {
          training,
          iterations: [sum, ...iterations.map((one) => ({ ...one, rollouts: cost + one.rollouts }))],
          builtOn: taken.map(({ capability, rollouts }) => ({ capability, rollouts })),
        };
      },
  }),
  routable: false,
  starts: 'after',
  planned: (spec, plan) => planned(z.object(options).parse(spec).share, plan),
};

/** The sum itself, before it is trained. */
async function evaluated({ campaign, prepared, name, status }: ArmContext, policy: FixedPolicy) {
  const heldOut = await status.gate.step(() =>
    rollOut(campaign, {
      purpose: 'held_out',
      title: `${name}: held out, the sum`,
      environment: campaign.target,
      policy,
      tasks: part(prepared.plan, 'heldOut'),
      attempts: campaign.validation.trials,
    }),
  );
  return { policy, heldOut };
}

function planned(share: number, plan: PlanContext) {
  const { training, heldOut } = plannedAfterAdapters(share, plan);
  return { training, heldOut: 1 + heldOut };
}
