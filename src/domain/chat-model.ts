/** A model behind any OpenAI-compatible endpoint, as a campaign file names it. Invariant: the key itself is never in a file. */
import { z } from 'zod';
import { apiKeyEnvField, silenceField, urlField } from './endpoint-fields';

const count = z.number().int().positive();

export const chatModelSchema = z.strictObject({
  /** Of the API, e.g. http://127.0.0.1:8000/v1. */
  url: urlField,
  model: z.string().min(1),
  /** Environment variable with the API key; left out for servers that need none. */
  apiKeyEnv: apiKeyEnvField,
  temperature: z.number().min(0).max(2).default(0),
  topP: z.number().gt(0).max(1).default(1),
  maxTokens: count.default(1024),
  /** Requests at once. */
  concurrency: count.default(32),
  timeoutSeconds: silenceField.default(120),
});
export type ChatModel = z.infer<typeof chatModelSchema>;
