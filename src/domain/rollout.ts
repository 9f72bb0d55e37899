/** One attempt of a policy at a task, and figures of a batch. A `broken` rollout failed outside the policy: it has no reward and no part in figures. */
import { z } from 'zod';
import { type ArtifactRef, artifactRefSchema } from './artifacts';
import { evaluationSchema, stopReasonSchema } from './environment';
import { type FailureType, isRetryable, OutsideFailure, retryOf } from './failures';
import { messageSchema } from './messages';

/** Text before the environment's system message, or in its place. */
export const promptSchema = z.object({ text: z.string().min(1), place: z.enum(['before', 'instead']) });
export type Prompt = z.infer<typeof promptSchema>;

/** The base model (no adapter), one adapter, or a weighted sum of adapters; with a prompt of its own or without. */
export const fixedPolicySchema = z.object({
  base: z.string(),
  adapters: z.array(z.object({ ref: artifactRefSchema, weight: z.number() })),
  prompt: promptSchema.optional(),
});
export type FixedPolicy = z.infer<typeof fixedPolicySchema>;

/** A fitted router chooses for each conversation, once it has begun. */
interface RoutedPolicy {
  router: ArtifactRef;
}

export type Policy = RoutedPolicy | FixedPolicy;

export const choiceSchema = z.object({
  chosen: z.string(),
  policy: fixedPolicySchema,
  /** Probability of success of each option, as the router estimates it; they need not add up to 1. */
  probabilities: z.record(z.string(), z.number()),
});
export type Choice = z.infer<typeof choiceSchema>;

/**
 * Treatment of `<think>...</think>`: `kept` in the policy's context for the rest of the conversation, which is one row; `stripped` from its next turn on,
 * as its template does; or `off`. It is trained wherever it is sampled, and only the policy ever sees it.
 */
export const thinkings = ['kept', 'stripped', 'off'] as const;

export const samplingSchema = z.object({
  temperature: z.number(),
  topP: z.number(),
  maxTokens: z.number(),
  thinking: z.enum(thinkings).optional(),
});
export type Sampling = z.infer<typeof samplingSchema>;

