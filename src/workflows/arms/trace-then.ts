/**
 * Training on from the sum of the capabilities' adapters: on the target, or on their environments mixed. Invariant: adapters and what follows
 * together spend what `trace` spent.
 */
import { z } from 'zod';
import { defineKind, type Identity } from '../../domain/kind';
import type { Training } from '../../domain/campaign';
import type { ArmOutcome } from '../../domain/results';
import type { FixedPolicy } from '../../domain/rollout';
import { part, rollOut } from '../steps';
import { plannedAfterAdapters, takenOver } from './adapters';
import type { Arm, ArmContext, ArmKind, PlanContext } from './arm';
import { trainOnCapabilities } from './modules';
import { trainOnTarget } from './target';

/** The same options for both. */
const optionsOf = (share: number) => ({
  /** Of the budget, what is the arm's own at least; the rest is the adapters'. */
  share: z.number().gt(0).lt(1).default(share),
  /** Without it, `training.learningRate` divided by the number of adapters summed. */
  learningRate: z.number().positive().optional(),
});

interface Rest {
  maker: Identity;
  from: FixedPolicy['adapters'];
  spent: number;
  otherwise: Partial<Training>;
}

const traceThen = (o: {
  kind: string;
  share: number;
  /** Trains with what is left of the budget. */
  rest: (context: ArmContext, rest: Rest) => Promise<ArmOutcome>;
}): ArmKind => {
  const options = optionsOf(o.share);
  return {
    ...defineKind<typeof options, Arm>({
      kind: o.kind,
      version: '1',
      options,
      open:
        ({ share, learningRate }, maker) =>
        async (context) => {
          const { taken, cost, builtOn } = takenOver(context, share);
          const from = taken.flatMap(({ best }) => best.policy.adapters);
          const outcome = await o.rest(context, {
            maker,
            from,
            spent: cost,
            otherwise: learningRate === undefined ? {} : { learningRate },
          });
          const { policy, heldOut } = await evaluated(context, { base: context.prepared.base, adapters: from });
          const sum = { step: 0, rollouts: cost, policy, heldOut };
          // An environment whose capability came to no adapter has cost its calibration all the same.
          const others = (outcome.builtOn ?? []).filter((one) => !builtOn.some((b) => b.capability === one.capability));
          return { ...outcome, iterations: [sum, ...outcome.iterations], builtOn: [...builtOn, ...others] };
        },
    }),
    routable: false,
    starts: 'after',
    planned: (spec, plan) => planned(z.object(options).parse(spec).share, plan),
  };
};

export const traceThenTarget = traceThen({ kind: 'trace_then_target', share: 1 / 3, rest: trainOnTarget });

export const traceThenJoint = traceThen({
  kind: 'trace_then_joint',
  share: 1 / 2,
  rest: trainOnCapabilities,
});

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
