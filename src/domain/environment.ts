/** The interface of environments (docs/environments.md). An error breaks the rollout; a bad answer of the agent is an observation. */
import { z } from 'zod';
import type { ModelUsage } from './endpoints';
import { messageSchema, toolSchema, type AssistantMessage, type Message, type ToolSchema } from './messages';

export const splitSchema = z.enum(['train', 'test']);
export type Split = z.infer<typeof splitSchema>;

/** The reason why a rollout ended. `user_stop` and `agent_stop` are regular ends; `agent_error` is an answer that ends the episode. */
export const stopReasonSchema = z.enum([
  'user_stop',
  'agent_stop',
  'max_steps',
  'context_length',
  'too_many_errors',
  'agent_error',
]);
export type StopReason = z.infer<typeof stopReasonSchema>;

export const taskSchema = z.object({
  id: z.string(),
  split: splitSchema,
  groups: z.array(z.string().min(1)).optional(),
});
export interface Task extends z.infer<typeof taskSchema> {
  /** The user's request, where it is known before an episode begins. */
  text?: string;
}

export const environmentDescriptionSchema = z.object({
  name: z.string(),
  /** Changes whenever tasks, observations or rewards change; part of every rollout's key, beside what it shows. */
  version: z.string(),
  policy: z.string(),
  tools: z.array(toolSchema),
  maxSteps: z.number().int().positive(),
  /** Notes for the report, such as that a newer release corrected the tasks. */
  notes: z.array(z.string().min(1)).optional(),
  hasReference: z.boolean(),
  /** Machine-readable form of the written policy's rules, for plug-ins that work by rules. */
  rules: z.array(z.looseObject({ kind: z.string() })).optional(),
});
export interface EnvironmentDescription extends z.infer<typeof environmentDescriptionSchema> {
  plugin?: string;
}

const actionSchema = z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) });
export type Action = z.infer<typeof actionSchema>;

/** The actions of a right solution that change something, and the facts that the agent must state. */
export const referenceSchema = z.object({ actions: z.array(actionSchema), tell: z.array(z.string()) });
export type Reference = z.infer<typeof referenceSchema>;

export const resetResultSchema = z.object({
  messages: z.array(messageSchema),
  tools: z.array(toolSchema),
  maxSteps: z.number().int().positive(),
});
export type ResetResult = z.infer<typeof resetResultSchema>;

export const stepResultSchema = z.object({
  messages: z.array(messageSchema),
  done: z.boolean(),
  stopReason: stopReasonSchema.optional(),
});
export interface StepResult extends z.infer<typeof stepResultSchema> {
  /**
   * The whole context of the policy's next turn, for an agent that keeps its contexts itself: it may continue one, fork it, or begin another. Its new
   * messages belong to the conversation; `messages` is empty then.
   */
  context?: Context;
  /** The agent ended before it got the answer: the turn is not part of the conversation and is not trained on. */
  unheard?: boolean;
}

export interface Context {
  messages: Message[];
  tools: ToolSchema[];
}

export interface Sampled {
  finishReason: 'stop' | 'tool_calls' | 'length';
  promptTokens: number;
  completionTokens: number;
}

/** A kind of instance within an environment, such as `special` and its `twin`: a policy that succeeds on one alone has not learned the skill. */
export const branchSchema = z.string().regex(/^[a-z][a-z0-9_]{0,39}$/, 'lower-case letters, digits and _, at most 40');

/** Weighted sums miss their value by rounding, in single precision by up to 1e-7: 0.7 + 0.2 + 0.1 is 0.9999999999999999. */
const ROUNDING = 1e-6;

/** Parses a reward. Values that differ from 0 or 1 by rounding alone become exactly 0 or 1. */
export const rewardSchema = z
  .number('Invalid input: expected a number from 0 to 1')
  .min(-ROUNDING, 'Too small: expected a number from 0 to 1')
  .max(1 + ROUNDING, 'Too big: expected a number from 0 to 1')
  .transform((reward) => (reward >= 1 - ROUNDING ? 1 : reward <= ROUNDING ? 0 : reward));

/** Every way into the product (protocol, sandbox, agent program, plug-in) reads its answer with this schema; nothing after it checks a reward. */
export const evaluationSchema = z.object({
  reward: rewardSchema,
  breakdown: z.record(z.string(), z.number()),
  /** Depends on the task alone, not on the agent's actions. */
  branch: branchSchema.optional(),
  reference: referenceSchema.optional(),
  /** Last words of the agent's own program, for people. */
  output: z.string().optional(),
});
export type Evaluation = z.infer<typeof evaluationSchema>;

export interface Episode {
  start: ResetResult;
  step(message: AssistantMessage, sampled?: Sampled): Promise<StepResult>;
  evaluate(reason: StopReason): Promise<Evaluation>;
  close(): Promise<void>;
}

export type PartnerRole = 'user' | 'judge';
export type OnPartnerUsage = (role: PartnerRole, usage: ModelUsage) => void;

/** Content that is compared before rollouts of an environment are reused from the store (rollout/shown.ts). */
export interface Appearance {
  /** Returns what identifies the environment; `describe` by default. */
  itself?: () => Promise<object>;
  /** Returns what a task shows before a model has spoken; the start of an episode by default. `fixed`: `itself` decides it. */
  task?: 'fixed' | ((task: { id: string; seed: number }, signal?: AbortSignal) => Promise<object>);
}

export interface Environment {
  readonly appearance?: Appearance;
  describe(): Promise<EnvironmentDescription>;
  tasks(split: Split): Promise<Task[]>;
  /** Starts a fresh, independent episode; any number may be open at once. The signal ends what the episode waits for outside. */
  reset(task: { id: string; seed: number }, signal?: AbortSignal, onUsage?: OnPartnerUsage): Promise<Episode>;
  reachable?(): Promise<boolean>;
  close(): Promise<void>;
}
