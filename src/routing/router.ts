/**
 * A router: chooses a policy for a conversation (step 4 of the method). Invariant: what was fitted is an artifact that names its maker and
 * the policies that it chooses among, so that it can be applied by whoever has it; a router that can't choose throws.
 */
import { z } from 'zod';
import { identitySchema, type Identity, type Kind } from '../domain/kinds';
import type { Message, ToolSchema } from '../domain/messages';
import type { Work } from '../domain/work';
import { choiceSchema, fixedPolicySchema } from '../domain/rollout';
import type { PolicyClient } from '../policy/client';

const crossValidatedSchema = z.object({ mean: z.number(), standardError: z.number(), n: z.number().int() });
export type CrossValidated = z.infer<typeof crossValidatedSchema>;

/** What fitting finds. */
export const fitSchema = z.object({
  /** Set when routing did not beat the best single option in cross-validation: every conversation is given to this one. */
  constant: z.string().optional(),
  /** Success rates over the train tasks, each task routed by a fit that has not seen it. */
  crossValidation: z.object({
    helps: z.boolean(),
    /** Where several forms of routing were compared: which was kept, and what each scored on the same folds. */
    form: z.string().optional(),
    forms: z.array(crossValidatedSchema.extend({ form: z.string() })).optional(),
    routed: crossValidatedSchema,
    base: crossValidatedSchema,
    bestSingle: crossValidatedSchema.extend({ option: z.string() }),
    unionCeiling: crossValidatedSchema,
  }),
  /** The kind's own, JSON. */
  parameters: z.unknown(),
});
export type Fit = z.infer<typeof fitSchema>;

/** The artifact. `maker.options` is what opens the router again: no option is a path, what a router reads belongs into `parameters`. */
export const fittedRouterSchema = fitSchema.extend({
  maker: identitySchema,
  /** `base` first, sums of adapters last: on a tie the first is to be chosen. */
  options: z.array(z.object({ name: z.string(), policy: fixedPolicySchema })).min(1),
});
export type FittedRouter = z.infer<typeof fittedRouterSchema>;

export interface FitInput extends Work {
  options: FittedRouter['options'];
  /** Train tasks that every option has scored rollouts of: their first messages, and by option the successes (1) and failures (0). */
  tasks: { id: string; messages: Message[]; outcomes: Record<string, number[]> }[];
  /** By capability. */
  definitions?: Readonly<Record<string, string>>;
  seed: number;
}

export interface ChooseInput {
  fitted: FittedRouter;
  /** What was said before the agent's first answer, and the tools that it is offered. */
  messages: readonly Message[];
  tools: readonly ToolSchema[];
  seed: number;
  signal: AbortSignal;
}

/** An option by its name, and the probability of each option as the router sees it. */
export const chosenOptionSchema = choiceSchema.pick({ chosen: true, probabilities: true });
export type ChosenOption = z.infer<typeof chosenOptionSchema>;

interface Router {
  readonly identity: Identity;
  fit(input: FitInput): Promise<Fit>;
  /** Not called where the fit is constant. */
  choose(input: ChooseInput): Promise<ChosenOption>;
}

export interface RouterContext {
  /** The Python interpreter of the trainer's virtual environment. */
  python: string;
  client: Pick<PolicyClient, 'sample' | 'likeliest'>;
}

export type RouterKind = Kind<Router, RouterContext>;

/** The text that a conversation is routed by: the first user message. Throws if there is none. */
export function firstUserMessage(messages: readonly Message[]): string {
  const first = messages.find((message) => message.role === 'user');
  if (!first) throw new Error('a conversation without a user message can not be routed');
  return first.content;
}