/** Token ids of one training row: `completionIds` runs from the first sampled token to the last, tool results included. */
const trainingRowSchema = z.object({
  promptIds: z.array(z.number().int()),
  completionIds: z.array(z.number().int()),
  /** 0 where the token was not sampled. */
  logprobs: z.array(z.number()),
  /** The sampled parts of `completionIds`, from `start` up to and without `end`. The rest is the environment's. */
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
  attempt: z.number().int().nonnegative(),
};

export const scoredRolloutSchema = z.object({
  status: z.literal('scored'),
  ...identity,
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

export const brokenRolloutSchema = z.object({
  status: z.literal('broken'),
  ...identity,
  error: z.object({ type: z.string(), message: z.string() }),
});
export type BrokenRollout = z.infer<typeof brokenRolloutSchema>;

export const rolloutSchema = z.discriminatedUnion('status', [scoredRolloutSchema, brokenRolloutSchema]);
export type Rollout = z.infer<typeof rolloutSchema>;

export interface Group {
  rewards: readonly number[];
  branch?: string;
}

export const isSuccess = ({ reward }: { reward: number }): boolean => reward === 1;

export const purposes = ['base_rollouts', 'calibration', 'training', 'held_out', 'outcome_matrix', 'test'] as const;
export type Purpose = (typeof purposes)[number];

export const purposeNames: Record<Purpose, string> = {
  base_rollouts: 'base rollouts',
  calibration: 'calibration',
  training: 'training',
  held_out: 'held-out evaluation',
  outcome_matrix: 'router outcome matrix',
  test: 'test',
};

export interface BranchSummary {
  scored: number;
  /** Mean over tasks of the mean reward of each one's scored rollouts, as in the report. */
  meanReward: number;
  /** Mean over tasks of the share of each one's scored rollouts that are successes, as in the report. */
  successRate: number;
}

/** A finished batch of rollouts: figures of all that it holds, also of those that other batches hold too. */
export interface RolloutSummary extends BranchSummary {
  ref: ArtifactRef;
  purpose: Purpose;
  title: string;
  broken: number;
  /** Rollouts that were found, in this batch or others, and not made for it; absent where there were none. */
  reused?: number;
  branches?: Record<string, BranchSummary>;
  promptTokens: number;
  completionTokens: number;
  seconds: number;
  errors: Record<string, number>;
  causes?: BrokenCause[];
}

type Ended = { status: 'scored' } | BrokenRollout;

/** Broken rollouts whose type and message are the same but for names and numbers. */
export interface BrokenCause {
  type: string;
  message: string;
  count: number;
  task: string;
}

const LONGEST = 400;
export const MAX_CAUSES = 3;

/** Number of failed rollouts, without a scored one, after which the rest is expected to fail too. */
const HOPELESS = 16;
/** Fewer failed rollouts than this are accepted if some are scored, since their share means little in a small batch. */
const FEWEST = 4;

/** Returns whether a batch stops. `share` is `rollouts.maxBrokenShare` of the campaign. */
export const tooManyBroken = (o: { broken: number; scored: number; total: number; share: number }): boolean =>
  o.scored === 0 ? o.broken >= Math.min(HOPELESS, o.total) : o.broken >= FEWEST && o.broken > o.share * o.total;

/** Joins errors whose messages differ only in task, quotations and numbers; the most frequent cause comes first. */
export function causesOf(found: readonly BrokenCause[]): BrokenCause[] {
  const causes = new Map<string, BrokenCause>();
  for (const { type, message, count, task } of found) {
    const key = `${type} ${message.replaceAll(task, '').replaceAll(/"[^"]*"|'[^']*'|\d+/g, '#')}`;
    const known = causes.get(key);
    if (known) known.count += count;
    else causes.set(key, { type, message: message.replaceAll(/\s+/g, ' ').slice(0, LONGEST), count, task });
  }
  return [...causes.values()].sort((a, b) => b.count - a.count);
}

export const causesIn = (records: readonly Ended[]): BrokenCause[] =>
  causesOf(records.flatMap((one) => (one.status === 'broken' ? [{ ...one.error, count: 1, task: one.task }] : [])));

/** `242 BadEnvironment, as at task n-7: ...; 3 UserSimulatorFailed, ...; 2 of other causes`. `broken`: their number in all. */
export function causesText(causes: readonly BrokenCause[], broken: number): string {
  const others = causes.slice(0, MAX_CAUSES).reduce((rest, { count }) => rest - count, broken);
  return [
    ...causes
      .slice(0, MAX_CAUSES)
      .map(({ type, message, count, task }) => `${count} ${type}, as at task ${task}: ${message}`),
    ...(others > 0 ? [`${others} of other causes`] : []),
  ].join('; ');
}

/** Returns the failure of rollouts that must all be scored; undefined if none failed. */
export function brokenFailure(records: readonly Ended[], what: string): OutsideFailure | undefined {
  const broken = records.filter(({ status }) => status === 'broken');
  return broken.length === 0
    ? undefined
    : failureOf(broken, `${what}: ${broken.length} of ${records.length} rollouts broke`);
}

export function tooManyFailure(
  broken: readonly Ended[],
  { what, scored, total, share }: { what: string; scored: number; total: number; share: number },
): OutsideFailure {
  const first = `the first ${broken.length + scored} rollouts`;
  const limit = `${percent(share)} of ${total}, which is rollouts.maxBrokenShare`;
  return failureOf(
    broken,
    scored === 0
      ? `${what}: none of ${first} was scored`
      : `${what}: ${broken.length} of ${first} broke, more than ${limit}; fix the cause or raise the limit; scored rollouts are kept`,
  );
}

const percent = (share: number): string => `${Number((100 * share).toFixed(1))}%`;

/**
 * Returns the failure of a batch, which is retryable if one of the broken rollouts is. Its type is that of the rollouts if they share one or all are
 * `outside`, else `RolloutsBroken`, or the first one's type if none is retryable.
 */
function failureOf(broken: readonly Ended[], text: string): OutsideFailure {
  const causes = causesIn(broken);
  const types = causes.map(({ type }) => type as FailureType);
  const outside = types.every((type) => retryOf(type) === 'outside');
  const type = !outside && types.some(isRetryable) && new Set(types).size > 1 ? 'RolloutsBroken' : types[0]!;
  return new OutsideFailure(type, `${text}: ${causesText(causes, broken.length)}`);
}
