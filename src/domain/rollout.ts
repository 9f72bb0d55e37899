/**
 * One attempt of a policy at a task. Invariant: only a `scored` rollout has a reward; a `broken` one (a failure outside the policy)
 * has an error instead and never enters a statistic.
 */
import { z } from 'zod';
import { artifactRefSchema } from './artifacts';
import { evaluationSchema, stopReasonSchema } from './environment';
import { messageSchema } from './messages';

/** The base model (no adapter), one adapter, or a weighted merge of adapters. */
export const policySchema = z.object({
  /** The base model's id: name and weights hash. */
  base: z.string(),
  adapters: z.array(z.object({ ref: artifactRefSchema, weight: z.number() })),
});
export type Policy = z.infer<typeof policySchema>;

export const samplingSchema = z.object({
  temperature: z.number().min(0),
  topP: z.number().min(0).max(1),
  maxTokens: z.number().int().positive(),
});
export type Sampling = z.infer<typeof samplingSchema>;

/** Token ids of one training row: `completionIds` runs from the first sampled token to the last, tool results included. */
export const trainingRowSchema = z.object({
  promptIds: z.array(z.number().int()),
  completionIds: z.array(z.number().int()),
  /** 0 where the token was not sampled. */
  logprobs: z.array(z.number()),
  /** 1 where the token carries loss. */
  mask: z.array(z.number().int()),
});
export type TrainingRow = z.infer<typeof trainingRowSchema>;

const identity = {
  /** sha256 over everything that determines the rollout: environment version, task, policy, sampling, attempt, seed. */
  key: z.string(),
  task: z.string(),
  /** 0-based number of the attempt at this task. */
  attempt: z.number().int().nonnegative(),
};

export const scoredRolloutSchema = z.object({
  status: z.literal('scored'),
  ...identity,
  messages: z.array(messageSchema),
  stopReason: stopReasonSchema,
  ...evaluationSchema.shape,
  rows: z.array(trainingRowSchema),
  steps: z.number().int(),
  usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }),
  seconds: z.number(),
});
export type ScoredRollout = z.infer<typeof scoredRolloutSchema>;

export const brokenRolloutSchema = z.object({
  status: z.literal('broken'),
  ...identity,
  error: z.object({ type: z.string(), message: z.string() }),
});
export type BrokenRollout = z.infer<typeof brokenRolloutSchema>;

export const rolloutSchema = z.discriminatedUnion('status', [scoredRolloutSchema, brokenRolloutSchema]);
export type Rollout = z.infer<typeof rolloutSchema>;

/** The method's success threshold: reward >= 1.0. */
export const SUCCESS = 1.0;
export const isSuccess = (rollout: ScoredRollout): boolean => rollout.reward >= SUCCESS;
