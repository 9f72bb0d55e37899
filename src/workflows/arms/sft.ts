/** Supervised fine-tuning on conversations that somebody brings: what imitation alone comes to. It spends no training rollouts. */
import { z } from 'zod';
import { defineKind } from '../../domain/kinds';
import { activity, part, silenceOf } from '../steps';
import { iterationsOf } from '../training';
import { type Arm, type ArmKind, fieldOf } from './arm';

const options = {
  conversations: z.string().min(1).describe('File of conversations (docs/conversations.md).'),
  minReward: z.number().min(0).max(1).default(1).describe('Conversations with a lower reward are left out.'),
  epochs: z.number().positive().default(3).describe('Passes over the conversations.'),
  steps: z.number().int().positive().optional().describe('Optimizer steps, in place of `epochs`.'),
  conversationsPerStep: z.number().int().positive().default(16).describe('Conversations of one optimizer step.'),
  learningRate: z.number().positive().optional().describe('Without it `training.learningRate`.'),
  checkpointEvery: z.number().int().positive().optional().describe('Without it `training.checkpointEvery`.'),
};

/** Checkpoints, where `epochs` say how long it is: how many conversations a file holds is not known before. */
const EXPECTED_CHECKPOINTS = 4;

const kind = defineKind<typeof options, Arm>({
  kind: 'sft',
  version: '1',
  options,
  given: { conversations: '' },
  open:
    (
      { conversations: file, minReward, epochs, steps, conversationsPerStep, learningRate, checkpointEvery },
      { kind, version },
    ) =>
    async ({ campaign, prepared, name, status }) => {
      const taken = await status.gate.step(() =>
        activity(campaign, `take the conversations of ${name}`).takeConversations({ file, minReward }),
      );
      const length = steps === undefined ? `${epochs} passes` : `${steps} steps`;
      status.set('train', `${length} over ${taken.count} conversations`);
      const training = await status.gate.interruptible(() =>
        activity(campaign, `fine-tune a LoRA: ${name}`).fineTune({
          name,
          // Its conversations, wherever they lay: they have a place of their own in the key.
          maker: { kind, version, options: {} },
          environment: campaign.target,
          base: prepared.base,
          conversations: taken.conversations,
          training: {
            ...campaign.training,
            ...(learningRate !== undefined && { learningRate }),
            ...(checkpointEvery !== undefined && { checkpointEvery }),
            epochs,
            // Not those of the campaign's trainings on rollouts.
            steps,
            rowsPerStep: conversationsPerStep,
          },
          seed: campaign.trainingSeed ?? campaign.seed,
          ...silenceOf(campaign),
        }),
      );
      const heldOut = part(prepared.plan, 'validation');
      const evaluated = { campaign, status, name, heldOut, heldOutOn: campaign.target };
      return { training, iterations: await iterationsOf(evaluated, training), conversations: taken.count };
    },
});

export const sft: ArmKind = {
  ...kind,
  routable: false,
  trainsOnConversations: true,
  starts: 'beside',
  planned(spec, { campaign }) {
    const { steps, checkpointEvery = campaign.training.checkpointEvery } = kind.read(spec);
    return { training: 0, heldOut: steps === undefined ? EXPECTED_CHECKPOINTS : Math.ceil(steps / checkpointEvery) };
  },
  reads(spec) {
    const { conversations: path, minReward } = kind.read(spec);
    return { field: fieldOf(spec, 'conversations'), path, holds: 'conversations', minReward };
  },
};
