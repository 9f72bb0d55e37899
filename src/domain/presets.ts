/** Named sets of values for campaign files. What a preset leaves out has the schema's default, which is the paper's value. */
import type { z } from 'zod';
import type { campaignSchema } from './campaign';

type PresetValues = Omit<Partial<z.input<typeof campaignSchema>>, 'name' | 'seed' | 'target' | 'baseModel'>;

export const presetNames = ['paper', 'attention-only', 'demo', 'small-model'] as const;
export type PresetName = (typeof presetNames)[number];

/** Longest turn of the shipped base model, in tokens, with room to spare. */
const DEMO_TURN_TOKENS = 48;

const TEXT_TOKENS = 96;

export const presets: Record<PresetName, PresetValues> = {
  paper: {},
  /** The same, with a LoRA on attention alone: the default for a mixture of experts, whose experts only vLLM serves with adapters. */
  'attention-only': { training: { lora: { targetModules: ['q_proj', 'k_proj', 'v_proj', 'o_proj'] } } },
  /** The same method for a model of a million parameters on two CPU cores. */
  demo: {
    rollouts: { tasks: 340, sampling: { temperature: 1, maxTokens: DEMO_TURN_TOKENS } },
    policyServer: { kind: 'embedded', threads: 1 },
    calibration: { seeds: 24 },
    training: {
      groupsPerStep: 4,
      steps: 16,
      learningRate: 2e-3,
      lora: { targetModules: ['q_proj', 'k_proj', 'v_proj', 'out_proj', 'in_proj', 'w1', 'w2', 'w3'] },
      checkpointEvery: 8,
      threads: 1,
    },
    validation: { seeds: 48 },
    evaluation: { sampling: { maxTokens: DEMO_TURN_TOKENS } },
    // Two trainers at once: one's gradients fill the cores while the other waits for rollouts.
    workers: { gpuSlots: 2 },
  },
  /** The same method for a model of a hundred million parameters on two CPU cores, and texts of a few sentences. */
  'small-model': {
    rollouts: { tasks: 120, perTask: 2, sampling: { maxTokens: TEXT_TOKENS } },
    selection: { passes: 3, votes: 2 },
    // Samples of such a model at temperature 1 are often gibberish, and nearly every environment would be judged too hard.
    calibration: { seeds: 24, rolloutsPerSeed: 8, temperature: 0.7, minBranchSuccess: 0.1 },
    training: {
      groupsPerStep: 4,
      groupSize: 8,
      steps: 10,
      learningRate: 1e-3,
      threads: 2,
      tokensPerForward: 1024,
    },
    validation: { seeds: 32 },
    router: { kind: 'learned', tasks: 100 },
    evaluation: {
      // Such a model repeats itself with greedy sampling, the more so the longer it was trained at temperature 1 (docs/results.md).
      sampling: { temperature: 0.7, maxTokens: TEXT_TOKENS },
    },
  },
};

/** Number of capabilities of the published runs (arXiv 2604.05336). */
export const PUBLISHED_CAPABILITIES = 4;
