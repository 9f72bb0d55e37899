/**
 * The routed policy in one LoRA: a student plays the target's train tasks and learns at every token what the router's choice for the conversation
 * would have said there. Invariant: the teachers' adapters and the student together spend what `trace` spent.
 */
import { z } from 'zod';
import type { TeacherSpec } from '../../activities/types';
import { partNames } from '../../domain/composite';
import { defineKind } from '../../domain/kind';
import type { CapabilityResult } from '../../domain/results';
import { plannedAfterAdapters, takenOver, type TakenOver } from './adapters';
import { stepRollouts, type Arm, type ArmContext, type ArmKind } from './arm';
import { trainOnTarget } from './target';

const options = {
  /** Of the budget, for the student at least; the rest is the adapters'. */
  share: z.number().gt(0).lt(1).default(0.25),
  /** Without it, `training.learningRate`. */
  learningRate: z.number().positive().optional(),
};

export const distill: ArmKind = {
  ...defineKind<typeof options, Arm>({
    kind: 'distill',
    version: '1',
    options,
    open:
      ({ share, learningRate }, maker) =>
      async (context) => {
        const { capabilities, router } = context;
        if (!router?.router) throw new Error(`there is no routed policy to distill: ${router?.reason}`);
        const { taken, cost, builtOn } = takenOver(context, share);
        const trained = await trainOnTarget(context, {
          maker,
          spent: cost,
          teacher: { router: router.router, instead: substitutes(capabilities, taken) },
          otherwise: {
            ...groupsOf(context),
            kl: 0,
            // What a teacher looks up is to be learned like what it says.
            maskReadOnlyTurns: false,
            ...(learningRate !== undefined && { learningRate }),
          },
        });
        return { ...trained, builtOn };
      },
  }),
  routable: false,
  starts: 'after_router',
  planned: (spec, plan) => plannedAfterAdapters(z.object(options).parse(spec).share, plan),
};

/** What stands for each adapter that the router may choose: of a capability its best within the limit, of a composite the sum of its parts'. */
function substitutes(capabilities: readonly CapabilityResult[], taken: readonly TakenOver[]): TeacherSpec['instead'] {
  const of = (name: string) => taken.find(({ capability }) => capability === name)?.best.policy.adapters ?? [];
  return capabilities.flatMap(({ name, parts, trained }) =>
    (trained?.best.policy.adapters ?? []).map(({ ref }) => ({
      adapter: ref.sha256,
      adapters: parts ? partNames({ parts }).flatMap(of) : of(name),
    })),
  );
}

/** As many rollouts a step as every training has, of as many different tasks as there are: what differs teaches more than one task again. */
function groupsOf({ campaign, prepared }: ArmContext): { groupsPerStep: number; groupSize: number } {
  const rollouts = stepRollouts(campaign);
  for (let groupSize = 2; ; groupSize++)
    if (rollouts % groupSize === 0 && rollouts / groupSize <= prepared.tasks.discovery)
      return { groupsPerStep: rollouts / groupSize, groupSize };
}
