/**
 * One attempt of a policy at a task. Invariant: only a `scored` rollout has a reward; a `broken` one (a failure outside the policy)
 * has an error instead and never enters a statistic.
 */
import { z } from 'zod';
import { artifactRefSchema, type ArtifactRef } from './artifacts';
import { evaluationSchema, stopReasonSchema } from './environment';
import { messageSchema } from './messages';

/** Text before the environment's system message, or in its place. */
export const promptSchema = z.object({ text: z.string().min(1), place: z.enum(['before', 'instead']) });
export type Prompt = z.infer<typeof promptSchema>;

/** The base model (no adapter), one adapter, or a weighted sum of adapters; with a prompt of its own or without. */
export const fixedPolicySchema = z.object({
  /** The base model's id: name and weights hash. */
  base: z.string(),
  adapters: z.array(z.object({ ref: artifactRefSchema, weight: z.number() })),
  prompt: promptSchema.optional(),
});
export type FixedPolicy = z.infer<typeof fixedPolicySchema>;

/** A fitted router chooses for each conversation, once it has begun. */
export interface RoutedPolicy {
  router: ArtifactRef;
}

export type Policy = RoutedPolicy | FixedPolicy;

/** What a router chose for one conversation. */
export const choiceSchema = z.object({
  /** Name of the option, or of what was put together from several. */
  chosen: z.string(),
  policy: fixedPolicySchema,
  /** By option, as the router sees them; they need not add up to 1. */
  probabilities: z.record(z.string(), z.number()),
  /** How long choosing took. */
  milliseconds: z.number().nonnegative().optional(),
});
export type Choice = z.infer<typeof choiceSchema>;

export interface Sampling {
  /** 0 is greedy. */
  temperature: number;
  topP: number;
  maxTokens: number;
}

/** Which rollouts are hinted: those of the first attempts at each task, this share of them (rounded). The environment gives the hint. */
export interface Hints {
  share: number;
}

/** Token ids of one training row: `completionIds` runs from the first sampled token to the last, tool results included. */
const trainingRowSchema = z.object({
  promptIds: z.array(z.number().int()),
  completionIds: z.array(z.number().int()),
  /** 0 where the token was not sampled. */
  logprobs: z.array(z.number()),
  /** What was sampled, turn by turn: `completionIds` from `start` up to and without `end`. The rest is what the environment said. */
  turns: z.array(
    z.object({
      start: z.number().int(),
      end: z.number().int(),
      /** The turn only calls tools that change nothing. Whether it carries loss is decided when a batch is made. */
      readOnly: z.boolean(),
    }),
  ),
});
export type TrainingRow = z.infer<typeof trainingRowSchema>;

const identity = {
  /** sha256 over everything that determines the rollout: environment version, task, policy, sampling, attempt, seed. */
  key: z.string(),
  task: z.string(),
  /** 0-based number of the attempt at this task. */
  attempt: z.number().int().nonnegative(),
};

const scoredRolloutSchema = z.object({
  status: z.literal('scored'),
  ...identity,
  /** The policy was shown the environment's hint; the messages and the rows' ids are without it, the log-probs were sampled under it. */
  hinted: z.literal(true).optional(),
  /** Where the policy was a router: what it chose. */
  routed: choiceSchema.optional(),
  messages: z.array(messageSchema),
  stopReason: stopReasonSchema,
  ...evaluationSchema.shape,
  rows: z.array(trainingRowSchema),
  steps: z.number().int(),
  usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }),
  seconds: z.number(),
});
export type ScoredRollout = z.infer<typeof scoredRolloutSchema>;

const brokenRolloutSchema = z.object({
  status: z.literal('broken'),
  ...identity,
  error: z.object({ type: z.string(), message: z.string() }),
});
export type BrokenRollout = z.infer<typeof brokenRolloutSchema>;

export const rolloutSchema = z.discriminatedUnion('status', [scoredRolloutSchema, brokenRolloutSchema]);
export type Rollout = z.infer<typeof rolloutSchema>;

/** What the scored rollouts of one task came to, and the branch that the task is of. */
export interface Group {
  rewards: readonly number[];
  branch?: string;
}

/** The method's success threshold: reward >= 1.0. */
export const SUCCESS = 1.0;
export const isSuccess = (rollout: ScoredRollout): boolean => rollout.reward >= SUCCESS;
