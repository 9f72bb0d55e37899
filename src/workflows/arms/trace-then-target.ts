/** GRPO on the target from the sum of the capabilities' adapters. Invariant: adapters and target together spend what `trace` spent. */
import { z } from 'zod';
import { defineKind } from '../../domain/kind';
import type { FixedPolicy } from '../../domain/rollout';
import { part, rollOut } from '../steps';
import { plannedAfterAdapters, takenOver } from './adapters';
import type { Arm, ArmContext, ArmKind, PlanContext } from './arm';
import { trainOnTarget } from './target';

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
        const { taken, cost, builtOn } = takenOver(context, share);
        const from = taken.flatMap(({ best }) => best.policy.adapters);
        const { training, iterations } = await trainOnTarget(context, { maker, spent: cost, from });
        const { policy, heldOut } = await evaluated(context, { base: context.prepared.base, adapters: from });
        const sum = { step: 0, rollouts: cost, policy, heldOut };
        return { training, iterations: [sum, ...iterations], builtOn };
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
