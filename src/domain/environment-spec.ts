/** What a campaign file says of an environment, and of the models that play its other parties. Unknown fields are errors. */
import { z } from 'zod';
import type { ArtifactRef } from './artifacts';

const count = z.number().int().positive();

/** A model behind any OpenAI-compatible endpoint. The key itself is never in a file: only the variable's name. */
export const chatModelSchema = z.strictObject({
  /** Of the API, e.g. http://127.0.0.1:8000/v1. */
  url: z.url(),
  model: z.string().min(1),
  /** Environment variable with the API key; left out for servers that need none. */
  apiKeyEnv: z.string().min(1).optional(),
  temperature: z.number().min(0).max(2).default(0),
  topP: z.number().gt(0).max(1).default(1),
  maxTokens: count.default(1024),
  /** Requests at once. */
  concurrency: count.default(32),
  timeoutSeconds: count.default(120),
});
export type ChatModel = z.infer<typeof chatModelSchema>;

/** Models that play other parties of an episode: not the policy, and never trained. */
const partners = {
  /** Plays the user, where the environment does not do so itself. */
  user: chatModelSchema.optional(),
  /** Answers the questions that an environment's evaluation asks. */
  judge: chatModelSchema.optional(),
};
/** Processes side by side; episodes are spread over them. */
const processes = count.default(1);

export const environmentSpecSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('builtin'), name: z.enum(['shop']) }),
  z.strictObject({
    kind: z.literal('process'),
    /** A program that speaks the environment protocol on stdio. */
    command: z.array(z.string()).min(1),
    /** Working directory; relative to the campaign file. */
    cwd: z.string().optional(),
    processes,
    ...partners,
  }),
  /** tau2-bench (`make bridges` installs it). Task ids are `domain/id`. */
  z.strictObject({
    kind: z.literal('tau2'),
    domains: z.array(z.enum(['mock', 'airline', 'retail', 'telecom'])).min(1),
    /** A newer upstream checkout; relative to the campaign file. */
    checkout: z.string().optional(),
    processes,
    ...partners,
  }),
  /** ToolSandbox, from a folder of the user's. */
  z.strictObject({
    kind: z.literal('toolsandbox'),
    /** The checkout; relative to the campaign file. */
    folder: z.string(),
    /**
     * Fraction of the families of scenarios that only `test` has. With 0, `test` is the 129 base scenarios, as published, and `train`
     * their variants with other tools, which ask for the same things.
     */
    heldOut: z.number().min(0).lt(1).default(0),
    processes,
    user: partners.user,
  }),
  z.strictObject({ kind: z.literal('sandbox'), module: z.custom<ArtifactRef>() }),
]);
export type EnvironmentSpec = z.infer<typeof environmentSpecSchema>;
