/**
 * A language model that reads trajectories and writes environments, as a campaign file names it: any OpenAI-compatible endpoint.
 * Invariant: the key itself is never in a file.
 */
import { z } from 'zod';
import { apiKeyEnvField, silenceField, urlField } from './endpoint-fields';

const count = z.number().int().positive();
const dollars = z.number().min(0);

/** Fields of every kind that asks a language model. */
export const languageModelFields = {
  /** Of the API, e.g. https://api.example.com/v1. */
  url: urlField,
  model: z.string().min(1),
  /** Environment variable with the API key; left out for servers that need none. */
  apiKeyEnv: apiKeyEnvField,
  temperature: z.number().min(0).max(2).default(1),
  /** Of one reply, its reasoning included. */
  maxTokens: count.default(32_000),
  /** Of one request and its reply: longer matter is cut into chunks. */
  contextTokens: count.default(128_000),
  /** Further fields of every request, such as reasoning_effort; null leaves one out that would be sent. */
  parameters: z.record(z.string(), z.unknown()).default({}),
  /** Requests at once, and begun within a minute, of one worker. */
  concurrency: count.default(8),
  requestsPerMinute: count.optional(),
  /** Without a word of the reply. */
  timeoutSeconds: silenceField.default(300),
  /** Dollars for a million tokens. Without it tokens are counted and money is not. */
  price: z.strictObject({ input: dollars, cachedInput: dollars.optional(), output: dollars }).optional(),
  /** Folder with prompts of your own, NAME.md: each takes the place of the one of that name in `prompts`. */
  prompts: z.string().min(1).optional(),
  /** How often an answer that can't be used is sent back with what is wrong with it. */
  repairs: z.number().int().min(0).default(3),
};
export const languageModelSchema = z.strictObject(languageModelFields);
export type LanguageModelSpec = z.infer<typeof languageModelSchema>;
export type Price = NonNullable<LanguageModelSpec['price']>;

export const modelUsageSchema = z.object({
  promptTokens: z.number().int().nonnegative(),
  /** Of the prompt's, those that the endpoint had in its cache. */
  cachedTokens: z.number().int().nonnegative(),
  completionTokens: z.number().int().nonnegative(),
});
export type ModelUsage = z.infer<typeof modelUsageSchema>;

/** What language models may cost a campaign in all; without a limit where none is given. */
export const budgetSchema = z.strictObject({
  /** Tokens, of prompts and replies. */
  tokens: count.optional(),
  /** Dollars, by the prices that the models' fields give. */
  dollars: z.number().positive().optional(),
});
export type Budget = z.infer<typeof budgetSchema>;

/** Spent by one step of a campaign, such as `discovery` or `environment: ask_for_missing_identifiers`. */
export const spentSchema = modelUsageSchema.extend({
  step: z.string(),
  requests: z.number().int().nonnegative(),
  /** Of the requests that have a price; absent where none has. */
  dollars: dollars.optional(),
  /** Requests without a price, beside others that have one. */
  unpriced: count.optional(),
});
export type Spent = z.infer<typeof spentSchema>;
