/**
 * A router chooses a policy for a conversation (step 4 of the method). Invariants: a fitted router is an artifact that names its maker and the policies
 * that it chooses among, so that nothing else is needed to apply it; a router that can't choose throws.
 */
import { z } from 'zod';
import { identitySchema, type Identity, type Kind } from '../domain/kinds';
import type { Message, ToolSchema } from '../domain/messages';
import type { Work } from '../domain/work';
import { choiceSchema, fixedPolicySchema } from '../domain/rollout';
import type { PolicyClient } from '../policy/client';

const crossValidatedSchema = z.object({ mean: z.number(), standardError: z.number(), n: z.number().int() });
export type CrossValidated = z.infer<typeof crossValidatedSchema>;

export const fitSchema = z.object({
  /** The option that gets every conversation, set if routing did not beat the best single option in cross-validation. */
  constant: z.string().optional(),
  /** Success rates over the train tasks, each task routed by a fit that has not seen it. */
  crossValidation: z.object({
    helps: z.boolean(),
    /** The form of routing that was kept, if several were compared; `forms` has their scores on the same folds. */
    form: z.string().optional(),
    forms: z.array(crossValidatedSchema.extend({ form: z.string() })).optional(),
    routed: crossValidatedSchema,
    base: crossValidatedSchema,
    bestSingle: crossValidatedSchema.extend({ option: z.string() }),
    unionCeiling: crossValidatedSchema,
  }),
  parameters: z.unknown(),
});
export type Fit = z.infer<typeof fitSchema>;

/** The artifact. `maker.options` opens the router again, so no option is a path: data that a router reads belongs into `parameters`. */
export const fittedRouterSchema = fitSchema.extend({
  maker: identitySchema,
  /** `base` first, merged adapters last: on a tie the first is chosen. */
  options: z.array(z.object({ name: z.string(), policy: fixedPolicySchema })).min(1),
});
export type FittedRouter = z.infer<typeof fittedRouterSchema>;

export interface FitInput extends Work {
  options: FittedRouter['options'];
  /** Train tasks of which every option has scored rollouts: their first messages, and successes (1) and failures (0) by option. */
  tasks: { id: string; messages: Message[]; outcomes: Record<string, number[]> }[];
  definitions?: Readonly<Record<string, string>>;
  seed: number;
}

export interface ChooseInput {
  fitted: FittedRouter;
  /** The messages before the agent's first answer; `tools` are those that it is offered. */
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
  choose(input: ChooseInput): Promise<ChosenOption>;
}

export interface RouterContext {
  python: string;
  client: Pick<PolicyClient, 'sample' | 'likeliest'>;
}

export type RouterKind = Kind<Router, RouterContext>;

/** Returns the text that a conversation is routed by: the first user message. Throws if there is none. */
export function firstUserMessage(messages: readonly Message[]): string {
  const first = messages.find((message) => message.role === 'user');
  if (!first) throw new Error('a conversation without a user message can not be routed');
  return first.content;
}
