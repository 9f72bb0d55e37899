/** Models behind OpenAI-compatible endpoints and what they cost. A campaign file holds no keys. Dollars are counted where a price is known. */
import { z } from 'zod';

/** Seconds of a wait for an answer, at most a day. Node's timers hold at most 24 days, and end at once beyond. */
export const silenceField = z.number().int().positive().max(86_400);

export const hasCredentials = (url: string): boolean => /^[a-z][a-z\d+.-]*:[/\\]*[^/\\?#]*@/i.test(url);

/** Schema of a server's URL, which must not contain user or password. `key` is the end of the error message, which says where the key belongs. */
export const keyedUrl = (key: string) =>
  z.url({ protocol: /^https?$/ }).refine((url) => !hasCredentials(url), `a URL without user and password; ${key}`);

export const ONE_SERVER = "one URL; for several servers use vLLM's data parallelism or a load balancer";

export const policyServerUrl = z
  .string()
  .refine((url) => !url.includes(','), { error: ONE_SERVER, abort: true })
  .pipe(keyedUrl('POLICY_SERVER_API_KEY holds the key'));

export const variableName = z
  .string()
  .regex(
    /^[A-Za-z_]\w*$/,
    'the name of an environment variable, such as EXAMPLE_API_KEY: the key itself belongs in it',
  );

const count = z.number().int().positive();
const dollars = z.number().min(0);

/** Dollars per million tokens; without it no cost is counted. */
const priceField = z
  .strictObject({
    input: dollars.describe('Prompt tokens.'),
    cachedInput: dollars.optional().describe('Cached prompt tokens; default: `input`.'),
    output: dollars.describe('Reply tokens.'),
  })
  .optional();
export type Price = NonNullable<z.infer<typeof priceField>>;

const endpointFields = {
  url: keyedUrl('apiKeyEnv names the variable with the key').describe('URL, usually ending in /v1.'),
  model: z.string().min(1).describe('Name of the model there.'),
  apiKeyEnv: variableName.optional().describe('Variable with the API key.'),
  price: priceField.describe('Dollars per million tokens.'),
};

export const chatModelSchema = z.strictObject({
  ...endpointFields,
  temperature: z.number().min(0).max(2).default(0).describe('Sampling temperature.'),
  topP: z.number().gt(0).max(1).default(1).describe('Nucleus sampling.'),
  maxTokens: count.default(1024).describe('Tokens per reply.'),
  concurrency: count.default(32).describe('Parallel requests.'),
  timeoutSeconds: silenceField.default(120).describe('Seconds per reply.'),
});
export type ChatModel = z.infer<typeof chatModelSchema>;

export const languageModelFields = {
  ...endpointFields,
  temperature: z.number().min(0).max(2).default(1).describe('Sampling temperature.'),
  maxTokens: count.default(32_000).describe('Tokens per reply, with reasoning.'),
  contextTokens: count.default(128_000).describe('Most tokens of request and reply.'),
  parameters: z.record(z.string(), z.unknown()).default({}).describe('More request fields; null omits one.'),
  concurrency: count.default(8).describe('Parallel requests of one worker.'),
  timeoutSeconds: silenceField.default(300).describe('Seconds without data that end a request.'),
  repairs: z.number().int().min(0).default(3).describe('Repairs of an unusable answer.'),
};
export const languageModelSchema = z.strictObject(languageModelFields);
export type LanguageModelSpec = z.infer<typeof languageModelSchema>;
export const languageModelOf = (spec: object): LanguageModelSpec => languageModelSchema.strip().parse(spec);

export const modelUsageSchema = z.object({
  promptTokens: z.number().int().nonnegative(),
  cachedTokens: z.number().int().nonnegative(),
  completionTokens: z.number().int().nonnegative(),
});
export type ModelUsage = z.infer<typeof modelUsageSchema>;

/** Prices of a Tinker server. The rows of a step pass it twice: forward, then forward and backward. */
export const trainingPriceField = z
  .strictObject({
    forward: dollars.describe('Tokens in forward passes.'),
    train: dollars.describe('Tokens in training passes.'),
  })
  .optional();

/** The parts that pay for tokens. The prompt tokens of a `trainer` went forward, and its completion tokens were trained on. */
const payingRoleSchema = z.enum(['analyst', 'synthesizer', 'arm', 'trainer', 'user', 'judge']);
export type PayingRole = z.infer<typeof payingRoleSchema>;

/** Limit on the cost of all language models and a Tinker server together; none by default. */
export const budgetSchema = z.strictObject({
  tokens: count.optional().describe('Tokens of models and trainer.'),
  dollars: z.number().positive().optional().describe('Dollars, by prices.'),
});
export type Budget = z.infer<typeof budgetSchema>;

const costSchema = modelUsageSchema.extend({
  requests: z.number().int().nonnegative(),
  dollars: dollars.optional(),
  /** Requests without a price, beside others that have one. */
  unpriced: count.optional(),
});
export type Cost = z.infer<typeof costSchema>;

/** Spent by one step of a campaign, such as `discovery`, `environment: ask_for_missing_identifiers` or, of rollouts, `held_out`. */
export const spentSchema = costSchema.extend({
  step: z.string(),
  role: payingRoleSchema.optional(),
});
export type Spent = z.infer<typeof spentSchema>;

const MILLION = 1_000_000;

/** Returns the cost of one request in dollars; without a price it is left out. */
export function costOf(usage: ModelUsage, price: Price | undefined): { dollars?: number } {
  if (!price) return {};
  const { promptTokens, completionTokens } = usage;
  const cachedTokens = Math.min(usage.cachedTokens, promptTokens);
  const { input, cachedInput = input, output } = price;
  const dollars = (promptTokens - cachedTokens) * input + cachedTokens * cachedInput + completionTokens * output;
  return { dollars: dollars / MILLION };
}

/** Returns the sum. It has dollars if any part has a price, and then the number of requests without one. */
export function sumOf(parts: readonly Cost[]): Cost {
  const of = (count: (part: Cost) => number) => parts.reduce((sum, part) => sum + count(part), 0);
  const unpriced = of((part) => (part.dollars === undefined ? part.requests : (part.unpriced ?? 0)));
  const isPriced = parts.length === 0 || parts.some(({ dollars }) => dollars !== undefined);
  return {
    requests: of(({ requests }) => requests),
    promptTokens: of(({ promptTokens }) => promptTokens),
    cachedTokens: of(({ cachedTokens }) => cachedTokens),
    completionTokens: of(({ completionTokens }) => completionTokens),
    ...(isPriced && { dollars: of(({ dollars = 0 }) => dollars), ...(unpriced > 0 && { unpriced }) }),
  };
}

/** Sums costs in the units of a budget: requests, tokens of prompts and replies, dollars (0 without a price). */
export function total(parts: readonly Cost[]) {
  const { requests, promptTokens, completionTokens, dollars = 0 } = sumOf(parts);
  return { requests, tokens: promptTokens + completionTokens, dollars };
}

/** An estimate where an endpoint does not count tokens: English has four characters a token. */
export const CHARACTERS_A_TOKEN = 4;
export const tokensOf = (characters: number): number => Math.ceil(characters / CHARACTERS_A_TOKEN);

/** Returns the value without these fields of every model in it. A model is an object with `url` and `model`. */
export function modelsWithout(fields: readonly string[], value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => modelsWithout(fields, one));
  if (typeof value !== 'object' || value === null) return value;
  const isModel = 'url' in value && 'model' in value;
  const kept = Object.entries(value).filter(([name]) => !(isModel && fields.includes(name)));
  return Object.fromEntries(kept.map(([name, field]) => [name, modelsWithout(fields, field)]));
}
