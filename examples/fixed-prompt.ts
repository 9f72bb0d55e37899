/** An arm that trains nothing: the base model with a prompt. Used by one line in src/workflows/arms/index.ts. */
import { defineKind } from '../src/domain/kinds';
import { promptSchema } from '../src/domain/rollout';
import type { Arm, ArmKind } from '../src/workflows/arms/arm';
import { basePolicy, part, rollOut } from '../src/workflows/steps';

const { text, place } = promptSchema.shape;

export const fixedPrompt: ArmKind = {
  ...defineKind({
    kind: 'fixed_prompt',
    version: '1',
    options: { text, place: place.default('before') },
    open:
      (prompt): Arm =>
      async ({ campaign, prepared, name, status }) => {
        status.set('validate', 'the prompt on held-out tasks');
        const policy = { ...basePolicy(prepared.base), prompt };
        const heldOut = await status.gate.step(() =>
          rollOut(campaign, {
            purpose: 'held_out',
            title: `${name}: held out`,
            environment: campaign.target,
            policy,
            tasks: part(prepared.plan, 'validation'),
            attempts: campaign.validation.trials,
          }),
        );
        return { iterations: [{ step: 0, rollouts: 0, policy, heldOut }] };
      },
  }),
  routable: true,
  starts: 'beside',
  planned: () => ({ training: 0, heldOut: 1 }),
};
